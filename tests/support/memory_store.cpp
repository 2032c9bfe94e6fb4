#include "tests/support/memory_store.hpp"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <stdexcept>

#include "outbox/clock.hpp"

namespace test {

using namespace outbox;
using std::chrono::milliseconds;

namespace {

constexpr int kPage = 100;
constexpr std::chrono::seconds kStale{15};

bool is_final(Status status) {
    return status == Status::succeeded || status == Status::failed || status == Status::cancelled;
}

}  // namespace

std::string MemoryStore::Row::event_kinds() const {
    std::string text;
    for (const auto& event : events) {
        if (!text.empty()) text += ' ';
        text += to_string(event.kind);
    }
    return text;
}

OperationId MemoryStore::insert(
    std::string tool,
    std::string id,
    std::optional<int> max_attempts,
    std::int16_t priority,
    std::optional<milliseconds> run_in
) {
    Row row;
    row.intent.seq = Seq(static_cast<std::int64_t>(rows_.size()) + 1);
    row.intent.id = OperationId(std::move(id));
    row.intent.tool = std::move(tool);
    row.intent.arguments = Json::Object{};
    row.intent.max_attempts = max_attempts;
    row.intent.priority = priority;
    row.intent.created_at = now();
    if (run_in) {
        row.status = Status::scheduled;
        row.due_at = now() + *run_in;
    }
    auto operation = row.intent.id;
    rows_.emplace(row.intent.seq.value, std::move(row));
    return operation;
}

MemoryStore::Row& MemoryStore::row(const std::string& id) {
    const auto found = std::find_if(rows_.begin(), rows_.end(), [&](const auto& entry) {
        return entry.second.intent.id.value == id;
    });
    if (found == rows_.end()) throw std::out_of_range("no operation " + id);
    return found->second;
}

void MemoryStore::lock(const std::string& id, bool locked) {
    if (locked) {
        locked_.insert(row(id).intent.seq.value);
    } else {
        locked_.erase(row(id).intent.seq.value);
    }
}

DbTime MemoryStore::now() const {
    const auto boot =
        std::chrono::duration_cast<std::chrono::microseconds>(BootClock::now().time_since_epoch());
    return DbTime(boot + offset_);
}

asio::awaitable<std::optional<MemoryStore::Fault>> MemoryStore::begin(Method method) {
    const auto executor = co_await asio::this_coro::executor;
    co_await asio::post(executor, asio::use_awaitable);
    ++calls[method];
    std::optional<Fault> fault;
    if (down_) fault = Fault{};
    if (auto& queue = faults_[method]; !queue.empty()) {
        fault = queue.front();
        queue.pop_front();
    }
    if (fault && !fault->written) after(fault);
    co_return fault;
}

void MemoryStore::after(const std::optional<Fault>& fault) {
    if (fault) throw StoreError(fault->kind, "as the test wants it");
}

void MemoryStore::move(Row& row, Status to) {
    if (row.status != to) moves.emplace(row.status, to);
    row.status = to;
    ++row.epoch;
}

void MemoryStore::lease_lane(
    const LeaseRequest& request, const LeaseLane& lane, std::vector<LeasedAttempt>& leased
) {
    std::vector<Row*> ready;
    for (auto& [seq, row] : rows_) {
        const auto place = std::pair(row.intent.priority, seq);
        if (row.intent.tool == lane.tool && row.status == Status::pending &&
            place > std::pair(lane.after.priority, lane.after.seq)) {
            ready.push_back(&row);
        }
    }
    std::stable_sort(ready.begin(), ready.end(), [](const Row* a, const Row* b) {
        return a->intent.priority < b->intent.priority;
    });
    ready.resize(std::min(ready.size(), static_cast<std::size_t>(lane.limit)));
    for (auto* row : ready) {
        move(*row, Status::attempting);
        row->attempt_epoch = row->epoch;
        ++row->attempts;
        row->leased_by = request.worker;
        row->deadline_at = now() + lane.timeout;
        row->due_at = row->deadline_at + request.margin;
        const bool first = !row->started_at;
        if (first) row->started_at = now();
        if (row->request_hash == 0) row->request_hash = lane.request_hash;
        LeasedAttempt attempt;
        attempt.intent = row->intent;
        attempt.epoch = Epoch(row->epoch);
        attempt.attempts = row->attempts;
        attempt.ambiguous = row->ambiguous;
        attempt.request_hash = row->request_hash;
        attempt.leased_at = now();
        attempt.deadline_at = row->deadline_at;
        attempt.first_attempt_at = *row->started_at;
        if (first) attempt.eligible_since = row->intent.created_at;
        leased.push_back(std::move(attempt));
    }
}

asio::awaitable<std::vector<LeasedAttempt>> MemoryStore::lease(LeaseRequest request) {
    const auto fault = co_await begin(Method::lease);
    std::vector<LeasedAttempt> leased;
    for (const auto& lane : request.lanes) {
        if (!paused_.contains(lane.tool)) lease_lane(request, lane, leased);
    }
    after(fault);
    co_return leased;
}

asio::awaitable<int> MemoryStore::release_lost_leases(WorkerId worker, std::vector<Seq> in_flight) {
    const auto fault = co_await begin(Method::release);
    int released = 0;
    for (auto& [seq, row] : rows_) {
        const bool flying = std::find(in_flight.begin(), in_flight.end(), Seq(seq)) != in_flight.end();
        if (row.status != Status::attempting || row.leased_by != worker || flying) continue;
        move(row, Status::pending);
        --row.attempts;
        row.events.push_back({EventKind::released, Json::Object{}});
        ++released;
    }
    after(fault);
    co_return released;
}

Fate MemoryStore::write(const Transition& t) {
    auto& row = rows_.at(t.seq.value);
    if (row.epoch != t.epoch.value) {
        const bool mine = row.epoch == t.epoch.value + 1 && row.status == t.to;
        return mine ? Fate::applied : Fate::fenced;
    }
    move(row, t.to);
    const bool probed = t.writer == Transition::Writer::probe;
    row.attempts += t.attempts_delta;
    row.ambiguous = row.ambiguous || t.ambiguous;
    row.due_at.reset();
    if (t.due_in) row.due_at = now() + *t.due_in;
    if (t.to == Status::unknown) {
        if (!probed || !row.unknown_since) row.unknown_since = now();
        if (t.attention || !probed) row.attention = t.attention;
    } else {
        row.unknown_since.reset();
        row.attention = t.attention;
    }
    row.probe = t.probe.value_or(ProbeMemory{});
    row.asked = false;
    row.leased_by = {};
    row.result = t.result;
    row.error = t.error;
    row.events.insert(row.events.end(), t.events.begin(), t.events.end());
    return Fate::applied;
}

asio::awaitable<std::vector<Fate>> MemoryStore::complete(std::vector<Transition> batch) {
    const auto fault = co_await begin(Method::complete);
    batches.push_back(batch.size());
    for (const auto& t : batch) {
        if (locked_.contains(t.seq.value)) {
            throw StoreError(StoreError::Kind::conflict, "somebody locked " + t.id.value);
        }
    }
    std::vector<Fate> fates;
    for (const auto& t : batch) fates.push_back(write(t));
    after(fault);
    co_return fates;
}

asio::awaitable<LateFate> MemoryStore::record_late(Transition late) {
    const auto fault = co_await begin(Method::late);
    auto& row = rows_.at(late.seq.value);
    auto fate = LateFate::stored;
    const bool only_doubt =
        row.event_kinds().find("unknown") == std::string::npos && row.attempts == 1;
    if (late.evidence == Transition::Evidence::effect && row.status == Status::attempting) {
        row.attention = AttentionReason::late_effect;
        fate = LateFate::flagged;
    } else if (late.evidence == Transition::Evidence::effect && row.status != Status::succeeded) {
        fate = row.status == Status::unknown ? LateFate::settled : LateFate::flagged;
        row.attention.reset();
        if (fate == LateFate::flagged) row.attention = AttentionReason::late_effect;
        move(row, Status::succeeded);
        row.result = late.result;
    } else if (late.evidence == Transition::Evidence::no_effect && row.status == Status::unknown &&
               row.attempt_epoch == late.epoch.value && only_doubt) {
        move(row, late.to);
        row.attempts += late.attempts_delta;
        row.due_at = now() + late.due_in.value_or(milliseconds(0));
        row.error = late.error;
        row.ambiguous = false;
        fate = LateFate::settled;
    }
    row.events.push_back({EventKind::late_result, Json::Object{}});
    after(fault);
    co_return fate;
}

asio::awaitable<std::vector<ClaimedProbe>> MemoryStore::claim_probes(
    WorkerId worker, milliseconds margin, std::vector<ReconcileLane> lanes
) {
    const auto fault = co_await begin(Method::claim);
    std::vector<ClaimedProbe> claims;
    for (const auto& lane : lanes) {
        int left = lane.limit;
        for (auto& [seq, row] : rows_) {
            if (left == 0) break;
            if (row.intent.tool != lane.tool || row.status != Status::unknown) continue;
            if (!row.due_at || *row.due_at > now()) continue;
            --left;
            ++row.epoch;
            row.leased_by = worker;
            row.due_at = now() + lane.timeout + margin;
            ClaimedProbe claim;
            claim.intent = row.intent;
            claim.epoch = Epoch(row.epoch);
            claim.attempt_epoch = Epoch(row.attempt_epoch);
            claim.attempts = row.attempts;
            claim.request_hash = row.request_hash;
            claim.probe_started_at = now();
            claim.deadline_at = row.deadline_at;
            claim.first_attempt_at = row.started_at.value_or(now());
            claim.unknown_since = row.unknown_since.value_or(now());
            claim.probes = row.probe.probes;
            claim.absent_count = row.probe.absent_count;
            claim.last_absent_at = row.probe.last_absent_at;
            claim.flagged = row.attention.has_value();
            claim.asked = row.asked;
            claims.push_back(std::move(claim));
        }
    }
    after(fault);
    co_return claims;
}

bool MemoryStore::stale(const WorkerId& worker) const {
    const auto found = heartbeats_.find(worker.value);
    return found != heartbeats_.end() && found->second < now() - kStale;
}

void MemoryStore::expire_lease(Row& row) {
    const auto tool = tools_.find(row.intent.tool);
    const bool read = tool != tools_.end() && tool->second.effect == Effect::read;
    move(row, read ? Status::scheduled : Status::unknown);
    row.due_at = now();
    row.ambiguous = row.ambiguous || !read;
    if (!read) row.unknown_since = now();
    row.probe = {};
    row.events.push_back({EventKind::lease_expired, Json::Object{}});
}

asio::awaitable<MaintenanceReport> MemoryStore::maintain(bool judge_workers) {
    const auto fault = co_await begin(Method::maintain);
    MaintenanceReport report;
    for (auto& [seq, row] : rows_) {
        if (report.promoted + report.lease_expired + report.expired >= kPage) {
            report.more = true;
            break;
        }
        const bool due = row.due_at && *row.due_at <= now();
        const auto expires_at = row.intent.expires_at;
        if (expires_at && *expires_at <= now() &&
            (row.status == Status::pending || row.status == Status::scheduled)) {
            move(row, Status::failed);
            row.error = Error{"expired", ""};
            ++report.expired;
        } else if (row.status == Status::scheduled && due) {
            move(row, Status::pending);
            row.due_at.reset();
            ++report.promoted;
        } else if (row.status == Status::attempting &&
                   (due || (judge_workers && stale(row.leased_by)))) {
            expire_lease(row);
            ++report.lease_expired;
        }
    }
    after(fault);
    co_return report;
}

asio::awaitable<void> MemoryStore::heartbeat(WorkerInfo worker) {
    const auto fault = co_await begin(Method::heartbeat);
    heartbeats_[worker.id.value] = now();
    after(fault);
}

asio::awaitable<void> MemoryStore::retire(WorkerId worker) {
    co_await begin(Method::heartbeat);
    retired.insert(worker.value);
}

asio::awaitable<void> MemoryStore::publish_tools(WorkerId, std::vector<ToolPolicy> tools) {
    const auto fault = co_await begin(Method::publish);
    for (auto& tool : tools) {
        requests_.insert_or_assign({tool.name, tool.request_hash}, tool.key);
        const auto name = tool.name;
        tools_.insert_or_assign(name, std::move(tool));
    }
    after(fault);
}

asio::awaitable<std::optional<KeySettings>> MemoryStore::key_settings(
    std::string tool, std::int64_t request_hash
) {
    co_await begin(Method::lease);
    const auto found = requests_.find({tool, request_hash});
    co_return found == requests_.end() ? std::nullopt : std::optional(found->second);
}

asio::awaitable<std::vector<ToolSample>> MemoryStore::sample() {
    co_await begin(Method::maintain);
    std::map<std::pair<std::string, Status>, std::int64_t> counts;
    for (const auto& [seq, row] : rows_) {
        if (!is_final(row.status)) ++counts[{row.intent.tool, row.status}];
    }
    std::vector<ToolSample> samples;
    for (const auto& [key, count] : counts) {
        samples.push_back({key.first, key.second, count, 0});
    }
    co_return samples;
}

}  // namespace test
