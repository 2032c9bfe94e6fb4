#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "outbox/store.hpp"

namespace test {

namespace asio = boost::asio;

// The Store contract in memory, kept equal to PgStore by tests/support/store_contract: leases,
// fencing, completion, evidence, claims, maintenance; faults on demand. Its clock is the machine's
// plus what advance() added. Final operations stay in the same row, as status tells.
class MemoryStore : public outbox::Store {
 public:
    struct Row {
        outbox::Intent intent;
        outbox::Status status = outbox::Status::pending;
        std::int32_t epoch = 0;
        std::int32_t attempt_epoch = 0;
        int attempts = 0;
        std::optional<outbox::DbTime> due_at;  // empty: infinity
        std::optional<outbox::DbTime> expires_at;
        outbox::WorkerId leased_by;
        outbox::DbTime deadline_at;
        std::optional<outbox::DbTime> started_at;
        std::optional<outbox::DbTime> unknown_since;
        bool ambiguous = false;
        bool accepted = false;
        std::int64_t request_hash = 0;
        outbox::ProbeMemory probe;
        std::optional<outbox::AttentionReason> attention;
        bool asked = false;
        outbox::Json result;
        std::optional<outbox::Error> error;
        std::vector<outbox::Event> events;
        std::optional<std::int64_t> waits_for;    // seq of the original a compensation waits for
        std::optional<std::int32_t> first_doubt;  // epoch of the first event that tells of a doubt
        [[nodiscard]] std::string event_kinds() const;
        [[nodiscard]] bool is_final() const;
    };
    enum class Method {
        lease,
        find_lost,
        release,
        complete,
        late,
        claim,
        resend,
        maintain,
        heartbeat,
        publish
    };
    struct Fault {
        outbox::StoreError::Kind kind = outbox::StoreError::Kind::unavailable;
        bool written = false;  // the statement was committed all the same
        bool delayed = false;  // … or will be, after the caller was told (run_delayed)
    };

    // A pending operation (scheduled when run_in is given).
    outbox::OperationId insert(
        std::string tool,
        std::string id,
        std::optional<int> max_attempts = {},
        std::int16_t priority = 0,
        std::optional<std::chrono::milliseconds> run_in = {},
        std::optional<std::chrono::milliseconds> expires_in = {}
    );
    // What planners may do to it; true when it did something.
    bool cancel(const std::string& id);
    bool retry(const std::string& id);
    // outbox.compensate with the tool's one compensation, TOOL:undo; the id of what the answer is
    // about: the compensation, or the original where that was cancelled or there is nothing to
    // undo.
    std::string compensate(const std::string& id);
    // outboxd probe ID.
    void ask(const std::string& id);

    Row& row(const std::string& id);
    [[nodiscard]] const std::map<std::int64_t, Row>& rows() const { return rows_; }
    // The next call of that method fails so; several faults queue.
    void fail(Method method, Fault fault) { faults_[method].push_back(std::move(fault)); }
    void clear_faults() { faults_.clear(); }
    void set_down(bool down) { down_ = down; }      // every call is unavailable
    void lock(const std::string& id, bool locked);  // completing it is a conflict
    void pause(const std::string& tool) { paused_.insert(tool); }
    void resume(const std::string& tool) { paused_.erase(tool); }
    void advance(std::chrono::microseconds by) { offset_ += by; }  // its clock, and it alone
    [[nodiscard]] outbox::DbTime now() const;

    // A simulation's hooks: a fault for this call, the way of a message to the database and back,
    // a statement that is carried out after its caller was told otherwise, and each move.
    std::function<std::optional<Fault>(Method)> on_call;
    std::function<asio::awaitable<void>()> travel;
    std::function<void(std::function<void()>)> run_delayed;
    std::function<void(const Row& row, outbox::Status from)> on_move;

    // Observed.
    std::set<std::pair<outbox::Status, outbox::Status>> moves;
    std::vector<std::size_t> batches;
    std::map<Method, int> calls;
    std::set<std::string> retired;

    asio::awaitable<std::vector<outbox::LeasedAttempt>> lease(outbox::LeaseRequest request
    ) override;
    asio::awaitable<int> release_lost_leases(
        outbox::WorkerId worker, std::vector<outbox::Seq> in_flight
    ) override;
    asio::awaitable<std::vector<outbox::Fate>> complete(std::vector<outbox::Transition> batch
    ) override;
    asio::awaitable<outbox::LateFate> record_late(outbox::Transition late) override;
    asio::awaitable<std::vector<outbox::ClaimedProbe>> claim_probes(
        outbox::WorkerId worker,
        std::chrono::milliseconds margin,
        std::vector<outbox::ReconcileLane> lanes
    ) override;
    asio::awaitable<std::optional<outbox::ResentAttempt>> journal_resend(
        outbox::WorkerId worker,
        outbox::Seq seq,
        outbox::Epoch claimed,
        std::chrono::milliseconds timeout,
        std::chrono::milliseconds margin
    ) override;
    asio::awaitable<outbox::MaintenanceReport> maintain(bool judge_workers) override;
    asio::awaitable<void> heartbeat(outbox::WorkerInfo worker) override;
    asio::awaitable<void> retire(outbox::WorkerId worker) override;
    asio::awaitable<void> publish_tools(
        outbox::WorkerId worker, std::vector<outbox::ToolPolicy> tools
    ) override;
    // Of other daemons it knows nothing: what is open under another request, no revisions.
    asio::awaitable<std::vector<outbox::ToolDrift>> find_drift(
        std::vector<outbox::ToolPolicy> tools, std::vector<outbox::WorkerId> siblings
    ) override;
    asio::awaitable<std::optional<outbox::KeySettings>> key_settings(
        std::string tool, std::int64_t request_hash
    ) override;
    asio::awaitable<void> keep_handle(
        outbox::OperationId id, outbox::Epoch attempt, std::string handle
    ) override;
    asio::awaitable<std::optional<std::string>> find_handle(
        outbox::OperationId id, outbox::Epoch attempt
    ) override;
    asio::awaitable<std::vector<outbox::ToolSample>> sample() override;
    // The store in memory keeps no statistics.
    asio::awaitable<outbox::RollUp> roll_up() override;

 private:
    struct Worker {
        outbox::DbTime heartbeat_at;
        bool stopped = false;
    };
    // One round trip: others run meanwhile, the fault of this call strikes before or after.
    template <class Statement>
    asio::awaitable<std::invoke_result_t<Statement&>> round_trip(
        Method method, Statement statement
    );
    asio::awaitable<void> way(bool back);
    std::optional<Fault> next_fault(Method method);

    void move(Row& row, outbox::Status to);
    static void tell(Row& row, outbox::Event event);
    static void tell(Row& row, outbox::EventKind kind);
    std::vector<outbox::LeasedAttempt> lease_now(const outbox::LeaseRequest& request);
    void lease_lane(
        const outbox::LeaseRequest& request,
        const outbox::LeaseLane& lane,
        std::vector<outbox::LeasedAttempt>& leased
    );
    [[nodiscard]] std::int64_t asked(const Row& row, std::int64_t hash) const;
    [[nodiscard]] std::optional<outbox::KeySettings> recorded_key(
        const std::string& tool, std::int64_t hash
    ) const;
    static bool same_key(const outbox::KeySettings& a, const outbox::KeySettings& b);
    using Lost = std::vector<std::pair<std::int64_t, std::int32_t>>;  // seq and epoch
    [[nodiscard]] Lost find_lost(
        const outbox::WorkerId& worker, const std::vector<outbox::Seq>& in_flight
    ) const;
    int release_now(const Lost& lost);
    std::vector<outbox::ClaimedProbe> claim_now(
        const outbox::WorkerId& worker,
        std::chrono::milliseconds margin,
        const std::vector<outbox::ReconcileLane>& lanes
    );
    outbox::MaintenanceReport maintain_now(bool judge_workers);
    int expire_operations();
    int expire_leases(bool judge_workers);
    void expire_lease(Row& row);
    std::optional<outbox::ResentAttempt> resend_now(
        const outbox::WorkerId& worker,
        outbox::Seq seq,
        outbox::Epoch claimed,
        std::chrono::milliseconds timeout,
        std::chrono::milliseconds margin
    );
    int promote();
    int settle_compensations();
    void arm_again(Row& row);
    void end_waiting(Row& row);
    void fill_original(outbox::Intent& intent) const;
    [[nodiscard]] std::vector<std::string> stale_workers() const;

    // memory_store_writes.cpp
    std::vector<outbox::Fate> complete_now(const std::vector<outbox::Transition>& batch);
    outbox::Fate write(const outbox::Transition& transition);
    outbox::Fate finish(Row& row, const outbox::Transition& transition, outbox::Status to);
    void go_on(Row& row, const outbox::Transition& transition);
    outbox::LateFate record_late_now(const outbox::Transition& late);
    outbox::LateFate late_effect(Row& row, const outbox::Transition& late);
    bool late_no_effect(Row& row, const outbox::Transition& late);

    std::map<std::int64_t, Row> rows_;  // by seq
    std::map<std::string, std::int64_t> seqs_;
    std::map<std::pair<std::string, std::int32_t>, std::string> handles_;  // by id, attempt epoch
    std::map<Method, std::deque<Fault>> faults_;
    std::map<std::string, outbox::ToolPolicy> tools_;
    struct Request {
        outbox::KeySettings key;
        bool leaves_doubt = true;
    };
    std::map<std::pair<std::string, std::int64_t>, Request> requests_;
    std::map<std::string, Worker> workers_;
    std::set<std::string> paused_;
    std::set<std::int64_t> locked_;
    std::chrono::microseconds offset_{0};
    bool down_ = false;
};

}  // namespace test
