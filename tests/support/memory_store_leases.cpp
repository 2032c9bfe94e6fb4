#include <algorithm>
#include <utility>

#include "tests/support/memory_store.hpp"

// Leases, claims and maintenance, as their statements do them in SQL.
namespace test {

using namespace outbox;
using std::chrono::milliseconds;

namespace {

constexpr int kPage = 500;  // per tool and kind, as in PgStore
constexpr std::chrono::seconds kStale{15};

bool was_absent_believed(const MemoryStore::Row& row) {
    return std::any_of(row.events.begin(), row.events.end(), [](const Event& event) {
        return event.kind == EventKind::probe && event.detail.find("believed") != nullptr;
    });
}

}  // namespace

bool MemoryStore::same_key(const KeySettings& a, const KeySettings& b) {
    return a.encoding == b.encoding && a.prefix == b.prefix && a.max_length == b.max_length &&
           a.window == b.window;
}

// What an attempt under this hash leaves in doubt, as in lease_operations.sql.
std::int64_t MemoryStore::asked(const Row& row, std::int64_t hash) const {
    if (row.request_hash == 0 || row.request_hash == hash) return hash;
    const auto first = recorded_key(row.intent.tool, row.request_hash);
    const auto present = recorded_key(row.intent.tool, hash);
    if (!row.ambiguous && first && present && same_key(*first, *present)) return hash;
    const bool plain = requests_.contains({row.intent.tool, row.request_hash});
    return plain ? ~row.request_hash : row.request_hash;
}

std::optional<KeySettings> MemoryStore::recorded_key(const std::string& tool, std::int64_t hash)
    const {
    for (const auto one : {hash, ~hash}) {
        const auto found = requests_.find({tool, one});
        if (found != requests_.end()) return found->second.key;
    }
    return std::nullopt;
}

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
        row->request_hash = asked(*row, lane.request_hash);
        LeasedAttempt attempt;
        attempt.intent = row->intent;
        fill_original(attempt.intent);
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

MemoryStore::Lost MemoryStore::find_lost(const WorkerId& worker, const std::vector<Seq>& in_flight)
    const {
    Lost lost;
    for (const auto& [seq, row] : rows_) {
        if (row.status != Status::attempting || row.leased_by != worker) continue;
        if (row.attention == AttentionReason::late_effect) continue;
        if (std::find(in_flight.begin(), in_flight.end(), Seq(seq)) != in_flight.end()) continue;
        lost.emplace_back(seq, row.epoch);
    }
    return lost;
}

int MemoryStore::release_now(const Lost& lost) {
    int released = 0;
    for (const auto& [seq, epoch] : lost) {
        auto& row = rows_.at(seq);
        if (row.is_final() || row.epoch != epoch) continue;
        if (row.attention == AttentionReason::late_effect) continue;
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
        if (lane.resend && paused_.contains(lane.tool)) continue;
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
            fill_original(claim.intent);
            claim.epoch = Epoch(row->epoch);
            claim.attempt_epoch = Epoch(row->attempt_epoch);
            claim.attempts = row->attempts;
            claim.request_hash = row->request_hash;
            claim.probe_started_at = now();
            claim.deadline_at = row->deadline_at;
            claim.first_attempt_at = row->started_at.value_or(*row->unknown_since);
            claim.key_since = row->started_at.value_or(row->intent.created_at);
            claim.unknown_since = *row->unknown_since;
            claim.probes = row->probe.probes;
            claim.absent_count = row->probe.absent_count;
            claim.last_absent_at = row->probe.last_absent_at;
            claim.flagged = row->attention.has_value();
            claim.asked = row->asked;
            claim.absent_believed = row->attempts > 1 && was_absent_believed(*row);
            claims.push_back(std::move(claim));
        }
    }
    std::sort(claims.begin(), claims.end(), [](const auto& a, const auto& b) {
        return a.intent.seq < b.intent.seq;
    });
    return claims;
}

std::optional<ResentAttempt> MemoryStore::resend_now(
    const WorkerId& worker, Seq seq, Epoch claimed, milliseconds timeout, milliseconds margin
) {
    auto& row = rows_.at(seq.value);
    if (row.status != Status::unknown || row.epoch != claimed.value) return std::nullopt;
    move(row, Status::unknown);
    row.attempt_epoch = row.epoch;
    ++row.attempts;
    row.leased_by = worker;
    row.deadline_at = now() + timeout;
    row.due_at = row.deadline_at + margin;
    Json detail;
    detail.set("resend", row.attempts);
    tell(row, Event{EventKind::probe, std::move(detail)});
    return ResentAttempt{.epoch = Epoch(row.epoch), .attempts = row.attempts};
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
        expire_lease(row);
        ++expired;
    }
    // Nothing of theirs is left: not looked at again until they come back with a heartbeat.
    for (const auto& id : stale) {
        if (!ended.contains(id)) workers_[id].stopped = true;
    }
    return expired;
}

void MemoryStore::expire_lease(Row& row) {
    const auto sent = requests_.find({row.intent.tool, row.request_hash});
    const bool doubt = sent == requests_.end() || sent->second.leaves_doubt;
    move(row, doubt ? Status::unknown : Status::scheduled);
    row.due_at = now();
    row.ambiguous = row.ambiguous || doubt;
    row.accepted = false;
    row.unknown_since.reset();
    if (doubt) row.unknown_since = now();
    row.probe = {};
    row.asked = false;
    row.error = Error{"lease_expired", "Nobody reported how the attempt ended."};
    tell(row, EventKind::lease_expired);
}

int MemoryStore::promote() {
    int promoted = 0;
    for (auto& [seq, row] : rows_) {
        if (row.status != Status::scheduled || row.waits_for || *row.due_at > now()) continue;
        if (!tools_.contains(row.intent.tool)) continue;
        if (row.expires_at && *row.expires_at <= now()) continue;
        if (promoted == kPage) break;
        move(row, Status::pending);
        ++promoted;
    }
    return promoted;
}

// The original's arguments and result, as they are when the compensation is leased or asked about.
void MemoryStore::fill_original(Intent& intent) const {
    if (!intent.compensates) return;
    const auto& original = rows_.at(seqs_.at(intent.compensates->value));
    intent.original_arguments = original.intent.arguments;
    if (original.is_final()) intent.original_result = original.result;
}

void MemoryStore::end_waiting(Row& row) {
    move(row, Status::cancelled);
    row.waits_for.reset();
    row.due_at.reset();
    row.error = Error{"nothing_to_compensate", "The original had no effect."};
    tell(row, EventKind::cancelled);
}

int MemoryStore::settle_compensations() {
    int armed = 0;
    // Judged by what was there before: what is withdrawn here ends its compensation the next time.
    std::vector<std::pair<Row*, Row*>> waiting;
    for (auto& [seq, row] : rows_) {
        if (row.waits_for && !row.is_final()) waiting.emplace_back(&row, &rows_.at(*row.waits_for));
    }
    std::vector<Row*> withdrawn;
    for (auto& [row, original] : waiting) {
        if (original->status == Status::pending || original->status == Status::scheduled) {
            withdrawn.push_back(original);
        } else if (row->status != Status::scheduled || !original->is_final()) {
            continue;
        } else if (original->status == Status::succeeded) {
            move(*row, Status::pending);
            row->waits_for.reset();
            ++armed;
        } else {
            end_waiting(*row);
        }
    }
    for (auto* original : withdrawn) cancel(original->intent.id.value);
    return armed;
}

MaintenanceReport MemoryStore::maintain_now(bool judge_workers) {
    MaintenanceReport report;
    report.expired = expire_operations();
    report.lease_expired = expire_leases(judge_workers);
    report.promoted = settle_compensations() + promote();
    report.more =
        report.expired >= kPage || report.lease_expired >= kPage || report.promoted >= kPage;
    return report;
}

}  // namespace test
