#include "outbox/executor.hpp"

#include <string>
#include <utility>

#include "outbox/decide.hpp"
#include "outbox/traceparent.hpp"

namespace outbox {
namespace {

RetryLater not_sent(std::string code, std::string message) {
    RetryLater later;
    later.error = {std::move(code), std::move(message)};
    later.counts = false;
    return later;
}

// Of an effect in the transaction of its record: the record's own write tells whether that was
// committed after all.
RetryLater not_committed(const std::string& what) {
    RetryLater later;
    later.error = {"tool_failed", what};
    return later;
}

Unknown lost(const std::string& what) {
    return {.cause = Cause::other, .error = {"tool_failed", what}};
}

Deadline deadline_of(const Dispatch& dispatch) {
    return {dispatch.leased_at + dispatch.entry->policy.timeout};
}

}  // namespace

Executor::Executor(
    asio::any_io_executor executor,
    Completer& completer,
    ProviderKeys& keys,
    Observer& observer,
    Log& log,
    Failpoints& failpoints,
    Random& random,
    TaskGroup::OnEscape on_escape
)
    : completer_(completer),
      keys_(keys),
      observer_(observer),
      log_(log),
      failpoints_(failpoints),
      random_(random),
      attempts_(executor, std::move(on_escape)),
      calls_(std::move(executor)) {}

void Executor::start(Dispatch dispatch) {
    in_flight_.insert(dispatch.attempt.intent.seq);
    attempts_.spawn("attempt", run(std::move(dispatch)));
}

void Executor::cut() {
    draining_ = true;
    cut_ = true;
    calls_.cut();
}

std::vector<Seq> Executor::in_flight() const {
    return {in_flight_.begin(), in_flight_.end()};
}

asio::awaitable<void> Executor::run(Dispatch dispatch) {
    const auto seq = dispatch.attempt.intent.seq;
    std::optional<Transition> written;
    auto attempting = attempt(dispatch, written);
    auto next = co_await std::move(attempting);
    dispatch.tool_slot.give_back();
    dispatch.call_slot.give_back();
    std::optional<Fate> fate = Fate::applied;
    if (written) {
        observer_.completed(1);
    } else {
        auto writing = completer_.write(next);
        fate = co_await std::move(writing);
    }
    in_flight_.erase(in_flight_.find(seq));
    if (fate == Fate::applied && on_written) on_written(next);
}

asio::awaitable<Transition> Executor::attempt(
    Dispatch& dispatch, std::optional<Transition>& written
) {
    const auto& leased = dispatch.attempt;
    if (draining_ || dispatch.unsent) co_return decide_release(leased);

    const auto begun = BootClock::now();
    // Empty for a later attempt: it waited by decision.
    const auto waited = leased.eligible_since ? leased.leased_at - *leased.eligible_since
                                              : DbTime::duration::zero();
    if (leased.eligible_since) observer_.attempt_started(leased.intent.tool, waited);
    bool held = false;
    auto performing = perform(dispatch, written, held);
    auto outcome = co_await std::move(performing);
    // Committed is committed, whatever went wrong on the way back.
    if (written) outcome = Succeeded{written->result, {}};
    observer_.attempt_ended(leased.intent.tool, outcome, BootClock::now() - begun);

    const auto elapsed =
        std::chrono::duration_cast<DbTime::duration>(BootClock::now() - dispatch.leased_at);
    auto next = written ? *written
                        : decide_attempt(
                              leased,
                              outcome,
                              dispatch.entry->policy,
                              leased.leased_at + elapsed,
                              random_.uniform()
                          );
    if (held) next.attempts_delta = -1;
    if (next.cause) observer_.became_unknown(leased.intent.tool, *next.cause);
    report(leased, outcome, next);
    co_return next;
}

// What throws before the tool is called had no effect; after that it may have had one.
asio::awaitable<Outcome> Executor::perform(
    const Dispatch& dispatch, std::optional<Transition>& written, bool& held
) {
    const auto& leased = dispatch.attempt;
    bool called = false;
    Outcome outcome;
    try {
        co_await failpoints_.hit(FailpointId::after_lease_before_dispatch);
        if (auto end = decide_before(leased, dispatch.entry->policy)) co_return std::move(*end);
        // A plain insert can name the tool, but it undoes nothing: only outbox.compensate does.
        if (dispatch.entry->policy.compensation && !leased.intent.compensates) {
            co_return refused(
                {"not_a_compensation", "This tool only undoes operations: call outbox.compensate."}
            );
        }
        co_await failpoints_.hit(FailpointId::before_provider_key);
        auto deriving = keys_.key(leased.intent.id, dispatch.entry->policy, leased.request_hash);
        auto key = co_await std::move(deriving);
        co_await failpoints_.hit(FailpointId::after_provider_key);
        const auto now =
            leased.leased_at +
            std::chrono::duration_cast<DbTime::duration>(BootClock::now() - dispatch.leased_at);
        if (needs_fresh_absent(leased, dispatch.entry->policy, now)) {
            auto looking = look_again(dispatch, key);
            if (auto end = co_await std::move(looking)) {
                held = true;
                co_return std::move(*end);
            }
        }
        if (deadline_of(dispatch).passed() || cut_) {
            co_return not_sent("not_sent_deadline", "The time was up before anything was sent.");
        }
        called = true;
        auto calling = call_tool(dispatch, std::move(key), written);
        outcome = co_await std::move(calling);
        co_await failpoints_.hit(FailpointId::after_effect_before_complete);
    } catch (const std::exception& error) {
        if (called && dispatch.entry->policy.own_transaction) {
            outcome = not_committed(error.what());
        } else if (called) {
            outcome = lost(error.what());
        } else {
            outcome = not_sent("not_sent_internal", error.what());
        }
    }
    co_return outcome;
}

// By the tool's own look-up, in half of the time there is. Whatever goes wrong in it proves
// nothing.
asio::awaitable<std::optional<Outcome>> Executor::look_again(
    const Dispatch& dispatch, std::string key
) {
    const auto& leased = dispatch.attempt;
    if (leased.request_hash != dispatch.entry->policy.request_hash) {
        co_return decide_fresh_absent(
            Inconclusive{{"request_changed", "what is looked for now may not be what was sent"}}
        );
    }
    ToolCall call{
        .intent = leased.intent,
        .provider_key = std::move(key),
        .attempt = leased.attempts - 1,
        .first_sent_at = leased.first_attempt_at,
        .ambiguous = true,
    };
    const Deadline half{BootClock::now() + deadline_of(dispatch).left() / 2};
    Verdict verdict = Inconclusive{};
    try {
        auto calling = calls_.run(dispatch.entry->tool->probe(std::move(call), half));
        verdict = co_await std::move(calling);
    } catch (const std::exception& error) {
        verdict = Inconclusive{.error = {"probe_failed", error.what()}};
    }
    observer_.probed(leased.intent.tool, verdict);
    co_return decide_fresh_absent(verdict);
}

// Everything is copied but what outlives the attempt: decide may run on another thread.
OwnAttempt Executor::own_attempt(const Dispatch& dispatch) const {
    const auto& leased = dispatch.attempt;
    auto decide = [attempt = leased,
                   &policy = dispatch.entry->policy,
                   &completer = completer_](const Outcome& outcome) {
        auto next = decide_attempt(attempt, outcome, policy, attempt.leased_at, 0);
        completer.make_storable(next);
        return next;
    };
    return {
        .seq = leased.intent.seq,
        .epoch = leased.epoch,
        .leased_at = leased.leased_at,
        .decide = std::move(decide)
    };
}

asio::awaitable<Outcome> Executor::call_tool(
    const Dispatch& dispatch, std::string key, std::optional<Transition>& written
) {
    ToolCall call{
        .intent = dispatch.attempt.intent,
        .provider_key = std::move(key),
        .attempt = dispatch.attempt.attempts,
        .first_sent_at = dispatch.attempt.first_attempt_at,
        .ambiguous = dispatch.attempt.ambiguous,
    };
    if (dispatch.entry->policy.own_transaction) {
        call.own = own_attempt(dispatch);
        call.written = &written;
    }
    if (keep_handle) {
        const auto& leased = dispatch.attempt;
        call.keep_handle = handle_keeper(keep_handle, leased.intent.id, leased.epoch);
    }
    return calls_.run(dispatch.entry->tool->execute(std::move(call), deadline_of(dispatch)));
}

void Executor::report(
    const LeasedAttempt& attempt, const Outcome& outcome, const Transition& next
) {
    const bool clean = next.to == Status::succeeded && next.events.empty();
    const auto level = clean                                          ? LogLevel::debug
                       : next.to == Status::unknown || next.attention ? LogLevel::warn
                                                                      : LogLevel::info;
    log_.write(
        level,
        "attempt ended",
        {{"operation_id", attempt.intent.id.value},
         {"tool", attempt.intent.tool},
         {"attempt", std::to_string(attempt.attempts)},
         {"epoch", std::to_string(attempt.epoch.value)},
         {"outcome", std::string(outcome_name(outcome))},
         {"status", std::string(to_string(next.to))},
         {"code", next.error ? next.error->code : ""},
         {"error", next.error ? next.error->message : ""},
         {"trace_id", trace_id(attempt.intent.traceparent)}}
    );
}

}  // namespace outbox
