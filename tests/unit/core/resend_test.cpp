// reconcile: resend. Asked by the request itself under the same key: when it may be sent once more,
// what the answer says, and what is left when the provider has forgotten the key.
#include <set>
#include <string>
#include <vector>

#include "outbox/decide.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/core/engine_fixture.hpp"

using namespace outbox;
using namespace test;
using Script = FakeTool::Script;

namespace {

constexpr DbTime kNow{1'000'000s};

ToolPolicy resending(std::string name = "t") {
    auto policy = quick_policy(std::move(name));
    policy.reconcile.resend = true;
    policy.key.window = 24h;
    return policy;
}

ClaimedProbe claim() {
    ClaimedProbe claimed;
    claimed.intent.seq = Seq(42);
    claimed.intent.id = OperationId("op-1");
    claimed.intent.tool = "t";
    claimed.epoch = Epoch(6);
    claimed.attempts = 1;
    claimed.request_hash = 7;
    claimed.probe_started_at = kNow;
    claimed.deadline_at = kNow - 1min;
    claimed.first_attempt_at = claimed.key_since = kNow - 1h;
    claimed.unknown_since = kNow - 1min;
    return claimed;
}

// The code of why it is not sent; empty: it is.
std::string refusal(const ClaimedProbe& claimed, const ToolPolicy& policy, DbTime now = kNow) {
    const auto end = decide_before_resend(claimed, policy, now);
    return end ? end->error->code : "";
}

Transition decide(const Outcome& outcome, const ClaimedProbe& claimed = claim()) {
    return decide_resend(claimed, outcome, resending(), kNow, 0);
}

std::string verdict_of(const Outcome& outcome) {
    return std::string(verdict_name(resend_verdict(outcome)));
}

RetryLater later(bool counts, std::optional<std::chrono::milliseconds> after = {}) {
    return {.error = {"status_429", "slow down"}, .after = after, .counts = counts, .asked = true};
}

Outcome timed_out() {
    return Unknown{.cause = Cause::timeout, .error = {"timeout", "no answer"}};
}

// A provider that honours keys: one effect per key, the same answer each time, for a while.
struct Provider {
    std::set<std::string> effects;
    int requests = 0;
    Outcome take(const ToolCall& call) {
        ++requests;
        effects.insert(call.provider_key);
        return Succeeded{.result = Json("T-1"), .note = ""};
    }
};

}  // namespace

TEST_CASE("a resend: only while its answer comes within the key's window") {
    auto policy = resending();
    policy.timeout = 20s;
    const auto claimed = claim();
    const auto end = claimed.key_since + 24h - 20s;
    CHECK(refusal(claimed, policy, end - 1us).empty());
    CHECK(refusal(claimed, policy, end) == "window_passed");
    const auto manual = decide_before_resend(claimed, policy, end);
    CHECK(manual->to == Status::unknown);
    CHECK(manual->attention == AttentionReason::manual);
    CHECK_FALSE(manual->due_in.has_value());
    CHECK(manual->events.at(0).kind == EventKind::attention);
    policy.key.window.reset();  // forever
    CHECK(refusal(claimed, policy, end + 10000h).empty());
}

// After a restore nobody knows when the first attempt was: at the earliest when it was asked for.
TEST_CASE("a resend: the window counts from the first send, or from when the operation was filed") {
    auto claimed = claim();
    claimed.first_attempt_at = claimed.unknown_since;
    claimed.key_since = kNow - 24h;
    CHECK(refusal(claimed, resending()) == "window_passed");
}

TEST_CASE("a resend is an attempt: its budget, expires_at, and the request that was sent") {
    auto claimed = claim();
    claimed.attempts = 8;
    CHECK(refusal(claimed, resending()) == "attempts_used_up");
    CHECK(decide_before_resend(claimed, resending(), kNow)->attention == AttentionReason::give_up);
    claimed.intent.max_attempts = 9;
    CHECK(refusal(claimed, resending()).empty());
    claimed = claim();
    claimed.intent.max_attempts = 1;  // the planner's: send it at most once
    CHECK(refusal(claimed, resending()) == "attempts_used_up");
    claimed = claim();
    claimed.intent.expires_at = kNow;
    CHECK(refusal(claimed, resending()) == "expired");
    claimed.intent.expires_at = kNow + 1s;
    CHECK(refusal(claimed, resending()).empty());
    claimed = claim();
    claimed.request_hash = 8;
    CHECK(refusal(claimed, resending()) == "request_changed");
    const auto changed = decide_before_resend(claimed, resending(), kNow);
    CHECK(changed->to == Status::unknown);
    CHECK_FALSE(changed->attention.has_value());  // until give_up_after
    claimed.request_hash = 0;                     // nothing was recorded: the present request
    CHECK(refusal(claimed, resending()).empty());
}

TEST_CASE("a resend's answer as a verdict") {
    CHECK(verdict_of(Succeeded{}) == "found");
    CHECK(verdict_of(Accepted{}) == "pending");
    CHECK(verdict_of(later(false)) == "pending");
    CHECK(verdict_of(later(true)) == "pending");
    CHECK(verdict_of(timed_out()) == "inconclusive");
    CHECK(verdict_of(Unknown{Cause::status, {"in_progress", ""}, true}) == "pending");  // 409, 425
    CHECK(verdict_of(Rejected{{"status_422", ""}}) == "inconclusive");
    CHECK(verdict_of(Rejected{{"status_422", ""}, true}) == "absent");
    CHECK(verdict_of(Attention{{"key_reused", ""}}) == "conflict");
}

TEST_CASE("a resend's end: what counts, and what is evidence") {
    const auto found = decide(Succeeded{.result = Json("T-1"), .note = ""});
    CHECK(found.to == Status::succeeded);
    CHECK(found.evidence == Transition::Evidence::effect);
    CHECK(found.attempts_delta == 0);
    CHECK(to_text(*found.events.at(0).detail.find("resend")) == "1");
    CHECK(decide(later(false)).attempts_delta == -1);  // not sent, 429, 401
    CHECK(decide(later(true)).attempts_delta == 0);
    CHECK(decide(Rejected{{"x", ""}, false, false}).attempts_delta == -1);
    CHECK(decide(later(false, 90s)).due_in == 90s);  // longer than the interval
    CHECK(decide(later(false, 1ms)).due_in >= 5ms);
    CHECK(decide(timed_out()).to == Status::unknown);
    // "No effect" is believed of the attempts before, whose time was up; this one's own is known.
    CHECK(decide(Rejected{{"gone", ""}, true}).to == Status::scheduled);
    auto early = claim();
    early.deadline_at = kNow;
    CHECK(decide(Rejected{{"gone", ""}, true}, early).to == Status::unknown);
}

TEST_CASE("the loops: a lost answer is found by sending the request again, one effect") {
    MemoryStore store;
    Script script;
    Provider provider;
    Daemon daemon(store);
    script.execute = [&](const ToolCall& call) {
        const auto answer = provider.take(call);
        return provider.requests == 1 ? timed_out() : answer;
    };
    store.insert("t", "a");
    daemon.add_tool(resending(), script);
    daemon.start();
    daemon.run_until_settled("a");
    const auto& row = store.row("a");
    CHECK(row.status == Status::succeeded);
    CHECK(to_text(row.result) == R"("T-1")");
    CHECK(row.attempts == 2);
    CHECK(row.event_kinds() == "unknown probe probe");
    CHECK(provider.effects.size() == 1);
    REQUIRE(script.calls.size() == 2);
    CHECK(script.calls[1].attempt == 2);
    CHECK(script.calls[1].provider_key == script.calls[0].provider_key);
    CHECK(script.probes.empty());
    CHECK(daemon.observer.counts["ended:succeeded"] == 1);
    CHECK(daemon.observer.counts["probed:found"] == 1);
}

TEST_CASE("the loops: past the window nothing is sent, and a person is asked") {
    MemoryStore store;
    Script script;
    Daemon daemon(store);
    auto policy = resending();
    policy.timeout = 50ms;
    policy.key.window = 400ms;
    policy.retry.max_attempts = 1000;
    script.execute = [](const auto&) { return timed_out(); };
    store.insert("t", "a");
    daemon.add_tool(policy, script);
    daemon.start();
    DbTime last;
    daemon.run_until([&] {
        if (!store.row("a").attention) last = store.now();
        return store.row("a").attention.has_value();
    });
    const auto& row = store.row("a");
    CHECK(row.attention == AttentionReason::manual);
    CHECK(row.error->code == "window_passed");
    CHECK(row.status == Status::unknown);
    CHECK_FALSE(row.due_at.has_value());
    CHECK(script.calls.size() >= 2);
    const auto sent = script.calls.size();
    CHECK(row.attempts == static_cast<int>(sent));
    // Also when a person asks for a probe: nothing that could be a second effect.
    store.ask("a");
    daemon.run_for(100ms);
    CHECK(script.calls.size() == sent);
    CHECK(row.attention == AttentionReason::manual);
}

TEST_CASE("the loops: not sent, 429 and 401 leave the count; the attempts end some day") {
    MemoryStore store;
    Script script;
    Daemon daemon(store);
    script.execute = [&](const auto&) -> Outcome {
        if (script.calls.size() == 1) return timed_out();
        if (script.calls.size() < 6) return later(false);
        return timed_out();
    };
    store.insert("t", "a", 3);
    daemon.add_tool(resending(), script);
    daemon.start();
    daemon.run_until([&] { return store.row("a").attention.has_value(); });
    CHECK(store.row("a").attention == AttentionReason::give_up);
    CHECK(store.row("a").attempts == 3);
    CHECK(script.calls.size() == 7);  // one, four that did not count, two
}

TEST_CASE("the loops: a resend takes a slot of its tool, and none while the lane is closed") {
    MemoryStore store;
    Script script;
    Daemon daemon(store);
    auto policy = resending();
    policy.concurrency = 1;
    script.execute_takes = 5ms;
    script.execute = [&](const ToolCall& call) -> Outcome {
        if (call.attempt == 1) return timed_out();
        return Succeeded{};
    };
    for (int i = 0; i < 5; ++i) store.insert("t", "a" + std::to_string(i));
    auto gate = std::make_shared<LaneGate>();
    daemon.tools.add({policy, std::make_unique<FakeTool>(script), gate, gate});
    daemon.start();
    daemon.run_until([&] { return script.calls.size() == 1; });
    gate->pause(200ms, BootClock::now());
    daemon.run_for(100ms);
    CHECK(script.calls.size() == 1);
    for (int i = 0; i < 5; ++i) daemon.run_until_settled("a" + std::to_string(i));
    // One attempt, and one resend, which did not have to wait for an idle moment.
    CHECK(script.most_running <= 2);
    CHECK(script.calls.size() == 10);
}

TEST_CASE("the loops: a resend that dies leaves an unknown, and the next daemon asks again") {
    MemoryStore store;
    Provider provider;
    Script dying;
    dying.execute = [&](const ToolCall& call) -> Outcome {
        provider.take(call);
        return timed_out();
    };
    auto policy = resending();
    policy.timeout = 100ms;
    {
        Daemon daemon(store);
        store.insert("t", "a");
        daemon.add_tool(policy, dying);
        daemon.start();
        daemon.run_until([&] { return store.row("a").status == Status::unknown; });
        dying.execute_takes = 1h;
        daemon.run_until([&] { return dying.calls.size() == 2; });
        daemon.crash();
    }
    CHECK(store.row("a").status == Status::unknown);
    CHECK(store.row("a").attempts == 2);
    Script script;
    script.execute = [&](const ToolCall& call) { return provider.take(call); };
    Daemon next(store, quick_settings("w2"));
    next.add_tool(policy, script);
    next.start();
    next.run_until_settled("a");
    CHECK(store.row("a").attempts == 3);
    CHECK(provider.effects.size() == 1);
}

TEST_CASE("the loops: what cannot be journaled is not sent") {
    MemoryStore store;
    Script script;
    Daemon daemon(store);
    script.execute = [&](const auto&) -> Outcome {
        if (script.calls.size() == 1) return timed_out();
        return Succeeded{};
    };
    auto policy = resending();
    policy.timeout = 50ms;
    // Written all the same, or not: the request does not go out, and the claim ends by itself.
    store.fail(MemoryStore::Method::resend, {.kind = StoreError::Kind::in_doubt, .written = true});
    store.fail(MemoryStore::Method::resend, {.kind = StoreError::Kind::unavailable});
    store.insert("t", "a");
    daemon.add_tool(policy, script);
    daemon.start();
    daemon.run_until_settled("a");
    CHECK(script.calls.size() == 2);
    CHECK(store.row("a").attempts == 3);  // the one that was journaled counts
}
