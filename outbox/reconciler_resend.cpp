// reconcile: resend. An attempt in the place of a look-up: journaled before its first byte, with a
// slot and a hard deadline of its own.
#include <utility>

#include "outbox/decide.hpp"
#include "outbox/handle_keeper.hpp"
#include "outbox/reconciler.hpp"

namespace outbox {
namespace {

RetryLater not_sent(std::string message) {
    RetryLater later;
    later.error = {"not_sent", std::move(message)};
    later.counts = false;
    return later;
}

}  // namespace

asio::awaitable<std::optional<Transition>> Reconciler::resend(
    ClaimedProbe& claim, const ToolEntry& entry, BootClock::time_point claimed_at
) {
    // The deadline begins before the statement that stores it is sent, as with a lease.
    const auto begun = BootClock::now();
    const auto now = [&] {
        return claim.probe_started_at +
               std::chrono::duration_cast<DbTime::duration>(BootClock::now() - claimed_at);
    };
    const auto& policy = entry.policy;
    if (auto end = decide_before_resend(claim, policy, now())) {
        const Verdict nobody = Inconclusive{end->error.value_or(Error{})};
        observer_.probed(claim.intent.tool, nobody);
        report(claim, nobody, *end);
        co_return std::move(*end);
    }
    std::string key;
    Error unsent;
    if (!claim.intent.unreadable.empty()) {
        unsent = {"invalid_arguments", claim.intent.unreadable};
    } else {
        try {
            co_await failpoints_.hit(FailpointId::before_probe);
            auto deriving = keys_.key(claim.intent.id, policy, claim.request_hash);
            key = co_await std::move(deriving);
        } catch (const std::exception& error) {
            unsent = {"probe_failed", error.what()};
        }
    }
    if (!unsent.code.empty()) {
        const Verdict nothing = Inconclusive{unsent};
        observer_.probed(claim.intent.tool, nothing);
        auto next = decide_probe(claim, nothing, policy, now(), random_.uniform());
        report(claim, nothing, next);
        co_return next;
    }
    if (stopping_) co_return std::nullopt;
    if (attempt_begins) attempt_begins(claim.intent.tool);
    auto journaling = journal(claim, entry);
    const auto journaled = co_await std::move(journaling);
    if (!journaled) co_return std::nullopt;
    claim.epoch = journaled->epoch;
    claim.attempts = journaled->attempts;

    auto sending = send(claim, entry, std::move(key), Deadline{begun + policy.timeout});
    const auto outcome = co_await std::move(sending);
    observer_.attempt_ended(claim.intent.tool, outcome, BootClock::now() - begun);
    const auto verdict = resend_verdict(outcome);
    observer_.probed(claim.intent.tool, verdict);
    distrust(claim, entry, claimed_at);
    auto next = decide_resend(claim, outcome, policy, now(), random_.uniform());
    report(claim, verdict, next);
    co_return next;
}

// Nothing was sent yet: whether it was journaled or not, the claim ends by itself.
asio::awaitable<std::optional<ResentAttempt>> Reconciler::journal(
    const ClaimedProbe& claim, const ToolEntry& entry
) {
    std::optional<ResentAttempt> journaled;
    try {
        auto journaling = store_.journal_resend(
            settings_.worker, claim.intent.seq, claim.epoch, entry.policy.timeout, settings_.margin
        );
        journaled = co_await std::move(journaling);
    } catch (const std::exception& error) {
        count_error(observer_, error);
        log_.warn(
            "could not journal a resend, it is not sent",
            {{"operation_id", claim.intent.id.value}, {"error", error.what()}}
        );
    }
    co_return journaled;
}

// What throws before the tool is called had no effect; after that it may have had one.
asio::awaitable<Outcome> Reconciler::send(
    const ClaimedProbe& claim, const ToolEntry& entry, std::string key, Deadline deadline
) {
    bool called = false;
    Outcome outcome;
    try {
        co_await failpoints_.hit(FailpointId::after_lease_before_dispatch);
        if (deadline.passed() || stopping_) {
            co_return not_sent("The time was up before anything was sent.");
        }
        ToolCall call{
            .intent = claim.intent,
            .provider_key = std::move(key),
            .attempt = claim.attempts,
            .first_sent_at = claim.first_attempt_at,
            .ambiguous = true,
        };
        const KeepHandle keep = [this](OperationId id, Epoch attempt, std::string handle) {
            return store_.keep_handle(std::move(id), attempt, std::move(handle));
        };
        call.keep_handle = handle_keeper(keep, claim.intent.id, claim.epoch);
        called = true;
        auto calling = calls_.run(entry.tool->execute(std::move(call), deadline));
        outcome = co_await std::move(calling);
        co_await failpoints_.hit(FailpointId::after_effect_before_complete);
    } catch (const std::exception& error) {
        if (called) {
            outcome = Unknown{.cause = Cause::other, .error = {"tool_failed", error.what()}};
        } else {
            outcome = not_sent(error.what());
        }
    }
    co_return outcome;
}

}  // namespace outbox
