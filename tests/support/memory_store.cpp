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

constexpr int kPage = 500;  // per tool and kind, as in PgStore
constexpr std::chrono::seconds kStale{15};

}  // namespace

std::string MemoryStore::Row::event_kinds() const {
    std::string text;
    for (const auto& event : events) {
        if (!text.empty()) text += ' ';
        text += to_string(event.kind);
    }
    return text;
}

bool MemoryStore::Row::is_final() const {
    return status == Status::succeeded || status == Status::failed || status == Status::cancelled;
}

OperationId MemoryStore::insert(
    std::string tool,
    std::string id,
    std::optional<int> max_attempts,
    std::int16_t priority,
    std::optional<milliseconds> run_in,
    std::optional<milliseconds> expires_in
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
    if (expires_in) row.intent.expires_at = now() + *expires_in;
    row.expires_at = row.intent.expires_at;
    auto operation = row.intent.id;
    seqs_.emplace(operation.value, row.intent.seq.value);
    rows_.emplace(row.intent.seq.value, std::move(row));
    return operation;
}

bool MemoryStore::cancel(const std::string& id) {
    auto& row = this->row(id);
    if (row.status != Status::pending && row.status != Status::scheduled) return false;
    move(row, Status::cancelled);
    tell(row, EventKind::cancelled);
    return true;
}

bool MemoryStore::retry(const std::string& id) {
    auto& row = this->row(id);
    if (row.status != Status::failed) return false;
    move(row, Status::pending);
    row.attempts = 0;
    row.started_at.reset();
    row.due_at.reset();
    row.expires_at.reset();
    row.attention.reset();
    row.error.reset();
    row.probe = {};
    tell(row, EventKind::retried);
    return true;
}

void MemoryStore::ask(const std::string& id) {
    auto& row = this->row(id);
    row.due_at = now();
    row.asked = true;
}

MemoryStore::Row& MemoryStore::row(const std::string& id) {
    const auto found = seqs_.find(id);
    if (found == seqs_.end()) throw std::out_of_range("no operation " + id);
    return rows_.at(found->second);
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

asio::awaitable<void> MemoryStore::way(bool back) {
    if (travel) {
        auto travelling = travel();
        co_await std::move(travelling);
    } else if (!back) {
        const auto executor = co_await asio::this_coro::executor;
        co_await asio::post(executor, asio::use_awaitable);
    }
}

std::optional<MemoryStore::Fault> MemoryStore::next_fault(Method method) {
    ++calls[method];
    std::optional<Fault> fault;
    if (on_call) fault = on_call(method);
    if (down_) fault = Fault{};
    const auto queue = faults_.find(method);
    if (queue != faults_.end() && !queue->second.empty()) {
        fault = queue->second.front();
        queue->second.pop_front();
    }
    return fault;
}

template <class Statement>
asio::awaitable<std::invoke_result_t<Statement&>> MemoryStore::round_trip(
    Method method, Statement statement
) {
    auto there = way(false);
    co_await std::move(there);
    const auto fault = next_fault(method);
    std::optional<std::invoke_result_t<Statement&>> result;
    if (fault && fault->delayed) {
        run_delayed([statement]() mutable { static_cast<void>(statement()); });
    } else if (!fault || fault->written) {
        result = statement();
    }
    auto back = way(true);
    co_await std::move(back);
    if (fault) throw StoreError(fault->kind, "as the test wants it");
    co_return std::move(*result);
}

void MemoryStore::move(Row& row, Status to) {
    const auto from = row.status;
    if (from != to) moves.emplace(from, to);
    row.status = to;
    ++row.epoch;
    if (on_move) on_move(row, from);
}

void MemoryStore::tell(Row& row, Event event) {
    const auto kind = event.kind;
    const bool doubt = kind == EventKind::unknown || kind == EventKind::lease_expired ||
                       kind == EventKind::timeline || kind == EventKind::probe;
    if (doubt && !row.first_doubt) row.first_doubt = row.epoch;
    row.events.push_back(std::move(event));
}

void MemoryStore::tell(Row& row, EventKind kind) { tell(row, {kind, Json::Object{}}); }

void MemoryStore::lease_lane(
    const LeaseRequest& request, const LeaseLane& lane, std::vector<LeasedAttempt>& leased
) {
    std::vector<Row*> ready;
    for (auto& [seq, row] : rows_) {
        const auto place = std::pair(row.intent.priority, seq);
        if (row.status == Status::pending && row.intent.tool == lane.tool &&
            (!row.expires_at || *row.expires_at > now()) && !locked_.contains(seq) &&
            place > std::pair(lane.after.priority, lane.after.seq)) {
            ready.push_back(&row);
        }
    }
    std::stable_sort(ready.begin(), ready.end(), [](const Row* a, const Row* b) {
        return a->intent.priority < b->intent.priority;
    });
    ready.resize(std::min(ready.size(), static_cast<std::size_t>(std::max(lane.limit, 0))));
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

std::vector<LeasedAttempt> MemoryStore::lease_now(const LeaseRequest& request) {
    std::vector<LeasedAttempt> leased;
    for (const auto& lane : request.lanes) {
        if (!paused_.contains(lane.tool)) lease_lane(request, lane, leased);
    }
    std::sort(leased.begin(), leased.end(), [](const auto& a, const auto& b) {
        return std::pair(a.intent.priority, a.intent.seq) <
               std::pair(b.intent.priority, b.intent.seq);
    });
    return leased;
}

int MemoryStore::release_now(const WorkerId& worker, const std::vector<Seq>& in_flight) {
    int released = 0;
    for (auto& [seq, row] : rows_) {
        if (row.status != Status::attempting || row.leased_by != worker) continue;
        if (std::find(in_flight.begin(), in_flight.end(), Seq(seq)) != in_flight.end()) continue;
        move(row, Status::pending);
        --row.attempts;
        row.due_at.reset();
        row.leased_by = {};
        tell(row, EventKind::released);
        ++released;
    }
    return released;
}

std::vector<ClaimedProbe> MemoryStore::claim_now(
    const WorkerId& worker, milliseconds margin, const std::vector<ReconcileLane>& lanes
) {
    std::vector<ClaimedProbe> claims;
    for (const auto& lane : lanes) {
        std::vector<Row*> due;
        for (auto& [seq, row] : rows_) {
            if (row.status == Status::unknown && row.intent.tool == lane.tool && row.due_at &&
                *row.due_at <= now()) {
                due.push_back(&row);
            }
        }
        std::stable_sort(due.begin(), due.end(), [](const Row* a, const Row* b) {
            return a->due_at < b->due_at;
        });
        due.resize(std::min(due.size(), static_cast<std::size_t>(std::max(lane.limit, 0))));
        for (auto* row : due) {
            move(*row, Status::unknown);
            row->leased_by = worker;
            row->due_at = now() + lane.timeout + margin;
            ClaimedProbe claim;
            claim.intent = row->intent;
            claim.epoch = Epoch(row->epoch);
            claim.attempt_epoch = Epoch(row->attempt_epoch);
            claim.attempts = row->attempts;
            claim.request_hash = row->request_hash;
            claim.probe_started_at = now();
            claim.deadline_at = row->deadline_at;
            claim.first_attempt_at = row->started_at.value_or(*row->unknown_since);
            claim.unknown_since = *row->unknown_since;
            claim.probes = row->probe.probes;
            claim.absent_count = row->probe.absent_count;
            claim.last_absent_at = row->probe.last_absent_at;
            claim.flagged = row->attention.has_value();
            claim.asked = row->asked;
            claims.push_back(std::move(claim));
        }
    }
    std::sort(claims.begin(), claims.end(), [](const auto& a, const auto& b) {
        return a.intent.seq < b.intent.seq;
    });
    return claims;
}

std::vector<std::string> MemoryStore::stale_workers() const {
    std::vector<std::string> stale;
    for (const auto& [id, worker] : workers_) {
        if (!worker.stopped && worker.heartbeat_at < now() - kStale) stale.push_back(id);
    }
    return stale;
}

int MemoryStore::expire_operations() {
    int expired = 0;
    for (auto& [seq, row] : rows_) {
        const bool open = row.status == Status::pending || row.status == Status::scheduled;
        if (!open || !row.expires_at || *row.expires_at > now()) continue;
        if (expired == kPage) break;
        move(row, Status::failed);
        row.result = Json();
        row.attention.reset();
        row.error = Error{"expired", "The operation was not carried out before its expires_at."};
        tell(row, EventKind::failed);
        ++expired;
    }
    return expired;
}

int MemoryStore::expire_leases(bool judge_workers) {
    const auto stale = judge_workers ? stale_workers() : std::vector<std::string>{};
    std::set<std::string> ended;
    int expired = 0;
    for (auto& [seq, row] : rows_) {
        const auto tool = tools_.find(row.intent.tool);
        if (row.status != Status::attempting || tool == tools_.end()) continue;
        const bool judged =
            std::find(stale.begin(), stale.end(), row.leased_by.value) != stale.end();
        if (!judged && *row.due_at > now()) continue;
        if (expired == kPage) break;
        ended.insert(row.leased_by.value);
        expire_lease(row, tool->second.effect);
        ++expired;
    }
    // Nothing of theirs is left: not looked at again until they come back with a heartbeat.
    for (const auto& id : stale) {
        if (!ended.contains(id)) workers_[id].stopped = true;
    }
    return expired;
}

void MemoryStore::expire_lease(Row& row, Effect effect) {
    const bool read = effect == Effect::read;
    move(row, read ? Status::scheduled : Status::unknown);
    row.due_at = now();
    row.ambiguous = row.ambiguous || !read;
    row.accepted = false;
    row.unknown_since.reset();
    if (!read) row.unknown_since = now();
    row.probe = {};
    row.asked = false;
    row.error = Error{"lease_expired", "Nobody reported how the attempt ended."};
    tell(row, EventKind::lease_expired);
}

int MemoryStore::promote() {
    int promoted = 0;
    for (auto& [seq, row] : rows_) {
        if (row.status != Status::scheduled || *row.due_at > now()) continue;
        if (!tools_.contains(row.intent.tool)) continue;
        if (row.expires_at && *row.expires_at <= now()) continue;
        if (promoted == kPage) break;
        move(row, Status::pending);
        ++promoted;
    }
    return promoted;
}

MaintenanceReport MemoryStore::maintain_now(bool judge_workers) {
    MaintenanceReport report;
    report.expired = expire_operations();
    report.lease_expired = expire_leases(judge_workers);
    report.promoted = promote();
    report.more =
        report.expired >= kPage || report.lease_expired >= kPage || report.promoted >= kPage;
    return report;
}

asio::awaitable<std::vector<LeasedAttempt>> MemoryStore::lease(LeaseRequest request) {
    auto work = [this, request = std::move(request)] { return lease_now(request); };
    return round_trip(Method::lease, std::move(work));
}

asio::awaitable<int> MemoryStore::release_lost_leases(WorkerId worker, std::vector<Seq> in_flight) {
    auto work = [this, worker = std::move(worker), in_flight = std::move(in_flight)] {
        return release_now(worker, in_flight);
    };
    return round_trip(Method::release, std::move(work));
}

asio::awaitable<std::vector<Fate>> MemoryStore::complete(std::vector<Transition> batch) {
    auto work = [this, batch = std::move(batch)] { return complete_now(batch); };
    return round_trip(Method::complete, std::move(work));
}

asio::awaitable<LateFate> MemoryStore::record_late(Transition late) {
    auto work = [this, late = std::move(late)] { return record_late_now(late); };
    return round_trip(Method::late, std::move(work));
}

asio::awaitable<std::vector<ClaimedProbe>> MemoryStore::claim_probes(
    WorkerId worker, milliseconds margin, std::vector<ReconcileLane> lanes
) {
    auto work = [this, worker = std::move(worker), margin, lanes = std::move(lanes)] {
        return claim_now(worker, margin, lanes);
    };
    return round_trip(Method::claim, std::move(work));
}

asio::awaitable<MaintenanceReport> MemoryStore::maintain(bool judge_workers) {
    auto work = [this, judge_workers] { return maintain_now(judge_workers); };
    return round_trip(Method::maintain, std::move(work));
}

asio::awaitable<void> MemoryStore::heartbeat(WorkerInfo worker) {
    auto work = [this, worker = std::move(worker)] {
        workers_[worker.id.value] = {now(), false};
        return true;
    };
    auto beating = round_trip(Method::heartbeat, std::move(work));
    co_await std::move(beating);
}

asio::awaitable<void> MemoryStore::retire(WorkerId worker) {
    auto work = [this, worker = std::move(worker)] {
        retired.insert(worker.value);
        const auto found = workers_.find(worker.value);
        if (found != workers_.end()) found->second = {now(), true};
        return true;
    };
    auto retiring = round_trip(Method::heartbeat, std::move(work));
    co_await std::move(retiring);
}

asio::awaitable<void> MemoryStore::publish_tools(WorkerId, std::vector<ToolPolicy> tools) {
    auto work = [this, tools = std::move(tools)] {
        for (const auto& tool : tools) {
            requests_.emplace(std::pair(tool.name, tool.request_hash), tool.key);
            tools_.insert_or_assign(tool.name, tool);
        }
        return true;
    };
    auto publishing = round_trip(Method::publish, std::move(work));
    co_await std::move(publishing);
}

asio::awaitable<std::optional<KeySettings>> MemoryStore::key_settings(
    std::string tool, std::int64_t request_hash
) {
    auto work = [this, asked = std::pair(std::move(tool), request_hash)] {
        const auto found = requests_.find(asked);
        return found == requests_.end() ? std::nullopt : std::optional(found->second);
    };
    return round_trip(Method::lease, std::move(work));
}

asio::awaitable<std::vector<ToolSample>> MemoryStore::sample() {
    auto work = [this] {
        std::map<std::pair<std::string, Status>, ToolSample> samples;
        for (const auto& [seq, row] : rows_) {
            if (row.is_final()) continue;
            auto& one = samples[{row.intent.tool, row.status}];
            if (one.count++ == 0) {
                one.tool = row.intent.tool;
                one.status = row.status;
                const std::chrono::duration<double> age = now() - row.intent.created_at;
                one.oldest_seconds = std::max(age.count(), 0.0);
            }
        }
        std::vector<ToolSample> all;
        for (auto& [key, one] : samples) all.push_back(std::move(one));
        return all;
    };
    return round_trip(Method::maintain, std::move(work));
}

}  // namespace test
