#include "outbox/pg/pg_store.hpp"

#include <utility>

#include "outbox/pg/announcement.hpp"
#include "outbox/pg/array_text.hpp"
#include "outbox/pg/catalogue.hpp"
#include "outbox/pg/completion.hpp"
#include "outbox/pg/lane.hpp"
#include "outbox/pg/lane_parameters.hpp"
#include "outbox/pg/rows.hpp"
#include "sql/queries.hpp"

// House-style rule 11 (GCC 12): every job is a named lambda before it meets a co_await.
namespace outbox::pg {

namespace {

using namespace std::chrono_literals;

// A completion never waits long for a row that a person locked: the others want to be written.
constexpr SessionSettings kLease{.statement_timeout = 15s, .lock_timeout = 2s, .hot = true};
constexpr SessionSettings kComplete{.statement_timeout = 15s, .lock_timeout = 250ms, .hot = true};
constexpr SessionSettings kMaintain{.statement_timeout = 30s, .lock_timeout = 2s};

struct LeaseAnswer {
    std::vector<LeasedAttempt> leased;
    std::optional<TimelineChange> change;
    std::optional<ClockSample> clock;
};

struct ClaimAnswer {
    std::vector<ClaimedProbe> claims;
    std::optional<TimelineChange> change;
    std::optional<ClockSample> clock;
};

// Rows per tool and kind in one page of maintenance.
constexpr int kMaintenancePage = 500;

// How often evidence is weighed again when the operation moved under the statement.
constexpr int kLateTries = 10;

LateFate record(Session& session, const std::string& id, const Parameters& parameters) {
    for (int tries = 0; tries < kLateTries; ++tries) {
        // Before a timeline change is settled, "pending" does not mean "without effect": an answer
        // that counted then would flag what only has to be looked up.
        auto found = session.write_if(sql::check_timeline, sql::record_late_result, parameters);
        if (!found) {
            throw StoreError(StoreError::Kind::conflict, "a timeline change is not settled yet");
        }
        if (!found->empty()) {
            std::string fate = (*found)[0]["fate"].c_str();
            if ((*found)[0]["ended"].as<bool>()) announce(session, {id});
            return fate == "settled"     ? LateFate::settled
                   : fate == "flagged"   ? LateFate::flagged
                   : fate == "duplicate" ? LateFate::duplicate
                                         : LateFate::stored;
        }
    }
    throw StoreError(StoreError::Kind::conflict, "the operation moves faster than its evidence");
}

std::string text_array(const std::vector<std::string>& texts) {
    ArrayText array;
    for (const auto& text : texts) {
        array.add(std::string_view(text));
    }
    return std::move(array).take();
}

}  // namespace

PgStore::PgStore(
    const std::string& dsn, WorkerId worker, Observer* observer, Failpoints* failpoints
)
    : worker_(std::move(worker)),
      failpoints_(failpoints),
      lease_(std::make_unique<Lane>(dsn, kLease, observer)),
      complete_(std::make_unique<Lane>(dsn, kComplete, observer)),
      maintain_(std::make_unique<Lane>(dsn, kMaintain, observer)) {}

PgStore::~PgStore() = default;

asio::awaitable<std::vector<LeasedAttempt>> PgStore::lease(LeaseRequest request) {
    auto work = [this, request = std::move(request)](Session& session) {
        LeaseAnswer answer;
        const auto before = BootClock::now();
        auto rows = guard_.write(session, sql::lease_operations, lease_parameters(request));
        answer.change = guard_.take_change();
        if (!rows) return answer;
        hit(FailpointId::after_lease_before_read);
        answer.leased = read_leased(*rows);
        if (!answer.leased.empty()) {
            answer.clock = {answer.leased.front().leased_at, before, BootClock::now()};
        }
        return answer;
    };
    auto answer = co_await lease_->run(std::move(work));
    tell(answer.change);
    tell(answer.clock);
    co_return std::move(answer.leased);
}

void PgStore::tell(const std::optional<TimelineChange>& change) const {
    if (change && on_timeline) on_timeline(*change);
}

void PgStore::tell(const std::optional<ClockSample>& sample) const {
    if (sample && on_clock) on_clock(*sample);
}

asio::awaitable<int> PgStore::release_lost_leases(WorkerId worker, std::vector<Seq> in_flight) {
    auto work = [this,
                 worker = std::move(worker),
                 in_flight = std::move(in_flight)](Session& session) {
        ArrayText flying;
        for (const auto& seq : in_flight) {
            flying.add(seq.value);
        }
        auto lost = session.read(sql::find_lost_leases, {worker.value, std::move(flying).take()});
        ArrayText seqs;
        ArrayText epochs;
        for (const auto& row : lost) {
            seqs.add(row["seq"].as<std::int64_t>());
            epochs.add(row["lease_epoch"].as<std::int64_t>());
        }
        // On another timeline an attempt that has long been reported may look like one that was
        // never dispatched: there the guard takes it away from this worker first.
        auto rows = guard_.write(
            session,
            sql::release_lost_leases,
            {worker.value, std::move(seqs).take(), std::move(epochs).take()}
        );
        if (!rows) {
            throw StoreError(StoreError::Kind::unavailable, "a timeline change is being settled");
        }
        return (*rows)[0]["released"].as<int>();
    };
    co_return co_await lease_->run(std::move(work));
}

asio::awaitable<std::vector<Fate>> PgStore::complete(std::vector<Transition> batch) {
    auto work = [this, batch = std::move(batch)](Session& session) {
        Completion completion(session, batch, worker_, failpoints_);
        auto fates = completion.run();
        hit(FailpointId::after_complete_before_read);
        announce(session, completion.ended());
        return fates;
    };
    co_return co_await complete_->run(std::move(work));
}

asio::awaitable<LateFate> PgStore::record_late(Transition late) {
    auto work = [this, late = std::move(late)](Session& session) {
        try {
            return record(session, late.id.value, late_parameters(late, worker_));
        } catch (const StoreError& error) {
            if (error.kind() != StoreError::Kind::data) {
                throw;
            }
            const auto safe = last_resort(late, error.what());
            return record(session, late.id.value, late_parameters(safe, worker_));
        }
    };
    co_return co_await complete_->run(std::move(work));
}

asio::awaitable<std::vector<ClaimedProbe>> PgStore::claim_probes(
    WorkerId worker, std::chrono::milliseconds margin, std::vector<ReconcileLane> lanes
) {
    auto parameters = probe_parameters(worker, margin, lanes);
    auto work = [this, parameters = std::move(parameters)](Session& session) {
        ClaimAnswer answer;
        const auto before = BootClock::now();
        auto rows = maintain_guard_.write(session, sql::claim_probes, parameters);
        answer.change = maintain_guard_.take_change();
        if (!rows) return answer;
        hit(FailpointId::after_claim_before_read);
        answer.claims = read_claimed(*rows);
        if (!answer.claims.empty()) {
            answer.clock = {answer.claims.front().probe_started_at, before, BootClock::now()};
        }
        return answer;
    };
    auto answer = co_await maintain_->run(std::move(work));
    tell(answer.change);
    tell(answer.clock);
    co_return std::move(answer.claims);
}

asio::awaitable<std::optional<ResentAttempt>> PgStore::journal_resend(
    WorkerId worker,
    Seq seq,
    Epoch claimed,
    std::chrono::milliseconds timeout,
    std::chrono::milliseconds margin
) {
    Parameters parameters{
        worker.value,
        std::to_string(seq.value),
        std::to_string(claimed.value),
        std::to_string(timeout.count()),
        std::to_string(margin.count())
    };
    auto work = [this, parameters = std::move(parameters)](Session& session) {
        std::optional<ResentAttempt> resent;
        auto rows = maintain_guard_.write(session, sql::journal_resend, parameters);
        if (rows && !rows->empty()) resent = read_resent((*rows)[0]);
        return std::pair(resent, maintain_guard_.take_change());
    };
    auto [resent, change] = co_await maintain_->run(std::move(work));
    tell(change);
    co_return resent;
}

// Nothing ends as `expired`, nothing is probed and no original is withdrawn while a timeline change
// is not settled: a lost attempt may have had its effect.
MaintenanceReport PgStore::run_maintenance(Session& session, bool judge_workers) {
    const auto page = std::to_string(kMaintenancePage);
    const std::string judge = judge_workers ? "t" : "f";
    MaintenanceReport report;
    const auto look = maintain_guard_.write(session, sql::find_due, {judge});
    const bool due = !look || (*look)[0]["due"].as<bool>();
    if (due) expire_operations(session, page, report);
    hit(FailpointId::between_expiry_and_leases);
    if (due) expire_leases(session, {page, judge}, report);
    hit(FailpointId::between_leases_and_promotion);
    if (!due) return report;
    settle_compensations(session, report);
    auto promoted = session.write(sql::promote_due, {page});
    report.promoted += promoted[0]["promoted"].as<int>();
    report.more = report.more || promoted[0]["more"].as<bool>();
    return report;
}

void PgStore::expire_operations(
    Session& session, const std::string& page, MaintenanceReport& report
) {
    auto ended = maintain_guard_.write(session, sql::expire_operations, {page});
    if (!ended) return;
    report.expired = static_cast<int>(ended->size());
    report.more = report.expired >= kMaintenancePage;
    announce(session, read_texts(*ended));
}

void PgStore::expire_leases(
    Session& session, const Parameters& parameters, MaintenanceReport& report
) {
    for (const auto& row : session.write(sql::expire_leases, parameters)) {
        report.lease_expired += row["expired"].as<int>();
        if (std::string_view(row["status"].c_str()) == "unknown") {
            report.became_unknown[row["tool"].c_str()] += row["expired"].as<int>();
        }
        report.more = report.more || row["expired"].as<int>() >= kMaintenancePage;
    }
}

// Compensations that may run count as promoted: both wake the leaser.
void PgStore::settle_compensations(Session& session, MaintenanceReport& report) {
    const auto page = std::to_string(kMaintenancePage);
    auto settled = maintain_guard_.write(
        session, sql::settle_compensations, {page, waiting_.original, waiting_.seq}
    );
    if (!settled) return;
    const auto row = (*settled)[0];
    const auto armed = row["armed"].as<int>();
    const bool full = !row["seq"].is_null();
    waiting_ = {};
    if (full) waiting_ = {row["waits_for"].c_str(), row["seq"].c_str()};
    report.promoted += armed;
    // Most go on waiting: a full page alone is no reason to come again at once.
    report.more = report.more || (full && armed + row["cancelled"].as<int>() > 0);
    std::vector<std::string> ended;
    for (const auto& one : *settled) {
        if (!one["ended"].is_null()) ended.emplace_back(one["ended"].c_str());
    }
    announce(session, ended);
}

asio::awaitable<MaintenanceReport> PgStore::maintain(bool judge_workers) {
    auto work = [this, judge_workers](Session& session) {
        return run_maintenance(session, judge_workers);
    };
    co_return co_await maintain_->run(std::move(work));
}

asio::awaitable<void> PgStore::heartbeat(WorkerInfo worker) {
    auto work = [this, worker = std::move(worker)](Session& session) {
        hit(FailpointId::before_heartbeat);
        ClockSample clock;
        clock.before = BootClock::now();
        auto rows = session.write(
            sql::heartbeat,
            {worker.id.value,
             without_nul(worker.name),
             without_nul(worker.version),
             text_array(worker.tools)}
        );
        clock.after = BootClock::now();
        hit(FailpointId::after_heartbeat);
        clock.database = DbTime(std::chrono::microseconds(rows[0]["now"].as<std::int64_t>()));
        return clock;
    };
    auto clock = co_await lease_->run(std::move(work));
    tell(clock);
}

asio::awaitable<void> PgStore::retire(WorkerId worker) {
    auto work = [worker = std::move(worker)](Session& session) {
        session.write(sql::retire_worker, {worker.value});
    };
    co_await lease_->run(std::move(work));
}

asio::awaitable<void> PgStore::publish_tools(WorkerId worker, std::vector<ToolPolicy> tools) {
    auto work = [worker = std::move(worker), tools = std::move(tools)](Session& session) {
        session.write(sql::publish_tools, {worker.value, without_nul(catalogue_text(tools))});
    };
    co_await maintain_->run(std::move(work));
}

asio::awaitable<std::vector<ToolDrift>> PgStore::find_drift(
    std::vector<ToolPolicy> tools, std::vector<WorkerId> siblings
) {
    std::vector<std::string> own;
    for (const auto& worker : siblings) own.push_back(worker.value);
    Parameters parameters{
        without_nul(catalogue_text(tools)), text_array(own), std::to_string(ToolDrift::kMostCounted)
    };
    auto work = [parameters = std::move(parameters)](Session& session) {
        return read_drifts(session.read(sql::find_drift, parameters));
    };
    co_return co_await maintain_->run(std::move(work));
}

asio::awaitable<std::optional<KeySettings>> PgStore::key_settings(
    std::string tool, std::int64_t request_hash
) {
    auto work = [tool = std::move(tool), request_hash](Session& session) {
        std::optional<KeySettings> settings;
        auto rows =
            session.read(sql::key_settings, {without_nul(tool), std::to_string(request_hash)});
        if (!rows.empty()) {
            settings = read_key_settings(rows[0][0].c_str());
        }
        return settings;
    };
    co_return co_await maintain_->run(std::move(work));
}

asio::awaitable<void> PgStore::keep_handle(OperationId id, Epoch attempt, std::string handle) {
    Parameters parameters{id.value, std::to_string(attempt.value), without_nul(handle)};
    auto work = [parameters = std::move(parameters)](Session& session) {
        session.write(sql::keep_handle, parameters);
    };
    co_await maintain_->run(std::move(work));
}

asio::awaitable<std::optional<std::string>> PgStore::find_handle(OperationId id, Epoch attempt) {
    Parameters parameters{id.value, std::to_string(attempt.value)};
    auto work = [parameters = std::move(parameters)](Session& session) {
        std::optional<std::string> handle;
        const auto rows = session.read(sql::find_handle, parameters);
        if (!rows.empty()) handle = rows[0][0].c_str();
        return handle;
    };
    co_return co_await maintain_->run(std::move(work));
}

asio::awaitable<PrunePage> PgStore::prune(
    Prune what, std::chrono::milliseconds older_than, std::int64_t after, int rows
) {
    auto work = [=](Session& session) { return pg::prune(session, what, older_than, after, rows); };
    co_return co_await maintain_->run(std::move(work));
}

}  // namespace outbox::pg
