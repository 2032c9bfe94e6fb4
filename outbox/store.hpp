#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "outbox/operation.hpp"
#include "outbox/policy.hpp"
#include "outbox/transition.hpp"

namespace outbox {

namespace asio = boost::asio;

// Broken worlds are exceptions; label kind of outboxd_database_errors_total.
class StoreError : public std::runtime_error {
 public:
    enum class Kind {
        unavailable,  // no connection, shutting down, read-only: try again later
        conflict,     // deadlock, serialization failure, lock timeout: try again now
        in_doubt,     // the commit's acknowledgement was lost: read again
        data,         // this very row cannot be written as it is
        bug,          // everything else: a fault of ours
    };
    StoreError(Kind kind, const std::string& what) : std::runtime_error(what), kind_(kind) {}
    [[nodiscard]] Kind kind() const { return kind_; }

 private:
    Kind kind_;
};

// Where the last lease of a lane ended: the next one starts behind it instead of walking dead
// index entries. A default mark starts from the head.
struct LeaseMark {
    std::int16_t priority = -101;  // below the smallest priority
    std::int64_t seq = 0;
};

// The ready rows of one tool.
struct LeaseLane {
    std::string tool;
    int limit = 0;  // free slots: leased means started
    std::chrono::milliseconds timeout{};
    std::int64_t request_hash = 0;
    LeaseMark after;
};

struct LeaseRequest {
    WorkerId worker;
    std::chrono::milliseconds margin{};  // worker.lease_margin
    std::vector<LeaseLane> lanes;
};

enum class Fate {
    applied,    // written now, or found written by an earlier try whose acknowledgement was lost
    fenced,     // somebody else moved the epoch: this answer is evidence at best
    duplicate,  // written as `duplicate_effect`: a late answer had proved another effect
};

// What became of a fenced attempt's answer.
enum class LateFate {
    settled,    // it decided an open operation
    flagged,    // it contradicts what was recorded: late_effect
    duplicate,  // it is a second effect: duplicate_effect
    stored,     // an event, nothing more
};

struct ReconcileLane {
    std::string tool;
    int limit = 0;
    std::chrono::milliseconds timeout{};  // of one probe; the claim lasts timeout + margin
    bool resend = false;  // these probes are attempts: none while the tool is paused
};

// Where a configuration that is about to be published does not agree with work under way.
enum class Drift {
    key,       // open operations were sent under another key: theirs is kept
    request,   // … to another target, or are looked for otherwise: "absent" proves nothing of them
    revision,  // a daemon that runs now has published the tool otherwise
};
struct ToolDrift {
    std::string tool;
    Drift kind = Drift::request;
    std::int64_t open = 0;    // key, request: operations; at most kMostCounted
    std::string worker = {};  // revision: name of that daemon

    static constexpr std::int64_t kMostCounted = 1000;
};

// A claimed operation that is sent once more: journaled like an attempt.
struct ResentAttempt {
    Epoch epoch;  // identifies the attempt; the verdict's write compares it
    int attempts = 0;
};

struct MaintenanceReport {
    int promoted = 0;                           // scheduled → pending
    int lease_expired = 0;                      // attempting → unknown (write) or scheduled (read)
    int expired = 0;                            // pending, scheduled → failed `expired`
    bool more = false;                          // a page was full: come again at once
    std::map<std::string, int> became_unknown;  // of lease_expired, per tool
};

struct WorkerInfo {
    WorkerId id;
    std::string name;
    std::string version;
    std::vector<std::string> tools;
};

struct ToolSample {  // one row of the sampled gauges
    std::string tool;
    Status status;
    std::int64_t count = 0;
    double oldest_seconds = 0;
    bool served = true;  // a daemon that is alive runs this tool
};

// What one roll-up counted: every enqueue and every replay is counted by one call of one daemon.
struct ToolTally {
    std::string tool;  // of the catalogue, or "other"
    std::int64_t enqueued = 0;
    std::int64_t replayed = 0;
};
struct RollUp {
    std::vector<ToolTally> tools;
    bool more = false;  // a page was full: come again at once
};

// The database came back on another timeline: what was open then is unknown first.
struct TimelineChange {
    std::string was;
    std::string now;
    std::map<std::string, int> unknown;  // operations per tool that this call moved
};

// When a statement ran, on both clocks: the database's time lies between the two.
struct ClockSample {
    DbTime database;
    BootClock::time_point before;
    BootClock::time_point after;
};

// The database as the loops see it. Every method is one round trip in one transaction unless it
// says otherwise, throws StoreError, and is not cancellable: its time limit is the server's.
class Store {
 public:
    virtual ~Store() = default;

    // What statements brought to light besides their answer; called on the io thread, if set. A
    // store whose clock is not the database's calls neither.
    std::function<void(const TimelineChange&)> on_timeline;
    std::function<void(const ClockSample&)> on_clock;

    // Takes ready rows and journals the attempts, committed with a flush before it returns.
    // Paused tools yield nothing, and so do all while a timeline change is not settled: before that
    // nothing is leased on a new connection. After an error the caller must call
    // release_lost_leases.
    virtual asio::awaitable<std::vector<LeasedAttempt>> lease(LeaseRequest request) = 0;

    // Gives back rows that an unacknowledged lease took for this worker and that were never
    // dispatched: attempting, leased by the worker, and not in flight. Returns how many. Two round
    // trips: it reads which, and writes by the epochs it read, like everybody.
    virtual asio::awaitable<int> release_lost_leases(
        WorkerId worker, std::vector<Seq> in_flight
    ) = 0;

    // Writes a batch, fenced row by row; the answer has one Fate per transition, in order.
    // A retry after in_doubt finds its own earlier writes and reports them as applied.
    virtual asio::awaitable<std::vector<Fate>> complete(std::vector<Transition> batch) = 0;

    // Stores a fenced attempt's answer as `late_result` and lets it count as states.md says.
    virtual asio::awaitable<LateFate> record_late(Transition late) = 0;

    // Claims due unknown operations of the given tools; moves their epoch.
    virtual asio::awaitable<std::vector<ClaimedProbe>> claim_probes(
        WorkerId worker, std::chrono::milliseconds margin, std::vector<ReconcileLane> lanes
    ) = 0;

    // Journals a resend of what the worker has claimed under that epoch, committed with a flush
    // before it returns: one attempt more, a new attempt epoch, a hard deadline `timeout` from now.
    // Empty: somebody else moved the operation meanwhile. After an error it may be journaled or
    // not; nothing was sent, and the claim ends by itself.
    virtual asio::awaitable<std::optional<ResentAttempt>> journal_resend(
        WorkerId worker,
        Seq seq,
        Epoch claimed,
        std::chrono::milliseconds timeout,
        std::chrono::milliseconds margin
    ) = 0;

    // One page of promotion, lease expiry (by time, by stale workers), and expires_at, over every
    // tool of the catalogue. judge_workers: this daemon had a healthy connection for 15 s.
    virtual asio::awaitable<MaintenanceReport> maintain(bool judge_workers) = 0;

    virtual asio::awaitable<void> heartbeat(WorkerInfo worker) = 0;
    virtual asio::awaitable<void> retire(WorkerId worker) = 0;  // a graceful stop

    // Upserts these tools into the catalogue, never touches others'.
    virtual asio::awaitable<void> publish_tools(WorkerId worker, std::vector<ToolPolicy> tools) = 0;

    // What these tools, once published, would not agree with. `siblings`: workers of this very
    // process, whose earlier configurations are meant to go.
    virtual asio::awaitable<std::vector<ToolDrift>> find_drift(
        std::vector<ToolPolicy> tools, std::vector<WorkerId> siblings
    ) = 0;

    // Key settings an operation's first attempt used, when its request_hash is not the present one.
    virtual asio::awaitable<std::optional<KeySettings>> key_settings(
        std::string tool, std::int64_t request_hash
    ) = 0;

    // Keeps with an attempt what it can be asked about by, committed with a flush. Not fenced: it
    // is as true once somebody else has the operation, and then it is needed.
    virtual asio::awaitable<void> keep_handle(
        OperationId id, Epoch attempt, std::string handle
    ) = 0;
    // The last one of that attempt.
    virtual asio::awaitable<std::optional<std::string>> find_handle(
        OperationId id, Epoch attempt
    ) = 0;

    virtual asio::awaitable<std::vector<ToolSample>> sample() = 0;

    // Counts what was enqueued and replayed since the last roll-up, by whichever daemon that was.
    virtual asio::awaitable<RollUp> roll_up() = 0;
};

}  // namespace outbox
