#include "outbox/decide.hpp"

#include <string>
#include <vector>

#include "outbox/retry_policy.hpp"
#include "tests/support/catch.hpp"

using namespace outbox;
using namespace std::chrono_literals;

namespace {

constexpr DbTime kNow{1'000'000s};

ToolPolicy write_tool() {
    ToolPolicy policy;
    policy.name = "create_ticket";
    policy.retry.jitter = 0;
    policy.retry.initial = 2s;
    policy.request_hash = 7;
    return policy;
}

ToolPolicy read_tool() {
    auto policy = write_tool();
    policy.effect = Effect::read;
    return policy;
}

LeasedAttempt attempt(int attempts = 1) {
    LeasedAttempt leased;
    leased.intent.seq = Seq(42);
    leased.intent.id = OperationId("op-1");
    leased.intent.tool = "create_ticket";
    leased.epoch = Epoch(5);
    leased.attempts = attempts;
    leased.request_hash = 7;
    leased.leased_at = kNow - 1s;
    leased.first_attempt_at = kNow - 1s;
    return leased;
}

LeasedAttempt doubtful(int attempts = 2) {
    auto leased = attempt(attempts);
    leased.ambiguous = true;
    return leased;
}

Transition decide(const LeasedAttempt& leased, Outcome outcome, ToolPolicy policy = write_tool()) {
    auto next = decide_attempt(leased, outcome, policy, kNow, 0.5);
    CHECK(next.writer == Transition::Writer::attempt);
    CHECK(next.seq == Seq(42));
    CHECK(next.id == OperationId("op-1"));
    CHECK(next.tool == "create_ticket");
    CHECK(next.epoch == Epoch(5));
    return next;
}

std::string kinds(const Transition& next) {
    std::string text;
    for (const auto& event : next.events) {
        if (!text.empty()) text += ' ';
        text += to_string(event.kind);
    }
    return text;
}

RetryLater later(std::optional<std::chrono::milliseconds> after = {}, bool counts = true) {
    return {.error = {"status_503", "busy"}, .after = after, .counts = counts};
}

Rejected rejected(bool proves_absence = false) {
    return {.error = {"bad_title", "too long"}, .proves_absence = proves_absence};
}

}  // namespace

TEST_CASE("attempting → succeeded: the clean path writes no event") {
    const auto next = decide(attempt(), Succeeded{.result = Json(7), .note = ""});
    CHECK(next.to == Status::succeeded);
    CHECK(to_text(next.result) == "7");
    CHECK(next.evidence == Transition::Evidence::effect);
    CHECK(next.attempts_delta == 0);
    CHECK(next.events.empty());
}

TEST_CASE("attempting → succeeded after trouble says so") {
    CHECK(kinds(decide(attempt(2), Succeeded{})) == "succeeded");
    CHECK(kinds(decide(doubtful(1), Succeeded{})) == "succeeded");
    CHECK(kinds(decide(attempt(), Succeeded{.result = {}, .note = "no /id"})) == "result_lost");
}

TEST_CASE("attempting → failed: definitely no effect, and none of an earlier attempt") {
    const auto next = decide(attempt(), rejected());
    CHECK(next.to == Status::failed);
    CHECK(next.error->code == "bad_title");
    CHECK(next.error->message == "too long");
    CHECK(next.evidence == Transition::Evidence::no_effect);
    CHECK(kinds(next) == "failed");
}

TEST_CASE("a rejection after an unknown attempt may be the echo of our own success") {
    const auto next = decide(doubtful(), rejected());
    CHECK(next.to == Status::unknown);
    CHECK(next.cause == Cause::rejected_after_unknown);
    CHECK(next.due_in == 0ms);
    CHECK(next.ambiguous);
    CHECK(next.evidence == Transition::Evidence::none);
    CHECK(kinds(next) == "unknown");

    const auto proven = decide(doubtful(), rejected(true));
    CHECK(proven.to == Status::failed);
    CHECK(proven.evidence == Transition::Evidence::no_effect);
}

TEST_CASE("refused before the first byte: failed, and the attempt is given back") {
    const auto next = decide(attempt(), outbox::refused({"missing_argument", "no title"}));
    CHECK(next.to == Status::failed);
    CHECK(next.attempts_delta == -1);
    CHECK(decide(attempt(), rejected()).attempts_delta == 0);
    // In doubt it stays a counted attempt, so that it ends some day.
    CHECK(
        decide(doubtful(), outbox::refused({"missing_argument", "no title"})).attempts_delta == 0
    );
}

TEST_CASE("an attempt that is one too many is refused before anything is sent") {
    const auto code = [](const LeasedAttempt& leased, const ToolPolicy& policy) {
        const auto end = decide_before(leased, policy);
        return end ? std::get<Rejected>(*end).error.code : "";
    };
    for (const auto& policy : {read_tool(), write_tool()}) {
        CHECK(code(attempt(8), policy).empty());
        CHECK(code(attempt(9), policy) == "attempts_used_up");
        auto own = attempt(2);
        own.intent.max_attempts = 1;
        CHECK(code(own, policy) == "attempts_used_up");
        own.intent.unreadable = "not JSON";
        CHECK(code(own, policy) == "invalid_arguments");
    }
    const auto read = decide(attempt(9), *decide_before(attempt(9), read_tool()), read_tool());
    CHECK(read.to == Status::failed);
    CHECK(read.attempts_delta == -1);
    // max_attempts was lowered: what may have happened is asked about.
    const auto write = decide(doubtful(9), *decide_before(doubtful(9), write_tool()));
    CHECK(write.to == Status::unknown);
}

TEST_CASE("once key.window has passed, an attempt after one in doubt needs a fresh absent") {
    auto policy = write_tool();
    policy.key.window = 1h;
    auto leased = doubtful();
    leased.first_attempt_at = kNow - 1h;
    CHECK(needs_fresh_absent(leased, policy, kNow));
    CHECK_FALSE(needs_fresh_absent(leased, policy, kNow - 1us));
    // Only where an earlier attempt may have acted, and somebody can be asked.
    auto clean = attempt(2);
    clean.first_attempt_at = leased.first_attempt_at;
    CHECK_FALSE(needs_fresh_absent(clean, policy, kNow));
    auto forever = policy;
    forever.key.window.reset();
    CHECK_FALSE(needs_fresh_absent(leased, forever, kNow));
    auto read = policy;
    read.effect = Effect::read;
    CHECK_FALSE(needs_fresh_absent(leased, read, kNow));
    auto own = policy;
    own.own_transaction = true;
    CHECK_FALSE(needs_fresh_absent(leased, own, kNow));
    for (auto nobody : {&ReconcilePolicy::manual, &ReconcilePolicy::resend}) {
        auto asks_nobody = policy;
        asks_nobody.reconcile.*nobody = true;
        CHECK_FALSE(needs_fresh_absent(leased, asks_nobody, kNow));
    }
}

TEST_CASE("only absent lets such an attempt begin; everything else is looked into") {
    CHECK_FALSE(decide_fresh_absent(Absent{}));
    for (const Verdict& verdict : {
             Verdict(Found{}),
             Verdict(Pending{}),
             Verdict(Conflict{}),
             Verdict(Inconclusive{{"status_503", "busy"}}),
         }) {
        const auto end = decide_fresh_absent(verdict);
        REQUIRE(end);
        const auto& unknown = std::get<Unknown>(*end);
        CHECK(unknown.error.code == "window_passed");
        CHECK(unknown.error.message.find(verdict_name(verdict)) != std::string::npos);
        CHECK(decide(doubtful(), *end).to == Status::unknown);
    }
}

TEST_CASE("attempting → scheduled: after the back-off") {
    const auto next = decide(attempt(3), later());
    CHECK(next.to == Status::scheduled);
    CHECK(next.due_in == 8s);
    CHECK(next.attempts_delta == 0);
    CHECK(next.error->code == "status_503");
    CHECK(next.evidence == Transition::Evidence::no_effect);
    CHECK_FALSE(next.ambiguous);
    CHECK(kinds(next) == "retry");
}

TEST_CASE("Retry-After may exceed retry.max, not retry.give_up_after") {
    CHECK(decide(attempt(), later(1h)).due_in == 1h);
    const auto beyond = decide(attempt(), later(25h));
    CHECK(beyond.to == Status::failed);
    CHECK(beyond.error->code == "gave_up");
    CHECK(decide(attempt(), later(0ms)).due_in == 2s);
}

TEST_CASE("what was not sent gives the attempt back and backs off with the time") {
    const auto first = decide(attempt(), later({}, false));
    CHECK(first.to == Status::scheduled);
    CHECK(first.attempts_delta == -1);
    CHECK(first.due_in == 2s);

    auto leased = attempt();
    leased.first_attempt_at = kNow - 60s;
    CHECK(decide(leased, later({}, false)).due_in == 32s);
    leased.first_attempt_at = kNow - 2h;
    CHECK(decide(leased, later({}, false)).due_in == 300s);
}

TEST_CASE("what was not sent is bounded by give_up_after and expires_at, not by max_attempts") {
    CHECK(decide(attempt(8), later({}, false)).to == Status::scheduled);
    CHECK(decide(attempt(100), later({}, false)).to == Status::scheduled);

    auto leased = attempt();
    leased.first_attempt_at = kNow - 24h;
    auto next = decide(leased, later({}, false));
    CHECK(next.to == Status::failed);
    CHECK(next.error->code == "gave_up");
    CHECK(next.attempts_delta == -1);
    CHECK(kinds(next) == "failed");

    leased = attempt();
    leased.intent.expires_at = kNow + 2s;
    next = decide(leased, later({}, false));
    CHECK(next.to == Status::failed);
    CHECK(next.error->code == "expired");
    leased.intent.expires_at = kNow + 3s;
    CHECK(decide(leased, later({}, false)).to == Status::scheduled);
}

TEST_CASE("counting retries end with the last attempt; the planner's limit goes over the tool's") {
    CHECK(decide(attempt(7), later()).to == Status::scheduled);
    const auto last = decide(attempt(8), later());
    CHECK(last.to == Status::failed);
    CHECK(last.error->code == "status_503");

    auto leased = attempt(2);
    leased.intent.max_attempts = 2;
    CHECK(decide(leased, later()).to == Status::failed);
    leased = attempt(8);
    leased.intent.max_attempts = 9;
    CHECK(decide(leased, later()).to == Status::scheduled);
}

TEST_CASE("no failure without a probe once an attempt ended unknown") {
    for (const auto& outcome : {later(), later(25h), later({}, false)}) {
        auto leased = doubtful(8);
        leased.first_attempt_at = kNow - 24h;
        const auto next = decide(leased, outcome);
        CHECK(next.to == Status::unknown);
        CHECK(next.cause == Cause::rejected_after_unknown);
        CHECK(next.due_in == 0ms);
    }
    CHECK(decide(doubtful(), later()).to == Status::scheduled);
}

TEST_CASE("attempting → unknown: anything may have happened, and the probe comes at once") {
    const auto next =
        decide(attempt(), Unknown{.cause = Cause::timeout, .error = {"timeout", "no answer"}});
    CHECK(next.to == Status::unknown);
    CHECK(next.cause == Cause::timeout);
    CHECK(next.due_in == 0ms);
    CHECK(next.ambiguous);
    CHECK(next.evidence == Transition::Evidence::none);
    CHECK_FALSE(next.attention.has_value());
    CHECK(kinds(next) == "unknown");
    CHECK(next.events[0].detail.find("cause")->as_string()->compare("timeout") == 0);
}

TEST_CASE("attempting → unknown: accepted is no anomaly") {
    const auto next = decide(attempt(), Accepted{.result = Json("job-1")});
    CHECK(next.to == Status::unknown);
    CHECK_FALSE(next.cause.has_value());
    CHECK(next.ambiguous);
    CHECK(to_text(next.result) == "\"job-1\"");
    CHECK(next.due_in == 0ms);
    CHECK(next.events.empty());
}

TEST_CASE("the provider asks for a person") {
    const auto next = decide(attempt(), Attention{.error = {"key_reused", "other content"}});
    CHECK(next.to == Status::unknown);
    CHECK(next.attention == AttentionReason::provider);
    CHECK_FALSE(next.due_in.has_value());
    CHECK(next.ambiguous);
    CHECK(kinds(next) == "attention");
}

TEST_CASE("an unknown of a manual tool waits for a person") {
    auto policy = write_tool();
    policy.reconcile.manual = true;
    const auto next = decide(attempt(), Unknown{.cause = Cause::reset, .error = {}}, policy);
    CHECK(next.to == Status::unknown);
    CHECK(next.attention == AttentionReason::manual);
    CHECK_FALSE(next.due_in.has_value());
    CHECK(kinds(next) == "unknown attention");
    CHECK(decide(attempt(), Accepted{}, policy).attention == AttentionReason::manual);
}

TEST_CASE("a read has no unknown: it is tried again, bounded by max_attempts") {
    const std::vector<Outcome> outcomes = {
        Unknown{.cause = Cause::timeout, .error = {"timeout", ""}}, Accepted{}
    };
    for (const auto& outcome : outcomes) {
        CHECK(decide(attempt(), outcome, read_tool()).to == Status::scheduled);
        CHECK(decide(attempt(8), outcome, read_tool()).to == Status::failed);
    }
    CHECK(decide(doubtful(), rejected(), read_tool()).to == Status::failed);
    CHECK(decide(attempt(), Attention{}, read_tool()).to == Status::failed);
    CHECK(decide(attempt(), Attention{}, read_tool()).attention == std::nullopt);
}

TEST_CASE("attempting → pending: released unsent, the attempt does not count") {
    const auto next = decide_release(attempt());
    CHECK(next.to == Status::pending);
    CHECK(next.epoch == Epoch(5));
    CHECK(next.attempts_delta == -1);
    CHECK(kinds(next) == "released");
}

TEST_CASE("the back-off grows to its cap, and jitter takes its share") {
    RetryPolicy policy;
    policy.jitter = 0;
    CHECK(retry_delay(policy, 0, 0) == 2s);
    CHECK(retry_delay(policy, 1, 0.9) == 2s);
    CHECK(retry_delay(policy, 5, 0) == 32s);
    CHECK(retry_delay(policy, 9, 0) == 300s);
    CHECK(retry_delay(policy, 1'000'000, 0) == 300s);
    policy.jitter = 0.5;
    CHECK(retry_delay(policy, 1, 0) == 1s);
    CHECK(retry_delay(policy, 1, 0.5) == 1500ms);
    policy.jitter = 1;
    CHECK(retry_delay(policy, 3, 0) == 0ms);

    CHECK(elapsed_attempts(policy, 0s) == 1);
    CHECK(elapsed_attempts(policy, 2s) == 2);
    CHECK(elapsed_attempts(policy, 14s) == 4);
    policy.initial = 0ms;
    CHECK(elapsed_attempts(policy, 1h) == 64);

    const ReconcilePolicy probes;
    CHECK(probe_delay(probes, 0) == 15s);
    CHECK(probe_delay(probes, 1) == 15s);
    CHECK(probe_delay(probes, 2) == 30s);
    CHECK(probe_delay(probes, 7) == 600s);
    CHECK(probe_delay(probes, 1'000'000) == 600s);
}
