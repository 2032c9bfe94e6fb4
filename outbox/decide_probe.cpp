#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "outbox/decide.hpp"
#include "outbox/overloaded.hpp"
#include "outbox/retry_policy.hpp"

namespace outbox {
namespace {

using std::chrono::milliseconds;

// One probe's verdict; the rows "unknown → …" of the table in contract/states.md.
class ProbeEnd {
 public:
    ProbeEnd(const ClaimedProbe& claim, const ToolPolicy& policy, DbTime now, double random)
        : claim_(claim), policy_(policy), rules_(policy.reconcile), now_(now), random_(random) {
        next_.writer = Transition::Writer::probe;
        next_.seq = claim.intent.seq;
        next_.id = claim.intent.id;
        next_.tool = claim.intent.tool;
        next_.epoch = claim.epoch;
        memory_ = {claim.probes + 1, claim.absent_count, claim.last_absent_at};
        detail_.set("probe", memory_.probes);
    }

    Transition found(Found verdict) {
        detail_.set("verdict", "found");
        if (!verdict.note.empty()) detail_.set("note", std::move(verdict.note));
        next_.to = Status::succeeded;
        next_.result = std::move(verdict.result);
        tell(EventKind::probe);
        return std::move(next_);
    }

    Transition absent() {
        detail_.set("verdict", "absent");
        if (!asks_what_was_sent()) return request_changed();
        if (claim_.distrust > milliseconds(0)) {
            detail_.set("clock_stepped", true);
            forget_absent();
            return ask_again(std::min(
                until(claim_.probe_started_at + claim_.distrust),
                probe_delay(rules_, memory_.probes)
            ));
        }
        const auto counts_from = claim_.deadline_at + rules_.settle;
        if (claim_.probe_started_at < counts_from) {
            // Not later than when it can count; sooner when the interval says so.
            detail_.set("too_early", true);
            return ask_again(std::min(until(counts_from), probe_delay(rules_, memory_.probes)));
        }
        const auto apart = std::max(rules_.interval, rules_.settle / 2);
        if (memory_.last_absent_at && claim_.probe_started_at < *memory_.last_absent_at + apart) {
            detail_.set("too_close", true);
            return ask_again(until(*memory_.last_absent_at + apart));
        }
        ++memory_.absent_count;
        memory_.last_absent_at = claim_.probe_started_at;
        detail_.set("confirmations", memory_.absent_count);
        if (memory_.absent_count < rules_.confirmations) {
            return ask_again(until(claim_.probe_started_at + apart));
        }
        detail_.set("believed", true);
        return did_not_happen();
    }

    Transition pending(Pending verdict) {
        detail_.set("verdict", "pending");
        if (!verdict.note.empty()) detail_.set("note", std::move(verdict.note));
        forget_absent();
        return ask_again_or_give_up();
    }

    Transition conflict(Conflict verdict) {
        detail_.set("verdict", "conflict");
        forget_absent();
        const bool twice = verdict.error.code == "found_twice" && claim_.absent_believed;
        explain(std::move(verdict.error));
        return attention(twice ? AttentionReason::duplicate_effect : AttentionReason::conflict);
    }

    // A read has no effect that could be in doubt; unless what was sent was no read.
    Transition read() {
        detail_.set("effect", "read");
        return asks_what_was_sent() ? did_not_happen() : request_changed();
    }

    Transition inconclusive(Error error) {
        if (detail_.find("verdict") == nullptr) detail_.set("verdict", "inconclusive");
        explain(std::move(error));
        return ask_again_or_give_up();
    }

 private:
    // 0: no attempt is recorded (timeline change), so the request is the present one.
    [[nodiscard]] bool asks_what_was_sent() const {
        return claim_.request_hash == 0 || claim_.request_hash == policy_.request_hash;
    }

    Transition request_changed() {
        return inconclusive(
            {"request_changed",
             "The tool's configuration changed since the attempt: what is "
             "looked for now may not be what was sent."}
        );
    }

    void tell(EventKind kind) { next_.events.push_back({kind, detail_}); }

    void explain(Error error) {
        detail_.set("code", error.code);
        detail_.set("message", error.message);
        next_.error = std::move(error);
    }

    void forget_absent() {
        memory_.absent_count = 0;
        memory_.last_absent_at.reset();
    }

    [[nodiscard]] milliseconds until(DbTime then) const {
        return std::max(std::chrono::ceil<milliseconds>(then - now_), milliseconds(0));
    }

    Transition ask_again(milliseconds delay) {
        next_.to = Status::unknown;
        // What waits for a person was asked about by a person: not again by itself.
        if (!claim_.flagged) next_.due_in = delay;
        next_.probe = memory_;
        tell(EventKind::probe);
        return std::move(next_);
    }

    Transition ask_again_or_give_up() {
        const auto delay = probe_delay(rules_, memory_.probes);
        if (claim_.flagged || now_ < claim_.unknown_since + rules_.give_up_after) {
            return ask_again(delay);
        }
        return attention(AttentionReason::give_up);
    }

    Transition attention(AttentionReason reason) {
        next_.to = Status::unknown;
        next_.attention = reason;
        next_.probe = memory_;
        tell(EventKind::probe);
        detail_.set("reason", to_string(reason));
        tell(EventKind::attention);
        return std::move(next_);
    }

    Transition did_not_happen() {
        if (rules_.after_absent == AfterAbsent::hold) return attention(AttentionReason::hold);
        const int allowed = claim_.intent.max_attempts.value_or(policy_.retry.max_attempts);
        const auto delay = retry_delay(policy_.retry, claim_.attempts, random_);
        if (claim_.attempts >= allowed) {
            return failed("attempts_used_up", "no attempts are left");
        }
        if (claim_.intent.expires_at && now_ + delay >= *claim_.intent.expires_at) {
            return failed("expired", "the next attempt would begin after expires_at");
        }
        if (now_ + delay > claim_.first_attempt_at + policy_.retry.give_up_after) {
            return failed("gave_up", "the next attempt would begin after retry.give_up_after");
        }
        next_.to = Status::scheduled;
        next_.due_in = delay;
        tell(EventKind::probe);
        return std::move(next_);
    }

    Transition failed(std::string code, const std::string& why) {
        next_.to = Status::failed;
        const bool read = policy_.effect == Effect::read;
        const std::string_view known =
            read ? "It is a read" : "It did not happen (the other side was asked)";
        explain({std::move(code), std::string(known) + ", and " + why + "."});
        tell(EventKind::probe);
        return std::move(next_);
    }

    const ClaimedProbe& claim_;
    const ToolPolicy& policy_;
    const ReconcilePolicy& rules_;
    DbTime now_;
    double random_;
    ProbeMemory memory_;
    Json detail_ = Json::Object{};
    Transition next_;
};

}  // namespace

Transition decide_probe(
    const ClaimedProbe& claim,
    const Verdict& verdict,
    const ToolPolicy& policy,
    DbTime now,
    double random
) {
    ProbeEnd end(claim, policy, now, random);
    return std::visit(
        Overloaded{
            [&](const Found& v) { return end.found(v); },
            [&](const Absent&) { return end.absent(); },
            [&](const Pending& v) { return end.pending(v); },
            [&](const Conflict& v) { return end.conflict(v); },
            [&](const Inconclusive& v) { return end.inconclusive(v.error); },
        },
        verdict
    );
}

Transition decide_read(
    const ClaimedProbe& claim, const ToolPolicy& policy, DbTime now, double random
) {
    return ProbeEnd(claim, policy, now, random).read();
}

Transition decide_manual(const ClaimedProbe& claim) {
    Transition next;
    next.writer = Transition::Writer::probe;
    next.seq = claim.intent.seq;
    next.id = claim.intent.id;
    next.tool = claim.intent.tool;
    next.epoch = claim.epoch;
    next.to = Status::unknown;
    next.attention = AttentionReason::manual;
    next.probe = ProbeMemory{claim.probes, claim.absent_count, claim.last_absent_at};
    Json detail;
    detail.set("reason", to_string(AttentionReason::manual));
    next.events.push_back({EventKind::attention, std::move(detail)});
    return next;
}

}  // namespace outbox
