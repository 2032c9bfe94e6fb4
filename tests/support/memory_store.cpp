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
    arm_again(row);
    return true;
}

void MemoryStore::arm_again(Row& row) {
    // A compensation whose original has no recorded effect waits for it (again).
    row.waits_for.reset();
    const auto original =
        row.intent.compensates ? seqs_.find(row.intent.compensates->value) : seqs_.end();
    if (original != seqs_.end() && rows_.at(original->second).status != Status::succeeded) {
        row.waits_for = original->second;
    }
    move(row, row.waits_for ? Status::scheduled : Status::pending);
    row.attempts = 0;
    row.started_at.reset();
    row.due_at.reset();
    row.expires_at.reset();
    row.attention.reset();
    row.error.reset();
    row.probe = {};
    tell(row, EventKind::retried);
    for (auto& [seq, other] : rows_) {
        if (other.waits_for == row.intent.seq.value && other.status == Status::scheduled) {
            end_waiting(other);
        }
    }
}

std::string MemoryStore::compensate(const std::string& id) {
    const auto undo = id + ":compensate:undo";
    const auto known = seqs_.find(undo);
    const bool idle = known != seqs_.end() && row(undo).status == Status::cancelled &&
                      row(undo).error && row(undo).error->code == "nothing_to_compensate";
    if (known != seqs_.end() && !idle) {
        tell(row(undo), EventKind::replayed);
        return undo;
    }
    if (row(id).is_final() && row(id).status != Status::succeeded) return id;
    if (cancel(id)) return id;
    if (idle) {
        arm_again(row(undo));
        return undo;
    }
    insert(row(id).intent.tool + ":undo", undo, {}, row(id).intent.priority);
    auto& compensation = row(undo);
    compensation.intent.compensates = OperationId(id);
    if (row(id).status != Status::succeeded) {
        compensation.status = Status::scheduled;
        compensation.waits_for = row(id).intent.seq.value;
    }
    return undo;
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

void MemoryStore::tell(Row& row, EventKind kind) {
    tell(row, {kind, Json::Object{}});
}

asio::awaitable<std::vector<LeasedAttempt>> MemoryStore::lease(LeaseRequest request) {
    auto work = [this, request = std::move(request)] { return lease_now(request); };
    return round_trip(Method::lease, std::move(work));
}

asio::awaitable<int> MemoryStore::release_lost_leases(WorkerId worker, std::vector<Seq> in_flight) {
    auto look = [this, worker = std::move(worker), in_flight = std::move(in_flight)] {
        return find_lost(worker, in_flight);
    };
    auto looking = round_trip(Method::find_lost, std::move(look));
    auto lost = co_await std::move(looking);
    auto work = [this, lost = std::move(lost)] { return release_now(lost); };
    auto releasing = round_trip(Method::release, std::move(work));
    co_return co_await std::move(releasing);
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
            const Request request{.key = tool.key, .leaves_doubt = tool.leaves_doubt()};
            const auto known =
                requests_.emplace(std::pair(tool.name, tool.request_hash), request).first;
            known->second.leaves_doubt = known->second.leaves_doubt || request.leaves_doubt;
            tools_.insert_or_assign(tool.name, tool);
        }
        return true;
    };
    auto publishing = round_trip(Method::publish, std::move(work));
    co_await std::move(publishing);
}

asio::awaitable<std::vector<ToolDrift>>
MemoryStore::find_drift(std::vector<ToolPolicy> tools, std::vector<WorkerId>) {
    auto work = [this, tools = std::move(tools)] {
        std::vector<ToolDrift> drifts;
        for (const auto& tool : tools) {
            ToolDrift drift{.tool = tool.name};
            for (const auto& [seq, row] : rows_) {
                const bool open = row.intent.tool == tool.name && !row.is_final();
                if (open && row.request_hash != 0 && row.request_hash != tool.request_hash) {
                    ++drift.open;
                    const auto sent = recorded_key(tool.name, row.request_hash);
                    if (!sent || !same_key(*sent, tool.key)) drift.kind = Drift::key;
                }
            }
            if (drift.open > 0) drifts.push_back(std::move(drift));
        }
        return drifts;
    };
    return round_trip(Method::publish, std::move(work));
}

asio::awaitable<std::optional<ResentAttempt>> MemoryStore::journal_resend(
    WorkerId worker, Seq seq, Epoch claimed, milliseconds timeout, milliseconds margin
) {
    auto work = [this, worker = std::move(worker), seq, claimed, timeout, margin] {
        return resend_now(worker, seq, claimed, timeout, margin);
    };
    return round_trip(Method::resend, std::move(work));
}

asio::awaitable<std::optional<KeySettings>> MemoryStore::key_settings(
    std::string tool, std::int64_t request_hash
) {
    auto work = [this, tool = std::move(tool), request_hash] {
        return recorded_key(tool, request_hash);
    };
    return round_trip(Method::lease, std::move(work));
}

asio::awaitable<void> MemoryStore::keep_handle(OperationId id, Epoch attempt, std::string handle) {
    auto work = [this, id = std::move(id), attempt, handle = std::move(handle)] {
        handles_[{id.value, attempt.value}] = handle;
        return true;
    };
    auto keeping = round_trip(Method::lease, std::move(work));
    co_await std::move(keeping);
}

asio::awaitable<std::optional<std::string>> MemoryStore::find_handle(
    OperationId id, Epoch attempt
) {
    auto work = [this, id = std::move(id), attempt] {
        const auto found = handles_.find({id.value, attempt.value});
        return found == handles_.end() ? std::nullopt : std::optional(found->second);
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

asio::awaitable<outbox::RollUp> MemoryStore::roll_up() {
    auto work = [] { return outbox::RollUp{}; };
    return round_trip(Method::maintain, std::move(work));
}

}  // namespace test
