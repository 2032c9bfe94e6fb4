#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "outbox/store.hpp"

namespace test {

namespace asio = boost::asio;

// The Store contract in memory: leases, fencing, completion, evidence, claims, maintenance. Enough
// for the loops; faults on demand. Its clock is the machine's plus what advance() added.
class MemoryStore : public outbox::Store {
  public:
    struct Row {
        outbox::Intent intent;
        outbox::Status status = outbox::Status::pending;
        std::int32_t epoch = 0;
        std::int32_t attempt_epoch = 0;
        int attempts = 0;
        std::optional<outbox::DbTime> due_at;  // empty: infinity
        outbox::WorkerId leased_by;
        outbox::DbTime deadline_at;
        std::optional<outbox::DbTime> started_at;
        std::optional<outbox::DbTime> unknown_since;
        bool ambiguous = false;
        std::int64_t request_hash = 0;
        outbox::ProbeMemory probe;
        std::optional<outbox::AttentionReason> attention;
        bool asked = false;
        outbox::Json result;
        std::optional<outbox::Error> error;
        std::vector<outbox::Event> events;
        [[nodiscard]] std::string event_kinds() const;
    };
    enum class Method { lease, release, complete, late, claim, maintain, heartbeat, publish };
    struct Fault {
        outbox::StoreError::Kind kind = outbox::StoreError::Kind::unavailable;
        bool written = false;  // the statement was committed all the same
    };

    // A pending operation (scheduled when run_in is given).
    outbox::OperationId insert(
        std::string tool,
        std::string id,
        std::optional<int> max_attempts = {},
        std::int16_t priority = 0,
        std::optional<std::chrono::milliseconds> run_in = {}
    );
    Row& row(const std::string& id);
    [[nodiscard]] const std::map<std::int64_t, Row>& rows() const { return rows_; }
    // The next call of that method fails so; several faults queue.
    void fail(Method method, Fault fault) { faults_[method].push_back(fault); }
    void clear_faults() { faults_.clear(); }
    void set_down(bool down) { down_ = down; }  // every call is unavailable
    void lock(const std::string& id, bool locked);  // completing it is a conflict
    void pause(const std::string& tool) { paused_.insert(tool); }
    void advance(std::chrono::milliseconds by) { offset_ += by; }
    [[nodiscard]] outbox::DbTime now() const;

    // Observed.
    std::set<std::pair<outbox::Status, outbox::Status>> moves;
    std::vector<std::size_t> batches;
    std::map<Method, int> calls;
    std::set<std::string> retired;

    asio::awaitable<std::vector<outbox::LeasedAttempt>> lease(outbox::LeaseRequest request) override;
    asio::awaitable<int> release_lost_leases(
        outbox::WorkerId worker, std::vector<outbox::Seq> in_flight
    ) override;
    asio::awaitable<std::vector<outbox::Fate>> complete(
        std::vector<outbox::Transition> batch
    ) override;
    asio::awaitable<outbox::LateFate> record_late(outbox::Transition late) override;
    asio::awaitable<std::vector<outbox::ClaimedProbe>> claim_probes(
        outbox::WorkerId worker,
        std::chrono::milliseconds margin,
        std::vector<outbox::ReconcileLane> lanes
    ) override;
    asio::awaitable<outbox::MaintenanceReport> maintain(bool judge_workers) override;
    asio::awaitable<void> heartbeat(outbox::WorkerInfo worker) override;
    asio::awaitable<void> retire(outbox::WorkerId worker) override;
    asio::awaitable<void> publish_tools(
        outbox::WorkerId worker, std::vector<outbox::ToolPolicy> tools
    ) override;
    asio::awaitable<std::optional<outbox::KeySettings>> key_settings(
        std::string tool, std::int64_t request_hash
    ) override;
    asio::awaitable<std::vector<outbox::ToolSample>> sample() override;

  private:
    // Lets others run, as a round trip would, then throws the method's next fault if that comes
    // before the statement; the rest is thrown by after().
    asio::awaitable<std::optional<Fault>> begin(Method method);
    static void after(const std::optional<Fault>& fault);
    void move(Row& row, outbox::Status to);
    void lease_lane(
        const outbox::LeaseRequest& request,
        const outbox::LeaseLane& lane,
        std::vector<outbox::LeasedAttempt>& leased
    );
    outbox::Fate write(const outbox::Transition& transition);
    void expire_lease(Row& row);
    [[nodiscard]] bool stale(const outbox::WorkerId& worker) const;

    std::map<std::int64_t, Row> rows_;  // by seq
    std::map<Method, std::deque<Fault>> faults_;
    std::map<std::string, outbox::ToolPolicy> tools_;
    std::map<std::pair<std::string, std::int64_t>, outbox::KeySettings> requests_;
    std::map<std::string, outbox::DbTime> heartbeats_;
    std::set<std::string> paused_;
    std::set<std::int64_t> locked_;
    std::chrono::microseconds offset_{0};
    bool down_ = false;
};

}  // namespace test
