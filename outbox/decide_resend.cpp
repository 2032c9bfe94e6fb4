// reconcile: resend. The same request under the same key, once more: an attempt whose answer is a
// verdict.
#include <algorithm>
#include <string>
#include <utility>

#include "outbox/decide.hpp"
#include "outbox/overloaded.hpp"

namespace outbox {
namespace {

// Nobody is asked any more by itself: sending could be a second effect, or is not wanted.
Transition ask_person(const ClaimedProbe& claim, AttentionReason reason, Error why) {
    auto next = decide_manual(claim);
    next.attention = reason;
    Json detail;
    detail.set("reason", to_string(reason));
    detail.set("code", why.code);
    detail.set("message", why.message);
    next.events = {{EventKind::attention, std::move(detail)}};
    next.error = std::move(why);
    return next;
}

// What the provider was sent is not in doubt any more than before: it did not take this one.
bool not_counted(const Outcome& outcome) {
    if (const auto* later = std::get_if<RetryLater>(&outcome)) return !later->counts;
    const auto* rejected = std::get_if<Rejected>(&outcome);
    return rejected != nullptr && !rejected->sent;
}

}  // namespace

std::optional<Transition> decide_before_resend(
    const ClaimedProbe& claim, const ToolPolicy& policy, DbTime now
) {
    if (claim.request_hash != 0 && claim.request_hash != policy.request_hash) {
        const Verdict changed = Inconclusive{
            {"request_changed",
             "The tool's configuration changed since the attempt: what would be sent now may be "
             "another request, so it is not sent."}
        };
        return decide_probe(claim, changed, policy, now, 0);
    }
    const auto& window = policy.key.window;
    if (window && now + policy.timeout >= claim.key_since + *window) {
        return ask_person(
            claim,
            AttentionReason::manual,
            {"window_passed",
             "The provider may have forgotten the key by the time an answer is there, so the "
             "request is not sent once more: look at the other side."}
        );
    }
    if (claim.intent.expires_at && now >= *claim.intent.expires_at) {
        return ask_person(
            claim,
            AttentionReason::manual,
            {"expired", "No attempt may begin after expires_at, and each resend is one."}
        );
    }
    const int allowed = claim.intent.max_attempts.value_or(policy.retry.max_attempts);
    if (claim.attempts >= allowed) {
        return ask_person(
            claim,
            AttentionReason::give_up,
            {"attempts_used_up", "No attempt is left, and each resend is one."}
        );
    }
    return std::nullopt;
}

Verdict resend_verdict(const Outcome& outcome) {
    return std::visit(
        Overloaded{
            [](const Succeeded& o) -> Verdict { return Found{o.result, o.note}; },
            [](const Accepted&) -> Verdict { return Pending{"taken, not yet proven"}; },
            [](const Rejected& o) -> Verdict {
                if (o.proves_absence) return Absent{};
                return Inconclusive{o.error};  // maybe the echo of our own success
            },
            [](const RetryLater& o) -> Verdict { return Pending{o.error.message}; },
            [](const Unknown& o) -> Verdict {
                if (o.in_progress) return Pending{o.error.message};
                return Inconclusive{o.error};
            },
            [](const Attention& o) -> Verdict { return Conflict{o.error}; },
        },
        outcome
    );
}

Transition decide_resend(
    const ClaimedProbe& claim,
    const Outcome& outcome,
    const ToolPolicy& policy,
    DbTime now,
    double random
) {
    auto next = decide_probe(claim, resend_verdict(outcome), policy, now, random);
    if (not_counted(outcome)) next.attempts_delta = -1;
    if (std::holds_alternative<Succeeded>(outcome)) next.evidence = Transition::Evidence::effect;
    if (const auto* later = std::get_if<RetryLater>(&outcome); later && later->after) {
        if (next.due_in && next.to == Status::unknown) {
            next.due_in = std::max(*next.due_in, *later->after);
        }
    }
    for (auto& event : next.events) event.detail.set("resend", claim.attempts);
    return next;
}

}  // namespace outbox
