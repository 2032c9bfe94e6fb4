#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "outbox/attention_count.hpp"
#include "outbox/failpoint.hpp"
#include "outbox/observer.hpp"
#include "outbox/pg/retention.hpp"
#include "outbox/pg/timeline.hpp"
#include "outbox/store.hpp"

namespace outbox::pg {

class Lane;

// How far vacuum may go (sample_horizon.sql), in transaction ids.
struct Horizon {
    std::int64_t next_id = 0;
    std::int64_t ids_back = 0;
};

// Store on libpqxx: SQL text → structs, no policy. Three lanes, each one thread with a connection
// of its own: lease (leases, heartbeats), complete (what attempts and probes ended as) and
// maintain (claims, promotion, expiry, catalogue, samples). Methods are called on the io thread.
// The destructor waits for the statements under way; no method may be suspended then.
class PgStore : public Store {
 public:
    // The observer may be null; only its statement_done is called, from the lanes' threads.
    // Nor need there be failpoints.
    PgStore(
        const std::string& dsn,
        WorkerId worker,
        Observer* observer,
        Failpoints* failpoints = nullptr
    );
    ~PgStore() override;
    PgStore(const PgStore&) = delete;
    PgStore& operator=(const PgStore&) = delete;

    asio::awaitable<std::vector<LeasedAttempt>> lease(LeaseRequest request) override;
    asio::awaitable<int> release_lost_leases(WorkerId worker, std::vector<Seq> in_flight) override;
    // Up to two statements (finals, others) and a look at what found no row.
    asio::awaitable<std::vector<Fate>> complete(std::vector<Transition> batch) override;
    asio::awaitable<LateFate> record_late(Transition late) override;
    asio::awaitable<std::vector<ClaimedProbe>> claim_probes(
        WorkerId worker, std::chrono::milliseconds margin, std::vector<ReconcileLane> lanes
    ) override;
    // One transaction per kind.
    asio::awaitable<std::optional<ResentAttempt>> journal_resend(
        WorkerId worker,
        Seq seq,
        Epoch claimed,
        std::chrono::milliseconds timeout,
        std::chrono::milliseconds margin
    ) override;
    asio::awaitable<MaintenanceReport> maintain(bool judge_workers) override;
    asio::awaitable<void> heartbeat(WorkerInfo worker) override;
    asio::awaitable<void> retire(WorkerId worker) override;
    asio::awaitable<void> publish_tools(WorkerId worker, std::vector<ToolPolicy> tools) override;
    asio::awaitable<std::vector<ToolDrift>> find_drift(
        std::vector<ToolPolicy> tools, std::vector<WorkerId> siblings
    ) override;
    asio::awaitable<std::optional<KeySettings>> key_settings(
        std::string tool, std::int64_t request_hash
    ) override;
    asio::awaitable<void> keep_handle(OperationId id, Epoch attempt, std::string handle) override;
    asio::awaitable<std::optional<std::string>> find_handle(OperationId id, Epoch attempt) override;
    asio::awaitable<std::vector<ToolSample>> sample() override;
    asio::awaitable<RollUp> roll_up() override;
    asio::awaitable<Horizon> horizon();
    asio::awaitable<std::vector<AttentionCount>> attention();
    // A page of retention, on the maintain lane.
    asio::awaitable<PrunePage> prune(
        Prune what, std::chrono::milliseconds older_than, std::int64_t after, int rows
    );

 private:
    void hit(FailpointId id) const {
        if (failpoints_ != nullptr) failpoints_->hit_blocking(id);
    }

    // Where the last page of waiting compensations ended.
    struct Waiting {
        std::string original = "0";
        std::string seq = "0";
    };
    MaintenanceReport run_maintenance(Session& session, bool judge_workers);
    void expire_operations(Session& session, const std::string& page, MaintenanceReport& report);
    void expire_leases(Session& session, const Parameters& parameters, MaintenanceReport& report);
    void settle_compensations(Session& session, MaintenanceReport& report);

    void tell(const std::optional<TimelineChange>& change) const;
    void tell(const std::optional<ClockSample>& sample) const;

    WorkerId worker_;  // for the events of completions
    Failpoints* failpoints_;
    TimelineGuard guard_;           // used on the lease lane only
    TimelineGuard maintain_guard_;  // … and on the maintain lane
    Waiting waiting_;               // on the maintain lane
    std::unique_ptr<Lane> lease_;
    std::unique_ptr<Lane> complete_;
    std::unique_ptr<Lane> maintain_;
};

}  // namespace outbox::pg
