#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "outbox/store.hpp"
#include "tests/support/wait_for.hpp"

namespace tests {

// One operation as anybody sees it, whichever store holds it.
struct Seen {
    std::string status;
    int epoch = 0;
    int attempts = 0;
    std::string attention;  // empty: none
    std::string result;     // JSON text, "null" when there is none
    std::string error;      // its code
    std::string events;     // kinds, oldest first
    bool ambiguous = false;
};

// What a case needs beside the store: operations, time, and a look behind.
class StoreDriver {
 public:
    virtual ~StoreDriver() = default;
    virtual outbox::Store& store() = 0;
    struct Insert {
        std::string id;
        std::string tool = "ticket";
        std::int16_t priority = 0;
        std::optional<std::chrono::milliseconds> run_in{};
        std::optional<std::chrono::milliseconds> expires_in{};
    };
    virtual void insert(Insert operation) = 0;
    virtual bool cancel(const std::string& id) = 0;
    virtual bool retry(const std::string& id) = 0;
    // By the tool's one compensation, TOOL:undo; the id that the answer is about.
    virtual std::string compensate(const std::string& id) = 0;
    virtual void ask(const std::string& id) = 0;  // outboxd probe ID
    virtual void pause(const std::string& tool, bool paused) = 0;
    virtual void pass(std::chrono::milliseconds time) = 0;  // on the database's clock
    virtual Seen see(const std::string& id) = 0;
};

// A promise of outbox/store.hpp. Write tools "ticket" (with the compensation "ticket:undo") and
// "mail" and the read tool "look" are published; time-outs are 20 s, the margin 10 s.
struct StoreCase {
    std::string name;
    std::function<void(StoreDriver&)> run;  // asserts with Catch
};
// Written once, run over MemoryStore and PgStore: only so may the simulation trust the former.
const std::vector<StoreCase>& store_contract();
std::vector<StoreCase> lease_contract();
std::vector<StoreCase> write_contract();
std::vector<StoreCase> late_contract();
std::vector<StoreCase> maintenance_contract();
std::vector<StoreCase> compensation_contract();
std::vector<StoreCase> request_contract();

inline const std::string kMe = "00000000-0000-0000-0000-00000000000a";
inline const std::string kOther = "00000000-0000-0000-0000-00000000000b";

// Short ways, shared by the cases.
outbox::ToolPolicy contract_policy(
    const std::string& name, outbox::Effect effect = outbox::Effect::write
);
void publish_contract_tools(outbox::Store& store);
std::vector<outbox::LeasedAttempt> lease_from(
    StoreDriver& d,
    const std::string& tool = "ticket",
    int limit = 10,
    const std::string& worker = kMe,
    outbox::LeaseMark after = {}
);
outbox::LeasedAttempt insert_and_lease(
    StoreDriver& d, const std::string& id, const std::string& tool = "ticket"
);
std::vector<outbox::ClaimedProbe> claim_from(
    StoreDriver& d, int limit = 10, const std::string& worker = kMe
);
outbox::MaintenanceReport maintain(StoreDriver& d, bool judge = false);
outbox::Fate write(StoreDriver& d, outbox::Transition transition);
outbox::LateFate late(StoreDriver& d, outbox::Transition transition);
// Leased, and its lease has run out: unknown for a write.
outbox::LeasedAttempt overslept(
    StoreDriver& d, const std::string& id, const std::string& tool = "ticket"
);
std::string state(StoreDriver& d, const std::string& id);  // "status epoch attempts"

// Ends of an attempt.
outbox::Transition to(const outbox::LeasedAttempt& attempt, outbox::Status status);
outbox::Transition success(const outbox::LeasedAttempt& attempt, const std::string& result);
outbox::Transition failure(const outbox::LeasedAttempt& attempt);
outbox::Transition again(const outbox::LeasedAttempt& attempt, std::chrono::milliseconds due_in);
outbox::Transition doubt(const outbox::LeasedAttempt& attempt);
// … and of a probe.
outbox::Transition verdict(const outbox::ClaimedProbe& claim, outbox::Status status);

}  // namespace tests
