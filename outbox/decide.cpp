#include "outbox/decide.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "outbox/overloaded.hpp"
#include "outbox/retry_policy.hpp"

namespace outbox {
namespace {

using std::chrono::milliseconds;
using Evidence = Transition::Evidence;

Json describe(const Error& error) {
    Json detail;
    detail.set("code", error.code);
    detail.set("message", error.message);
    return detail;
}

int allowed_attempts(const LeasedAttempt& attempt, const ToolPolicy& policy) {
    return attempt.intent.max_attempts.value_or(policy.retry.max_attempts);
}

// One attempt's end; every member function is one row of the table in contract/states.md.
class AttemptEnd {
 public:
    AttemptEnd(const LeasedAttempt& attempt, const ToolPolicy& policy, DbTime now, double random)
        : attempt_(attempt), policy_(policy), now_(now), random_(random) {
        next_.writer = Transition::Writer::attempt;
        next_.seq = attempt.intent.seq;
        next_.id = attempt.intent.id;
        next_.tool = attempt.intent.tool;
        next_.epoch = attempt.epoch;
        max_attempts_ = allowed_attempts(attempt, policy);
    }

    Transition succeeded(Succeeded outcome) {
        next_.to = Status::succeeded;
        next_.result = std::move(outcome.result);
        next_.evidence = Evidence::effect;
        if (attempt_.attempts > 1 || attempt_.ambiguous) tell(EventKind::succeeded, Json::Object{});
        if (!outcome.note.empty()) {
            Json detail;
            detail.set("message", std::move(outcome.note));
            tell(EventKind::result_lost, std::move(detail));
        }
        return std::move(next_);
    }

    Transition accepted(Accepted outcome) {
        if (is_read()) {
            return again({"accepted", "The other side took it but did not answer yet."});
        }
        next_.result = std::move(outcome.result);
        return unknown();
    }

    Transition rejected(Rejected outcome) {
        if (attempt_.ambiguous && !outcome.proves_absence && !is_read()) {
            // Maybe the echo of our own success: it proves nothing, not even as late evidence. It
            // counts as an attempt even when unsent, so that it ends some day.
            return echo(std::move(outcome.error));
        }
        if (!is_read()) next_.evidence = Evidence::no_effect;
        if (!outcome.sent) next_.attempts_delta = -1;
        return failed(std::move(outcome.error));
    }

    Transition retry(RetryLater outcome) {
        next_.evidence = is_read() ? Evidence::none : Evidence::no_effect;
        next_.attempts_delta = outcome.counts ? 0 : -1;
        if (outcome.counts && attempt_.attempts >= max_attempts_) {
            return no_effect(std::move(outcome.error));
        }
        const auto delay = delay_of(outcome);
        const auto& expires_at = attempt_.intent.expires_at;
        if (expires_at && now_ + delay >= *expires_at) {
            return no_effect(
                {"expired",
                 "The next attempt would begin after expires_at; the last "
                 "one ended with: " +
                     outcome.error.message}
            );
        }
        if (now_ + delay > attempt_.first_attempt_at + policy_.retry.give_up_after) {
            return no_effect(
                {"gave_up",
                 "The next attempt would begin after retry.give_up_after; "
                 "the last one ended with: " +
                     outcome.error.message}
            );
        }
        next_.to = Status::scheduled;
        next_.due_in = delay;
        auto detail = describe(outcome.error);
        detail.set("due_in_ms", static_cast<std::int64_t>(delay.count()));
        if (!outcome.counts) detail.set("counted", false);
        tell(EventKind::retry, std::move(detail));
        next_.error = std::move(outcome.error);
        return std::move(next_);
    }

    Transition unknown(Unknown outcome) {
        if (is_read()) return again(std::move(outcome.error));
        return unknown(outcome.cause, std::move(outcome.error));
    }

    Transition attention(Attention outcome) {
        if (is_read()) return failed(std::move(outcome.error));
        next_.to = Status::unknown;
        next_.ambiguous = true;
        flag(AttentionReason::provider, describe(outcome.error));
        next_.error = std::move(outcome.error);
        return std::move(next_);
    }

    Transition released() {
        next_.to = Status::pending;
        next_.attempts_delta = -1;
        next_.evidence = Evidence::no_effect;
        tell(EventKind::released, Json::Object{});
        return std::move(next_);
    }

 private:
    [[nodiscard]] bool is_read() const { return policy_.effect == Effect::read; }

    void tell(EventKind kind, Json detail) {
        detail.set("attempt", attempt_.attempts);
        next_.events.push_back({kind, std::move(detail)});
    }

    void flag(AttentionReason reason, Json detail) {
        next_.attention = reason;
        next_.due_in.reset();  // no probe by itself: only a person can help
        detail.set("reason", to_string(reason));
        tell(EventKind::attention, std::move(detail));
    }

    // A read without an answer: no effect can be in doubt, so it is simply tried again.
    Transition again(Error error) {
        RetryLater later;
        later.error = std::move(error);
        return retry(std::move(later));
    }

    // This attempt definitely had no effect and there will be no other one.
    Transition no_effect(Error error) {
        return attempt_.ambiguous && !is_read() ? echo(std::move(error)) : failed(std::move(error));
    }

    Transition failed(Error error) {
        next_.to = Status::failed;
        tell(EventKind::failed, describe(error));
        next_.error = std::move(error);
        return std::move(next_);
    }

    Transition echo(Error error) {
        return unknown(Cause::rejected_after_unknown, std::move(error));
    }

    Transition unknown(Cause cause, Error error) {
        next_.cause = cause;
        auto detail = describe(error);
        detail.set("cause", to_string(cause));
        tell(EventKind::unknown, std::move(detail));
        next_.error = std::move(error);
        return unknown();
    }

    // The first probe comes at once: "found" counts immediately.
    Transition unknown() {
        next_.to = Status::unknown;
        next_.ambiguous = true;
        next_.due_in = milliseconds(0);
        if (policy_.reconcile.manual) flag(AttentionReason::manual, Json::Object{});
        return std::move(next_);
    }

    // What was given back does not count as an attempt, so there the back-off grows with the time
    // since the first one. A Retry-After of nothing would be a loop without a pause.
    [[nodiscard]] milliseconds delay_of(const RetryLater& outcome) const {
        if (outcome.after && *outcome.after > milliseconds(0)) return *outcome.after;
        const auto elapsed =
            std::chrono::duration_cast<milliseconds>(now_ - attempt_.first_attempt_at);
        const int step =
            outcome.counts ? attempt_.attempts
                           : std::max(attempt_.attempts, elapsed_attempts(policy_.retry, elapsed));
        return retry_delay(policy_.retry, step, random_);
    }

    const LeasedAttempt& attempt_;
    const ToolPolicy& policy_;
    DbTime now_;
    double random_;
    int max_attempts_;
    Transition next_;
};

}  // namespace

Transition decide_attempt(
    const LeasedAttempt& attempt,
    const Outcome& outcome,
    const ToolPolicy& policy,
    DbTime now,
    double random
) {
    AttemptEnd end(attempt, policy, now, random);
    return std::visit(
        Overloaded{
            [&](const Succeeded& o) { return end.succeeded(o); },
            [&](const Accepted& o) { return end.accepted(o); },
            [&](const Rejected& o) { return end.rejected(o); },
            [&](const RetryLater& o) { return end.retry(o); },
            [&](const Unknown& o) { return end.unknown(o); },
            [&](const Attention& o) { return end.attention(o); },
        },
        outcome
    );
}

std::optional<Outcome> decide_before(const LeasedAttempt& attempt, const ToolPolicy& policy) {
    const auto& intent = attempt.intent;
    if (!intent.unreadable.empty()) return refused({"invalid_arguments", intent.unreadable});
    if (attempt.attempts > allowed_attempts(attempt, policy)) {
        return refused({"attempts_used_up", "No attempt is left; nobody saw the last one end."});
    }
    return std::nullopt;
}

bool needs_fresh_absent(const LeasedAttempt& attempt, const ToolPolicy& policy, DbTime now) {
    const bool looked_for =
        policy.leaves_doubt() && !policy.reconcile.manual && !policy.reconcile.resend;
    return looked_for && attempt.ambiguous && policy.key.window &&
           now >= attempt.first_attempt_at + *policy.key.window;
}

std::optional<Outcome> decide_fresh_absent(const Verdict& verdict) {
    if (std::holds_alternative<Absent>(verdict)) return std::nullopt;
    std::string seen(verdict_name(verdict));
    if (const auto* unclear = std::get_if<Inconclusive>(&verdict)) {
        seen += " (" + unclear->error.message + ")";
    }
    return Unknown{
        Cause::other,
        {"window_passed",
         "key.window has passed since the first attempt, and a look whether that one acted said " +
             seen + ": nothing was sent."}
    };
}

Transition decide_release(const LeasedAttempt& attempt) {
    static const ToolPolicy kAnyTool;  // a release asks nothing of the tool
    return AttemptEnd(attempt, kAnyTool, attempt.leased_at, 0).released();
}

}  // namespace outbox
