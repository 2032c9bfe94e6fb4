#pragma once

#include <array>
#include <boost/asio/awaitable.hpp>
#include <mutex>
#include <string>
#include <string_view>

namespace outbox {

namespace asio = boost::asio;

// Named places where a test may stop, delay or kill the process. Always compiled: the binary that
// ships is the binary that was tested.
enum class FailpointId {
    before_lease,                  // nothing is journaled yet
    after_lease_before_read,       // journaled, the answer is lost (lane)
    before_release_lost,           // rows of such a lease are about to go back
    after_lease_before_dispatch,   // journaled and known, not a byte sent
    before_provider_key,           // about to derive what the other side will see
    after_provider_key,            // derived, the deadline not yet looked at
    before_connect,                // about to open a connection (attempts and probes)
    before_first_byte,             // connected, about to write the request
    after_first_byte,              // a part of the request may be with the other side
    mid_answer,                    // a part of the answer is read
    after_effect_before_complete,  // the answer is read, nothing decided or recorded
    before_complete,               // the completion batch is about to be written
    between_finish_and_move,       // ends are written, other moves of the batch are not (lane)
    after_complete_before_read,    // committed, the answer is lost (lane)
    after_complete_before_ack,     // written, this process does not know it yet
    before_late,                   // fenced, the evidence not yet filed
    after_late_before_ack,         // filed, this process does not know it yet
    before_claim,                  // about to claim what is due for a probe
    after_claim_before_read,       // claimed, the answer is lost (lane)
    before_probe,                  // claimed, not asked yet
    after_probe_before_settle,     // the verdict is known, not recorded
    before_heartbeat,              // about to say that this worker lives (lane)
    after_heartbeat,               // said, the answer is lost (lane)
    before_maintain,               // before promotion and expiry
    between_expiry_and_leases,     // maintenance after its first statement (lane)
    between_leases_and_promotion,  // maintenance after its second statement (lane)
    before_sql_effect,             // sql: about to open the effect's transaction (lane)
    after_sql_lock,                // sql, own database: fenced in, the statement not sent (lane)
    after_sql_effect,              // sql: the statement has run, nothing is committed (lane)
    after_sql_record,              // sql, own database: recorded, nothing is committed (lane)
    after_sql_commit,              // sql: committed, the answer is lost (lane)
};
inline constexpr std::array kFailpointNames = {
    "before_lease",
    "after_lease_before_read",
    "before_release_lost",
    "after_lease_before_dispatch",
    "before_provider_key",
    "after_provider_key",
    "before_connect",
    "before_first_byte",
    "after_first_byte",
    "mid_answer",
    "after_effect_before_complete",
    "before_complete",
    "between_finish_and_move",
    "after_complete_before_read",
    "after_complete_before_ack",
    "before_late",
    "after_late_before_ack",
    "before_claim",
    "after_claim_before_read",
    "before_probe",
    "after_probe_before_settle",
    "before_heartbeat",
    "after_heartbeat",
    "before_maintain",
    "between_expiry_and_leases",
    "between_leases_and_promotion",
    "before_sql_effect",
    "after_sql_lock",
    "after_sql_effect",
    "after_sql_record",
    "after_sql_commit",
};

// Owned by the application, passed by reference; all off by default. Armed before any thread
// starts, hit on the io thread and, where a lane has no coroutine, on the lanes' threads.
// Specification, comma separated: name=action[:argument][*count][@skip], with the actions crash
// (_Exit), throw, delay:250ms, and pause (until the file named by the argument exists; that it
// waits there says a second file, with .reached behind its name).
class Failpoints {
 public:
    // Empty when all is well, else what is wrong with the specification.
    [[nodiscard]] std::string arm(std::string_view specification);

    // One predictable branch when nothing is armed.
    asio::awaitable<void> hit(FailpointId id);
    // The same for a lane, whose thread it blocks.
    void hit_blocking(FailpointId id) {
        if (armed_) [[unlikely]]
            fire_blocking(id);
    }
    [[nodiscard]] bool armed() const { return armed_; }

 private:
    struct Action {
        enum class Kind { none, crash, throw_, delay, pause } kind = Kind::none;
        std::string argument;
        int remaining = -1;  // times it fires; −1 without end
        int skip = 0;
    };
    asio::awaitable<void> fire(FailpointId id);
    void fire_blocking(FailpointId id);
    // What to do now; crashing and throwing are done here.
    [[nodiscard]] Action take(FailpointId id);

    bool armed_ = false;
    std::mutex counting_;  // of remaining and skip
    std::array<Action, kFailpointNames.size()> actions_{};
};

}  // namespace outbox
