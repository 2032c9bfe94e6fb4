#include <algorithm>
#include <utility>

#include "tests/support/memory_store.hpp"

// What finish_operations, move_operations, read_fates and record_late_result do in SQL.
namespace test {

using namespace outbox;
using std::chrono::milliseconds;
using Evidence = Transition::Evidence;

namespace {

bool final_status(Status status) {
    return status == Status::succeeded || status == Status::failed || status == Status::cancelled;
}

bool same(const Json& a, const Json& b) {
    return to_text(a) == to_text(b);
}

}  // namespace

std::vector<Fate> MemoryStore::complete_now(const std::vector<Transition>& batch) {
    batches.push_back(batch.size());
    std::vector<Fate> fates;
    const Transition* held = nullptr;
    for (const auto& t : batch) {
        const bool locked = locked_.contains(t.seq.value);
        if (locked) held = &t;
        fates.push_back(locked ? Fate::fenced : write(t));
    }
    // The others are written all the same.
    if (held != nullptr) {
        throw StoreError(StoreError::Kind::conflict, "somebody locked " + held->id.value);
    }
    return fates;
}

Fate MemoryStore::write(const Transition& t) {
    auto& row = rows_.at(t.seq.value);
    const bool late = row.attention == AttentionReason::late_effect;
    if (!row.is_final() && row.epoch == t.epoch.value) {
        if (final_status(t.to)) return finish(row, t, t.to);
        // A late answer has proved the effect already: whatever this says, it ends succeeded.
        if (late) return finish(row, t, Status::failed);
        go_on(row, t);
        return Fate::applied;
    }
    if (row.epoch != t.epoch.value + 1) return Fate::fenced;
    if (!row.is_final()) return row.status == t.to ? Fate::applied : Fate::fenced;
    const bool mine = row.status == t.to || late || row.attention == AttentionReason::late_effect;
    const bool my_result = t.to != Status::succeeded || same(row.result, t.result);
    return mine && my_result ? Fate::applied : Fate::fenced;
}

Fate MemoryStore::finish(Row& row, const Transition& t, Status to) {
    const bool late = row.attention == AttentionReason::late_effect;
    const bool second = late && to == Status::succeeded && row.status == Status::attempting &&
                        !same(row.result, t.result);
    move(row, late ? Status::succeeded : to);
    row.attempts += t.attempts_delta;
    if (!late || to == Status::succeeded) row.result = t.result;
    row.error = late ? std::nullopt : t.error;
    row.attention = second ? AttentionReason::duplicate_effect
                    : late ? AttentionReason::late_effect
                           : t.attention;
    row.leased_by = {};
    row.due_at.reset();
    for (const auto& event : t.events) tell(row, event);
    return second ? Fate::duplicate : Fate::applied;
}

void MemoryStore::go_on(Row& row, const Transition& t) {
    move(row, t.to);
    const bool probed = t.writer == Transition::Writer::probe;
    const bool unknown = t.to == Status::unknown;
    row.due_at.reset();
    if (t.due_in && t.to != Status::pending) row.due_at = now() + *t.due_in;
    row.attempts = std::max(row.attempts + t.attempts_delta, 0);
    row.ambiguous = row.ambiguous || t.ambiguous;
    row.accepted = unknown && (probed ? row.accepted : !t.error);
    row.leased_by = {};
    if (!unknown) {
        row.unknown_since.reset();
    } else if (!probed || !row.unknown_since) {
        row.unknown_since = now();
    }
    row.probe = t.probe.value_or(ProbeMemory{});
    if (!unknown) {
        row.attention.reset();
    } else if (!probed || t.attention) {
        row.attention = t.attention;
    }
    row.asked = false;
    if (!unknown) {
        row.result = Json();
    } else if (!t.result.is_null()) {
        row.result = t.result;
    }
    if (t.error) row.error = t.error;
    for (const auto& event : t.events) tell(row, event);
}

LateFate MemoryStore::record_late_now(const Transition& late) {
    auto& row = rows_.at(late.seq.value);
    auto fate = LateFate::stored;
    if (late.evidence == Evidence::effect) {
        fate = late_effect(row, late);
    } else if (late.evidence == Evidence::no_effect && late_no_effect(row, late)) {
        fate = LateFate::settled;
    }
    tell(row, EventKind::late_result);
    return fate;
}

LateFate MemoryStore::late_effect(Row& row, const Transition& late) {
    const auto sent = requests_.find({row.intent.tool, row.request_hash});
    const bool read = sent != requests_.end() && !sent->second.leaves_doubt;
    if (read && (row.is_final() || row.status == Status::attempting)) return LateFate::stored;
    const bool proved = !row.is_final() && row.attention == AttentionReason::late_effect;
    if (row.status == Status::attempting && !proved) {
        row.attention = AttentionReason::late_effect;
        row.result = late.result;
        row.ambiguous = true;
        return LateFate::flagged;
    }
    if (row.status == Status::attempting && same(row.result, late.result)) return LateFate::stored;
    if (row.status == Status::succeeded) {
        if (same(row.result, late.result)) return LateFate::stored;
        move(row, Status::succeeded);
        row.attention = AttentionReason::duplicate_effect;
        return LateFate::duplicate;
    }
    const bool wrong = row.status != Status::unknown && !read;
    move(row, Status::succeeded);
    row.error.reset();
    row.due_at.reset();
    if (proved) {  // its flag stays, and so does the result; another one is another effect
        if (same(row.result, late.result)) return LateFate::flagged;
        row.attention = AttentionReason::duplicate_effect;
        return LateFate::duplicate;
    }
    row.attention.reset();
    if (wrong) row.attention = AttentionReason::late_effect;
    row.result = late.result;
    return wrong ? LateFate::flagged : LateFate::settled;
}

bool MemoryStore::late_no_effect(Row& row, const Transition& late) {
    if (row.status != Status::unknown || row.attempt_epoch != late.epoch.value) return false;
    // Another attempt is in doubt, or was: then this one's word settles nothing.
    if (row.first_doubt && *row.first_doubt <= late.epoch.value) return false;
    move(row, late.to);
    row.ambiguous = false;
    row.accepted = false;
    row.error = late.error;
    row.attention.reset();
    row.due_at.reset();
    if (late.to == Status::failed) return true;
    row.attempts = std::max(row.attempts + late.attempts_delta, 0);
    if (late.to == Status::scheduled) row.due_at = now() + late.due_in.value_or(milliseconds(0));
    row.unknown_since.reset();
    row.probe = {};
    row.asked = false;
    row.leased_by = {};
    return true;
}

}  // namespace test
