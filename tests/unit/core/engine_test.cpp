#include "tests/unit/core/engine_fixture.hpp"

#include <map>
#include <set>
#include <string>
#include <vector>

#include "outbox/provider_key.hpp"

using namespace outbox;
using namespace test;
using Script = FakeTool::Script;

namespace {

RetryLater not_sent() {
    RetryLater later;
    later.error = {"not_sent_connect", "refused"};
    later.counts = false;
    return later;
}

Outcome timed_out() {
    return Unknown{.cause = Cause::timeout, .error = {"timeout", "no answer"}};
}

// One daemon, one write tool `t`.
struct World {
    explicit World(EngineSettings settings = quick_settings())
        : daemon(store, std::move(settings)) {}
    MemoryStore store;
    Script script;
    Daemon daemon;
    void start(ToolPolicy policy = quick_policy("t")) {
        daemon.add_tool(std::move(policy), script);
        daemon.start();
    }
};

}  // namespace

TEST_CASE("the clean path: leased, called once with its key, recorded, no event") {
    World world;
    world.script.execute = [](const auto&) { return Succeeded{.result = Json(7), .note = ""}; };
    const auto id = world.store.insert("t", "a");
    world.start();
    world.daemon.run_until_settled("a");
    const auto& row = world.store.row("a");
    CHECK(row.status == Status::succeeded);
    CHECK(to_text(row.result) == "7");
    CHECK(row.events.empty());
    CHECK(row.epoch == 2);
    REQUIRE(world.script.calls.size() == 1);
    CHECK(world.script.calls[0].provider_key == provider_key("default", id, KeySettings{}));
    CHECK(world.script.calls[0].attempt == 1);
    CHECK(world.daemon.observer.counts["ended:succeeded"] == 1);
    world.daemon.stop();
    CHECK(world.daemon.engine->idle());
    CHECK(world.store.retired.contains("w1"));
}

TEST_CASE("a lost answer is probed, and found is one effect") {
    World world;
    world.script.execute = [](const auto&) { return timed_out(); };
    world.script.probe = [](const auto&) { return Found{.result = Json("T-1"), .note = ""}; };
    world.store.insert("t", "a");
    world.start();
    world.daemon.run_until_settled("a");
    CHECK(world.store.row("a").status == Status::succeeded);
    CHECK(world.store.row("a").event_kinds() == "unknown probe");
    CHECK(world.script.calls.size() == 1);
    CHECK(world.script.probes.size() == 1);
    CHECK(world.script.probes[0].provider_key == world.script.calls[0].provider_key);
    CHECK(world.daemon.observer.counts["unknown:timeout"] == 1);
    CHECK(world.daemon.observer.counts["probed:found"] == 1);
}

TEST_CASE("a request that never arrived is sent again, after deadline and settle, with its key") {
    World world;
    int calls = 0;
    DbTime second;
    auto policy = quick_policy("t");
    policy.timeout = 300ms;
    world.script.execute = [&](const auto&) -> Outcome {
        second = world.store.now();
        return ++calls == 1 ? timed_out() : Succeeded{};
    };
    world.store.insert("t", "a");
    world.start(policy);
    world.daemon.run_until_settled("a");
    CHECK(world.store.row("a").status == Status::succeeded);
    REQUIRE(world.script.calls.size() == 2);
    CHECK(world.script.calls[0].provider_key == world.script.calls[1].provider_key);
    // The deadline, which counts from the lease, not from the call; settle comes on top.
    CHECK(second - *world.store.row("a").started_at >= 300ms);
    CHECK(world.script.probes.size() >= 2);
}

TEST_CASE("a probe that throws is never absent") {
    World world;
    auto policy = quick_policy("t");
    policy.timeout = 20ms;
    policy.reconcile.give_up_after = 100ms;
    world.script.execute = [](const auto&) { return timed_out(); };
    world.script.probe = [](const auto&) -> Verdict { throw std::runtime_error("look-up broke"); };
    world.store.insert("t", "a");
    world.start(policy);
    world.daemon.run_until([&] { return world.store.row("a").attention.has_value(); });
    CHECK(world.store.row("a").status == Status::unknown);
    CHECK(world.store.row("a").attention == AttentionReason::give_up);
    CHECK_FALSE(world.store.row("a").due_at.has_value());
    CHECK(world.script.calls.size() == 1);
}

TEST_CASE("a tool that throws may have had an effect") {
    World world;
    world.script.execute = [](const auto&) -> Outcome { throw std::runtime_error("bug"); };
    world.script.probe = [](const auto&) { return Found{}; };
    world.store.insert("t", "a");
    world.start();
    world.daemon.run_until_settled("a");
    CHECK(world.store.row("a").event_kinds() == "unknown probe");
    CHECK(world.daemon.observer.counts["unknown:other"] == 1);
}

TEST_CASE("what was not sent is tried again without a probe") {
    World world;
    world.script.execute = [&](const auto&) -> Outcome {
        if (world.script.calls.size() < 4) return not_sent();
        return Succeeded{};
    };
    world.store.insert("t", "a", 1);
    world.start();
    world.daemon.run_until_settled("a");
    CHECK(world.store.row("a").status == Status::succeeded);
    CHECK(world.store.row("a").attempts == 1);
    CHECK(world.script.probes.empty());
}

TEST_CASE("an unknown of a manual tool waits for a person, also after a lease that expired") {
    World world;
    auto policy = quick_policy("t");
    policy.reconcile.manual = true;
    world.store.insert("t", "a");
    auto& row = world.store.row("a");
    row.status = Status::unknown;
    row.due_at = world.store.now();
    world.start(policy);
    world.daemon.run_until([&] { return row.attention.has_value(); });
    CHECK(row.attention == AttentionReason::manual);
    CHECK_FALSE(row.due_at.has_value());
    CHECK(world.script.probes.empty());
}

TEST_CASE("the key of the first attempt is kept when the tool's settings changed") {
    World world;
    auto old = quick_policy("t");
    old.request_hash = 6;
    old.key.encoding = KeySettings::Encoding::uuid;
    run_coroutine(*world.daemon.io, world.store.publish_tools(WorkerId("w0"), {old}), 1s);
    const auto id = world.store.insert("t", "a");
    world.store.row("a").request_hash = 6;
    world.start();
    world.daemon.run_until_settled("a");
    REQUIRE(world.script.calls.size() == 1);
    CHECK(world.script.calls[0].provider_key == provider_key("default", id, old.key));
}

TEST_CASE("concurrency of a tool and of the worker are never exceeded") {
    auto settings = quick_settings();
    settings.concurrency = 5;
    World world(settings);
    Script other;
    world.script.execute_takes = 2ms;
    other.execute_takes = 2ms;
    auto policy = quick_policy("t");
    policy.concurrency = 2;
    world.daemon.add_tool(quick_policy("u"), other);
    for (int i = 0; i < 20; ++i) {
        world.store.insert("t", "t" + std::to_string(i));
        world.store.insert("u", "u" + std::to_string(i));
    }
    int most = 0;
    const auto running = [&](const ToolCall&) {
        most = std::max(most, world.script.running + other.running + 1);  // and this one
        return Succeeded{};
    };
    world.script.execute = running;
    other.execute = running;
    world.start(policy);
    world.daemon.run_until([&] {
        return world.script.calls.size() == 20 && other.calls.size() == 20;
    });
    world.daemon.stop();
    CHECK(world.script.most_running == 2);
    CHECK(other.most_running >= 3);
    CHECK(most == 5);
    for (const auto& [seq, row] : world.store.rows()) CHECK(row.status == Status::succeeded);
}

TEST_CASE("the next lease does not wait for the last one's record, but what waits is bounded") {
    auto settings = quick_settings();
    settings.concurrency = 2;
    World world(settings);
    for (int i = 0; i < 60; ++i) world.store.insert("t", std::to_string(i));
    bool recording = false;
    world.store.on_call = [&](MemoryStore::Method method) -> std::optional<MemoryStore::Fault> {
        if (method == MemoryStore::Method::complete && !recording) {
            return MemoryStore::Fault{.kind = StoreError::Kind::unavailable};
        }
        return {};
    };
    world.start();
    world.daemon.run_until([&] { return world.daemon.engine->attempts_in_flight() == 10; }, 30s);
    world.daemon.run_for(100ms);
    CHECK(world.daemon.engine->attempts_in_flight() == 10);  // two calls, and four times as many
    CHECK(world.script.calls.size() == 10);
    recording = true;
    world.daemon.run_until([&] { return world.script.calls.size() == 60; }, 30s);
    world.daemon.stop();
    for (const auto& [seq, row] : world.store.rows()) CHECK(row.status == Status::succeeded);
}

TEST_CASE("a slow tool is leased again as soon as one of its slots is free") {
    auto settings = quick_settings();
    settings.poll_idle = 60s;
    World world(settings);
    world.script.execute_takes = 120ms;  // longer than the leaser stays busy
    auto policy = quick_policy("t");
    policy.concurrency = 1;
    for (int i = 0; i < 4; ++i) world.store.insert("t", std::to_string(i));
    world.start(policy);
    world.daemon.run_until([&] { return world.script.calls.size() == 4; }, 10s);
}

TEST_CASE("the rate of a tool is kept") {
    World world;
    auto policy = quick_policy("t");
    policy.rate_per_second = 40;  // a burst of ten, then one every 25 ms
    for (int i = 0; i < 30; ++i) world.store.insert("t", std::to_string(i));
    world.start(policy);
    const auto start = BootClock::now();
    world.daemon.run_for(200ms);
    const std::chrono::duration<double> took = BootClock::now() - start;
    CHECK(static_cast<double>(world.script.calls.size()) <= 10 + 40 * took.count() + 1);
    world.daemon.run_until([&] { return world.script.calls.size() == 30; });
    const std::chrono::duration<double> all = BootClock::now() - start;
    CHECK(all.count() >= 20.0 / 40 - 0.05);
}

TEST_CASE("smaller priorities first, and a late one is found behind the mark") {
    auto settings = quick_settings();
    settings.concurrency = 1;
    World world(settings);
    world.store.insert("t", "low", {}, 5);
    world.store.insert("t", "high", {}, -5);
    world.store.insert("t", "middle", {}, 0);
    world.start();
    world.daemon.run_until_settled("low");
    REQUIRE(world.script.calls.size() == 3);
    CHECK(world.script.calls[0].intent.id.value == "high");
    CHECK(world.script.calls[1].intent.id.value == "middle");
    CHECK(world.script.calls[2].intent.id.value == "low");
    world.store.insert("t", "urgent", {}, -100);
    world.daemon.run_until_settled("urgent");
}

TEST_CASE("a row that appears a moment behind the mark does not wait for the sweep") {
    auto settings = quick_settings();
    settings.sweep = std::chrono::hours(1);
    World world(settings);
    world.store.insert("t", "late");
    world.store.insert("t", "first");
    auto& late = world.store.row("late");
    late.status = Status::unknown;  // not to be seen, as long as its planner has not committed
    late.due_at = world.store.now() + std::chrono::hours(1);
    world.script.execute = [&](const ToolCall& call) {
        if (call.intent.id.value == "first") late.status = Status::pending;
        return Succeeded{};
    };
    world.start();
    world.daemon.run_until_settled("late");
    REQUIRE(world.script.calls.size() == 2);
    CHECK(world.script.calls[0].intent.id.value == "first");
}

TEST_CASE("with more rows than slots, what lies behind a full lease is not skipped") {
    auto settings = quick_settings();
    settings.concurrency = 2;
    settings.sweep = std::chrono::hours(1);
    World world(settings);
    for (int i = 0; i < 6; ++i) world.store.insert("t", "early-" + std::to_string(i));
    world.store.insert("t", "mark");
    // The mark is behind all of them; then they appear, and a wake-up looks from the start.
    for (int i = 0; i < 6; ++i) {
        auto& row = world.store.row("early-" + std::to_string(i));
        row.status = Status::unknown;
        row.due_at = world.store.now() + std::chrono::hours(1);
    }
    world.start();
    world.daemon.run_until_settled("mark");
    world.daemon.run_for(100ms);
    for (int i = 0; i < 6; ++i) {
        world.store.row("early-" + std::to_string(i)).status = Status::pending;
    }
    world.daemon.engine->wake();
    for (int i = 0; i < 6; ++i) world.daemon.run_until_settled("early-" + std::to_string(i));
}

TEST_CASE("a paused tool gets no new attempts; its probes go on") {
    World world;
    world.store.insert("t", "a");
    world.store.insert("t", "b");
    auto& row = world.store.row("b");
    row.status = Status::unknown;
    row.due_at = world.store.now();
    world.script.probe = [](const auto&) { return Found{}; };
    world.store.pause("t");
    world.start();
    world.daemon.run_until_settled("b");
    world.daemon.run_for(50ms);
    CHECK(world.script.calls.empty());
}

TEST_CASE("a lease whose answer was lost goes back before the next one") {
    World world;
    world.store.insert("t", "a");
    world.store.fail(MemoryStore::Method::lease, {StoreError::Kind::in_doubt, true});
    world.start();
    world.daemon.run_until_settled("a");
    const auto& row = world.store.row("a");
    CHECK(row.status == Status::succeeded);
    CHECK(row.attempts == 1);
    CHECK(row.event_kinds() == "released");
    CHECK(world.script.calls.size() == 1);
}

TEST_CASE("what is in flight is not given back with a lost lease") {
    World world;
    world.script.execute_takes = 150ms;
    world.store.insert("t", "a");
    world.start();
    world.daemon.run_until([&] { return world.script.running == 1; });
    world.store.fail(MemoryStore::Method::lease, {StoreError::Kind::unavailable, false});
    world.daemon.run_until([&] { return world.store.calls[MemoryStore::Method::release] > 0; });
    world.daemon.run_until_settled("a");
    CHECK(world.store.row("a").event_kinds().empty());
    CHECK(world.script.calls.size() == 1);
}

TEST_CASE("a database that goes away loses no outcome") {
    World world;
    world.script.execute_takes = 30ms;
    world.store.insert("t", "a");
    world.start();
    world.daemon.run_until([&] { return world.script.running == 1; });
    world.store.set_down(true);
    world.daemon.run_for(150ms);
    CHECK(world.store.row("a").status == Status::attempting);
    CHECK_FALSE(world.daemon.engine->health().database);
    world.store.set_down(false);
    world.daemon.run_until_settled("a");
    CHECK(world.store.row("a").status == Status::succeeded);
    CHECK(world.script.calls.size() == 1);
    world.daemon.run_until([&] { return world.daemon.engine->health().database; });
}

TEST_CASE("an attempt of a worker declared dead becomes evidence, not a write") {
    World world;
    world.script.execute_takes = 60ms;
    world.script.execute = [](const auto&) {
        return Succeeded{.result = Json("late"), .note = ""};
    };
    world.store.insert("t", "a");
    world.start();
    world.daemon.run_until([&] { return world.script.running == 1; });
    auto& row = world.store.row("a");
    row.status = Status::unknown;  // as another daemon would have declared it
    row.unknown_since = world.store.now();
    row.due_at = world.store.now() + 1h;
    ++row.epoch;
    world.daemon.run_until_settled("a");
    CHECK(row.status == Status::succeeded);
    CHECK(to_text(row.result) == "\"late\"");
    CHECK(world.daemon.observer.counts["fenced"] == 1);
    CHECK(world.daemon.observer.counts["late_result"] == 1);
    CHECK(world.daemon.log.says("a late answer settled an operation"));
}

TEST_CASE("a probe that comes too late is dropped") {
    World world;
    world.script.probe_takes = 60ms;
    world.script.probe = [](const auto&) { return Found{}; };
    world.store.insert("t", "a");
    auto& row = world.store.row("a");
    row.status = Status::unknown;
    row.due_at = world.store.now();
    world.start();
    world.daemon.run_until([&] { return world.script.probes.size() == 1; });
    ++row.epoch;
    row.due_at = world.store.now() + 1h;
    world.daemon.run_until([&] { return world.daemon.observer.counts["fenced"] == 1; });
    CHECK(row.status == Status::unknown);
    CHECK(world.daemon.log.says("a probe came too late"));
    CHECK(world.daemon.observer.counts["late_result"] == 0);
}

TEST_CASE("drain: running attempts end and are recorded, the rest stays pending") {
    auto settings = quick_settings();
    settings.concurrency = 2;
    World world(settings);
    world.script.execute_takes = 60ms;
    for (int i = 0; i < 10; ++i) world.store.insert("t", std::to_string(i));
    world.start();
    world.daemon.run_until([&] { return world.script.running == 2; });
    world.daemon.stop();
    int succeeded = 0;
    int pending = 0;
    for (const auto& [seq, row] : world.store.rows()) {
        succeeded += row.status == Status::succeeded ? 1 : 0;
        pending += row.status == Status::pending ? 1 : 0;
        if (row.status == Status::pending) CHECK(row.attempts == 0);
    }
    CHECK(succeeded == 2);
    CHECK(pending == 8);
    CHECK(world.daemon.engine->idle());
    CHECK_FALSE(world.daemon.engine->failed());
}

TEST_CASE("what the drain time-out cuts is unknown, unless the tool itself answers") {
    auto settings = quick_settings();
    settings.drain_timeout = 20ms;
    for (const bool answers : {false, true}) {
        World world(settings);
        auto policy = quick_policy("t");
        policy.timeout = 10s;
        policy.retry.initial = policy.retry.max = 1h;  // not due before it is looked at
        world.script.execute_takes = 10s;
        if (answers) world.script.when_cut = []() -> Outcome { return not_sent(); };
        world.store.insert("t", "a");
        world.start(policy);
        world.daemon.run_until([&] { return world.script.running == 1; });
        world.daemon.stop();
        const auto& row = world.store.row("a");
        CHECK(row.status == (answers ? Status::scheduled : Status::unknown));
        CHECK(row.attempts == (answers ? 0 : 1));
        CHECK(world.daemon.log.says("cutting attempts"));
        CHECK(world.daemon.engine->idle());
    }
}

TEST_CASE("a second stop does not wait for running attempts") {
    World world;
    auto policy = quick_policy("t");
    policy.timeout = 60s;
    world.script.execute_takes = 60s;
    auto settings = quick_settings();
    world.store.insert("t", "a");
    world.start(policy);
    world.daemon.run_until([&] { return world.script.running == 1; });
    world.daemon.engine->stop();
    world.daemon.run_for(50ms);
    CHECK_FALSE(world.daemon.ended);
    const auto start = BootClock::now();
    world.daemon.stop();
    CHECK(BootClock::now() - start < 30s);
    CHECK(world.store.row("a").status == Status::unknown);
}

TEST_CASE("superseded: attempts end in their own time, and only a stop cuts them") {
    auto settings = quick_settings();
    settings.drain_timeout = 20ms;
    settings.concurrency = 2;
    for (const bool stopped : {false, true}) {
        World world(settings);
        auto policy = quick_policy("t");
        policy.timeout = 60s;
        world.script.execute_takes = stopped ? 60s : 400ms;
        for (int i = 0; i < 5; ++i) world.store.insert("t", std::to_string(i));
        world.start(policy);
        world.daemon.run_until([&] { return world.script.running == 2; });
        world.daemon.engine->supersede();
        world.daemon.engine->supersede();
        world.daemon.run_for(100ms);
        CHECK_FALSE(world.daemon.ended);
        CHECK(world.script.running == 2);
        CHECK(world.daemon.engine->health().stopping);
        // What comes after it is a first stop: it waits for drain_timeout, and for what that cuts.
        if (stopped) world.daemon.engine->stop();
        world.daemon.run_until([&] { return world.daemon.ended; });
        std::map<Status, int> ends;
        for (const auto& [seq, row] : world.store.rows()) ++ends[row.status];
        CHECK(ends[Status::pending] == 3);
        CHECK(ends[stopped ? Status::unknown : Status::succeeded] == 2);
        CHECK(world.daemon.log.says("cutting attempts") == stopped);
        CHECK(world.daemon.engine->idle());
    }
}

TEST_CASE("superseded: a resend is an attempt, and ends in its own time") {
    auto settings = quick_settings();
    settings.drain_timeout = 20ms;
    for (const bool stopped : {false, true}) {
        World world(settings);
        auto policy = quick_policy("t");
        policy.timeout = 60s;
        policy.reconcile.resend = true;
        world.script.execute = [&world, stopped](const ToolCall& call) -> Outcome {
            if (call.attempt > 1) return Succeeded{};
            world.script.execute_takes = stopped ? 60s : 400ms;
            return Unknown{};
        };
        world.store.insert("t", "a");
        world.start(policy);
        world.daemon.run_until([&] { return world.store.row("a").attempts == 2; });
        world.daemon.run_until([&] { return world.script.running == 1; });
        world.daemon.engine->supersede();
        world.daemon.run_for(100ms);
        CHECK_FALSE(world.daemon.ended);
        CHECK(world.script.running == 1);
        if (stopped) world.daemon.engine->stop();
        world.daemon.run_until([&] { return world.daemon.ended; });
        CHECK(world.store.row("a").status == (stopped ? Status::unknown : Status::succeeded));
        CHECK(world.daemon.engine->idle());
    }
}

TEST_CASE("once key.window has passed, an earlier attempt is looked for right before the next one"
) {
    for (const bool acted : {false, true}) {
        World world;
        auto policy = quick_policy("t");
        policy.timeout = 50ms;
        policy.key.window = 1ms;
        world.script.execute = [](const ToolCall& call) -> Outcome {
            return call.attempt == 1 ? Outcome(Unknown{}) : Succeeded{};
        };
        // What happened behind the believed absent shows only by then.
        bool seen = false;
        world.script.probe = [&world, &seen, acted](const ToolCall&) -> Verdict {
            const auto& row = world.store.row("a");
            seen = seen || row.attempts == 2;  // the next attempt is leased
            return acted && seen ? Verdict(Found{}) : Absent{};
        };
        world.store.insert("t", "a");
        world.start(policy);
        world.daemon.run_until_settled("a");
        CHECK(world.store.row("a").status == Status::succeeded);
        CHECK(world.script.calls.size() == (acted ? 1 : 2));
        CHECK(world.script.probes.size() >= 2);
    }
}

TEST_CASE("a stop while the database is away ends in time, and the lease tells the rest") {
    auto settings = quick_settings();
    settings.drain_timeout = 50ms;
    World world(settings);
    auto policy = quick_policy("t");
    policy.timeout = 500ms;
    world.script.execute_takes = 20ms;
    world.store.insert("t", "a");
    world.start(policy);
    world.daemon.run_until([&] { return world.script.running == 1; });
    world.store.set_down(true);
    world.daemon.stop();
    CHECK(world.store.row("a").status == Status::attempting);
    CHECK(world.daemon.log.says("could not be recorded before the end"));
    world.store.set_down(false);

    Daemon next(world.store, quick_settings("w2"));
    Script script;
    script.probe = [](const auto&) { return Found{}; };
    next.add_tool(quick_policy("t"), script);
    next.start();
    next.run_until_settled("a");
    CHECK(world.store.row("a").status == Status::succeeded);
    CHECK(script.calls.empty());
}

TEST_CASE("stop before start, and twice, does no harm") {
    World world;
    world.daemon.add_tool(quick_policy("t"), world.script);
    world.daemon.start();
    world.daemon.engine->stop();
    world.daemon.engine->stop();
    world.daemon.run_until([&] { return world.daemon.ended; });
    CHECK(world.daemon.engine->idle());
}

TEST_CASE("it starts when the database does") {
    World world;
    world.store.set_down(true);
    world.store.insert("t", "a");
    world.start();
    world.daemon.run_for(60ms);
    CHECK_FALSE(world.daemon.engine->health().started);
    world.store.set_down(false);
    world.daemon.run_until_settled("a");
    CHECK(world.daemon.engine->health().started);
}

TEST_CASE("an abandoned lease of a read is tried again, of a write it is asked about") {
    World world;
    Script reads;
    auto read = quick_policy("r");
    read.effect = Effect::read;
    world.daemon.add_tool(read, reads);
    world.script.probe = [](const auto&) { return Found{}; };
    for (const char* tool : {"t", "r"}) {
        world.store.insert(tool, tool);
        auto& row = world.store.row(tool);
        row.status = Status::attempting;
        row.attempts = 1;
        row.leased_by = WorkerId("dead");
        row.request_hash = 7;
        row.due_at = world.store.now() + 20ms;
        row.deadline_at = world.store.now();
    }
    world.start();
    world.daemon.run_until_settled("t");
    world.daemon.run_until_settled("r");
    CHECK(world.script.calls.empty());
    CHECK(world.store.row("t").event_kinds() == "lease_expired probe");
    CHECK(reads.calls.size() == 1);
}

// Its answer kills the daemon, say. Nobody is there to count these attempts but the next daemon.
TEST_CASE("a read whose daemon dies with every attempt ends, within its attempts") {
    MemoryStore store;
    int begun = 0;
    std::string id = "r";
    store.insert("r", id, 3);
    for (int i = 0; i < 20 && !store.row(id).is_final(); ++i) {
        Script script;
        script.execute_takes = 1h;
        Daemon daemon(store, quick_settings("w" + std::to_string(i)));
        auto read = quick_policy("r");
        read.effect = Effect::read;
        read.timeout = 50ms;
        daemon.add_tool(read, script);
        daemon.start();
        daemon.run_until([&] { return !script.calls.empty() || store.row(id).is_final(); });
        begun += static_cast<int>(script.calls.size());
        daemon.crash();
    }
    CHECK(begun == 3);
    CHECK(store.row(id).status == Status::failed);
    CHECK(store.row(id).error->code == "attempts_used_up");
    CHECK(store.row(id).attempts == 3);
}

TEST_CASE("an unknown of a tool that turns out to be a read is not left alone") {
    World world;
    Script reads;
    auto read = quick_policy("r");
    read.effect = Effect::read;
    world.daemon.add_tool(read, reads);
    world.store.insert("r", "r");
    auto& row = world.store.row("r");  // as settle_timeline leaves it, where nobody published r
    row.status = Status::unknown;
    row.ambiguous = true;
    row.due_at = row.deadline_at = row.unknown_since.emplace(world.store.now());
    world.start();
    world.daemon.run_until_settled("r");
    CHECK(row.status == Status::succeeded);
    CHECK(reads.probes.empty());
    CHECK(reads.calls.size() == 1);
}

TEST_CASE("scheduled work starts when it is due") {
    World world;
    world.store.insert("t", "a", {}, 0, 50ms);
    world.start();
    world.daemon.run_for(20ms);
    CHECK(world.script.calls.empty());
    world.daemon.run_until_settled("a");
}

TEST_CASE("failpoints that throw: unsent before the call, unknown after it") {
    for (const bool after : {false, true}) {
        World world;
        REQUIRE(world.daemon.failpoints
                    .arm(
                        after ? "after_effect_before_complete=throw*1"
                              : "after_lease_before_dispatch=throw*1"
                    )
                    .empty());
        world.script.probe = [](const auto&) { return Found{}; };
        world.store.insert("t", "a");
        world.start();
        world.daemon.run_until_settled("a");
        CHECK(world.script.calls.size() == 1);
        CHECK(world.store.row("a").event_kinds() == (after ? "unknown probe" : "retry"));
    }
}

TEST_CASE("an acknowledgement that is lost after the record is not a second record") {
    World world;
    REQUIRE(world.daemon.failpoints.arm("after_complete_before_ack=throw*2").empty());
    world.store.insert("t", "a");
    world.start();
    world.daemon.run_until([&] { return world.store.batches.size() == 3; });
    world.daemon.stop();
    CHECK(world.store.row("a").status == Status::succeeded);
    CHECK(world.store.row("a").epoch == 2);
    CHECK(world.daemon.observer.counts["fenced"] == 0);
}
