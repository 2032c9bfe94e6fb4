#include "outbox/clock_watch.hpp"

#include "outbox/decide.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/core/engine_fixture.hpp"

using namespace std::chrono_literals;
using outbox::BootClock;
using outbox::ClockSample;
using outbox::ClockWatch;
using outbox::DbTime;

namespace {

// A statement sent at this boot time, back after the round trip; the database's clock is ahead.
ClockSample sample(
    std::chrono::milliseconds boot,
    std::chrono::milliseconds ahead = 0ms,
    std::chrono::milliseconds round_trip = 2ms
) {
    const BootClock::time_point before(boot);
    const DbTime database(1'700'000'000'000ms + boot + ahead + round_trip / 2);
    return {.database = database, .before = before, .after = before + round_trip};
}

const BootClock::time_point kStart{};

}  // namespace

TEST_CASE("a steady clock is trusted, also over slow statements and a slew") {
    ClockWatch watch;
    auto ahead = 0ms;
    for (int i = 0; i < 10'000; ++i) {
        const auto round_trip = i % 100 == 0 ? 4000ms : 2ms;
        CHECK_FALSE(watch.observe(sample(i * 3000ms, ahead, round_trip)));
        if (i % 2 == 0) ahead += 3ms;  // 500 parts in a million
    }
    CHECK(watch.distrusted(kStart + 30'000s, 1h) == 0ns);
}

TEST_CASE("a step of more than a second is seen either way, a smaller one is not") {
    for (const auto step : {1100ms, -1100ms, 3'600'000ms, -3'600'000ms, 999ms, -999ms, 500ms}) {
        INFO(step.count());
        ClockWatch watch;
        REQUIRE_FALSE(watch.observe(sample(0ms)));
        REQUIRE_FALSE(watch.observe(sample(3000ms)));
        const auto seen = watch.observe(sample(6000ms, step));
        CHECK(seen.has_value() == (std::chrono::abs(step) > 1s));
        if (seen) CHECK(std::chrono::abs(*seen - step) < 20ms);
        // The new offset is the normal one from now on.
        CHECK_FALSE(watch.observe(sample(9000ms, step)));
    }
}

TEST_CASE("after a step absent is distrusted for as long as an attempt and its settling last") {
    ClockWatch watch;
    watch.observe(sample(0ms));
    CHECK(watch.distrusted(kStart + 10s, 30s) == 0ns);
    REQUIRE(watch.observe(sample(10'000ms, 5000ms)));
    CHECK(watch.distrusted(kStart + 5s, 30s) == 35s + 2ms);
    CHECK(watch.distrusted(kStart + 10s, 30s) == 30s + 2ms);
    CHECK(watch.distrusted(kStart + 41s, 30s) == 0ns);
    // A second step begins anew.
    REQUIRE(watch.observe(sample(50'000ms)));
    CHECK(watch.distrusted(kStart + 50s, 30s) == 30s + 2ms);
}

TEST_CASE("a step behind a slow statement is seen by the next quick one") {
    ClockWatch watch;
    watch.observe(sample(0ms));
    CHECK_FALSE(watch.observe(sample(1000ms, 2000ms, 8000ms)));
    CHECK(watch.observe(sample(10'000ms, 2000ms)));
}

// Whatever the round trips are: a step that is not reported is no longer than what unseen() says.
TEST_CASE("what a step may be without being noticed is known") {
    for (const auto before : {0ms, 40ms, 3000ms}) {
        for (const auto after : {0ms, 40ms, 3000ms}) {
            std::chrono::milliseconds longest = 0ms;
            for (auto step = 0ms; step <= 20'000ms; step += 50ms) {
                ClockWatch watch;
                REQUIRE_FALSE(watch.observe(sample(0ms, 0ms, before)));
                const auto seen = watch.observe(sample(10'000ms, step, after));
                if (!seen) longest = step;
                INFO(before.count() << " " << after.count() << " " << step.count());
                if (!seen) CHECK(step <= watch.unseen());
            }
            CHECK(longest >= 1000ms);
        }
    }
    // Steps that hide behind each other's slow statements end with the next quick one.
    ClockWatch watch;
    watch.observe(sample(0ms));
    REQUIRE_FALSE(watch.observe(sample(1'000ms, 3'000ms, 8'000ms)));
    CHECK(watch.unseen() >= 9s);
    CHECK(watch.observe(sample(20'000ms, 3'000ms)));
    CHECK(watch.unseen() < 1100ms);
}

TEST_CASE("absent while the clock is distrusted is asked again, and counts for nothing") {
    outbox::ToolPolicy policy;
    policy.request_hash = 7;
    policy.reconcile.settle = 1s;
    policy.reconcile.interval = 2s;
    outbox::ClaimedProbe claim;
    claim.request_hash = 7;
    claim.attempts = 1;
    claim.probe_started_at = DbTime(1'000'000s);
    claim.deadline_at = claim.first_attempt_at = claim.unknown_since =
        claim.probe_started_at - 48h;  // also long past give_up_after
    claim.absent_count = 1;
    claim.last_absent_at = claim.probe_started_at - 1h;
    const auto now = claim.probe_started_at + 100ms;

    claim.distrust = 1500ms;
    auto next = outbox::decide_probe(claim, outbox::Absent{}, policy, now, 0);
    CHECK(next.to == outbox::Status::unknown);
    CHECK(next.due_in == 1400ms);
    CHECK_FALSE(next.attention);
    REQUIRE(next.probe);
    CHECK(next.probe->absent_count == 0);
    CHECK(to_text(next.events.at(0).detail).find("clock_stepped") != std::string::npos);

    // Found is found, whatever the clock says.
    next = outbox::decide_probe(claim, outbox::Found{}, policy, now, 0);
    CHECK(next.to == outbox::Status::succeeded);

    claim.distrust = 0ms;
    next = outbox::decide_probe(claim, outbox::Absent{}, policy, now, 0);
    CHECK(next.to != outbox::Status::unknown);
}

TEST_CASE("the loops believe no absent for a while after the database's clock stepped") {
    test::MemoryStore store;
    test::FakeTool::Script script;
    test::Daemon daemon(store);
    std::vector<BootClock::time_point> called;
    script.execute = [&](const auto&) -> outbox::Outcome {
        called.push_back(BootClock::now());
        if (called.size() > 1) return outbox::Succeeded{};
        return outbox::Unknown{.cause = outbox::Cause::timeout, .error = {"timeout", ""}};
    };
    auto policy = test::quick_policy("t");
    policy.timeout = 30ms;
    auto slow = test::quick_policy("slow");
    slow.timeout = 2s;  // longer than what is allowed for a step that nobody could notice
    daemon.add_tool(policy, script);
    daemon.add_tool(slow, script);
    daemon.start();
    const auto now = BootClock::now();
    store.on_clock({.database = store.now(), .before = now, .after = now});
    store.on_clock({.database = store.now() + 5s, .before = now, .after = now});
    CHECK(daemon.log.says("clock stepped"));
    store.insert("t", "a");
    daemon.run_until([&] { return daemon.is_final("a"); }, 30s);
    CHECK(store.row("a").status == outbox::Status::succeeded);
    REQUIRE(called.size() == 2);
    // As long as the slowest tool's attempt may last; its own would have been over in 35 ms.
    CHECK(called[1] - now >= 2s);
}

// A second, and the round trips: that long a step hides, so the deadline may be that much later.
TEST_CASE("the loops believe no absent while an unnoticed step could explain it") {
    test::MemoryStore store;
    test::FakeTool::Script script;
    test::Daemon daemon(store);
    std::vector<BootClock::time_point> called;
    script.execute = [&](const auto&) -> outbox::Outcome {
        called.push_back(BootClock::now());
        if (called.size() > 1) return outbox::Succeeded{};
        return outbox::Unknown{.cause = outbox::Cause::timeout, .error = {"timeout", ""}};
    };
    auto policy = test::quick_policy("t");
    policy.timeout = 30ms;
    daemon.add_tool(policy, script);
    daemon.start();
    const auto now = BootClock::now();
    store.on_clock({.database = store.now(), .before = now - 200ms, .after = now});
    store.insert("t", "a");
    daemon.run_until_settled("a");
    CHECK(store.row("a").status == outbox::Status::succeeded);
    REQUIRE(called.size() == 2);
    CHECK(called[1] - now >= 1200ms + policy.timeout);
}
