// When a tool's lane is closed: the breaker and the pauses that the other side asks for, and that
// the leaser keeps to them without another lane noticing.
#include "outbox/lane_gate.hpp"

#include <string>
#include <vector>

#include "tests/support/catch.hpp"
#include "tests/unit/core/engine_fixture.hpp"

using namespace outbox;
using namespace test;

namespace {

const BootClock::time_point kStart{1h};

LaneGate::Settings settings() {
    return {.failures = 3, .open = 1s, .longest = 5s, .longest_pause = 1h};
}

// Fails so often at this time.
void fail(LaneGate& gate, int times, BootClock::time_point at) {
    for (int i = 0; i < times; ++i) gate.failed(at, 0);
}

}  // namespace

TEST_CASE("the breaker opens after failures in a row, and a success begins again") {
    LaneGate gate(settings());
    fail(gate, 2, kStart);
    gate.succeeded();
    fail(gate, 2, kStart);
    CHECK(gate.allowance(kStart) == LaneGate::kUnlimited);
    CHECK_FALSE(gate.breaker_open());
    gate.failed(kStart, 0);
    CHECK(gate.breaker_open());
    CHECK(gate.allowance(kStart) == 0);
    CHECK(gate.wait(kStart) == 1s);
    CHECK(gate.allowance(kStart + 999ms) == 0);
}

TEST_CASE("one trial, whose end closes the breaker or opens it for twice as long") {
    LaneGate gate(settings());
    fail(gate, 3, kStart);
    auto now = kStart + 1s;
    for (const auto length : {2s, 4s, 5s, 5s}) {
        CHECK(gate.allowance(now) == 1);
        CHECK(gate.wait(now) == 0s);
        gate.failed(now, 0);
        CHECK(gate.allowance(now) == 0);
        CHECK(gate.wait(now) == length);
        now += length;
    }
    gate.succeeded();
    CHECK(gate.allowance(now) == LaneGate::kUnlimited);
    // It begins short again.
    fail(gate, 3, now);
    CHECK(gate.wait(now) == 1s);
}

TEST_CASE("what was under way when the breaker opened does not lengthen it") {
    LaneGate gate(settings());
    fail(gate, 3, kStart);
    fail(gate, 50, kStart + 500ms);
    CHECK(gate.wait(kStart + 500ms) == 500ms);
    // A success among it means that the host is there after all.
    gate.succeeded();
    CHECK(gate.allowance(kStart + 500ms) == LaneGate::kUnlimited);
}

TEST_CASE("a pause is kept, the longest counts, and it has a bound") {
    LaneGate gate(settings());
    gate.pause(30s, kStart);
    gate.pause(5s, kStart);
    CHECK(gate.allowance(kStart + 29s) == 0);
    CHECK(gate.wait(kStart + 10s) == 20s);
    CHECK(gate.allowance(kStart + 30s) == LaneGate::kUnlimited);
    CHECK_FALSE(gate.breaker_open());
    gate.pause(std::chrono::hours{24 * 30}, kStart);
    CHECK(gate.wait(kStart) == 1h);
    // A success of what was under way does not undo what was asked for.
    gate.succeeded();
    CHECK(gate.allowance(kStart) == 0);
}

TEST_CASE("jitter makes the breaker's time longer, never shorter") {
    LaneGate gate(settings());
    for (int i = 0; i < 3; ++i) gate.failed(kStart, 0.8);
    CHECK(gate.wait(kStart) == 1200ms);
}

TEST_CASE("opening and closing is told once each, and no breaker stays open behind its gate") {
    std::vector<std::string> told;
    {
        LaneGate gate(settings());
        gate.on_breaker = [&](bool open) { told.emplace_back(open ? "open" : "closed"); };
        gate.succeeded();
        fail(gate, 3, kStart);
        fail(gate, 3, kStart + 1s);
        gate.succeeded();
        gate.succeeded();
        fail(gate, 3, kStart);
    }
    CHECK(told == std::vector<std::string>{"open", "closed", "open", "closed"});
}

TEST_CASE("a closed gate: its rows stay pending and uncounted, the other lane goes on") {
    MemoryStore store;
    Daemon daemon(store);
    FakeTool::Script closed, open;
    auto gate = std::make_shared<LaneGate>();
    daemon.tools.add({quick_policy("closed"), std::make_unique<FakeTool>(closed), gate});
    daemon.add_tool(quick_policy("open"), open);
    for (int i = 0; i < 20; ++i) {
        store.insert("closed", "c" + std::to_string(i));
        store.insert("open", "o" + std::to_string(i));
    }
    gate->pause(1h, BootClock::now());
    daemon.start();
    daemon.run_until([&] { return daemon.is_final("o19"); }, 30s);
    CHECK(closed.calls.empty());
    for (int i = 0; i < 20; ++i) {
        const auto& row = store.row("c" + std::to_string(i));
        CHECK(row.status == Status::pending);
        CHECK(row.attempts == 0);
    }
    daemon.stop();
}

TEST_CASE("a half-open breaker lets one attempt through at a time, and all when it was well") {
    MemoryStore store;
    Daemon daemon(store);
    FakeTool::Script script;
    script.execute_takes = 30ms;
    auto gate = std::make_shared<LaneGate>(LaneGate::Settings{.failures = 1, .open = 1ms});
    gate->failed(BootClock::now(), 0);
    int before_the_first_end = 0;
    script.execute = [&](const auto&) -> Outcome {
        if (gate->breaker_open()) before_the_first_end = static_cast<int>(script.calls.size());
        gate->succeeded();
        return Succeeded{};
    };
    daemon.tools.add({quick_policy("t"), std::make_unique<FakeTool>(script), gate});
    for (int i = 0; i < 10; ++i) store.insert("t", "a" + std::to_string(i));
    daemon.start();
    for (int i = 0; i < 10; ++i) {
        daemon.run_until([&] { return daemon.is_final("a" + std::to_string(i)); }, 30s);
    }
    CHECK(before_the_first_end == 1);
    CHECK(script.most_running > 1);
    daemon.stop();
}

TEST_CASE("the reconciler claims nothing while its gate is closed, and goes on when it opens") {
    MemoryStore store;
    FakeTool::Script script;
    Daemon daemon(store);
    script.execute = [](const auto&) -> Outcome {
        return Unknown{.cause = Cause::timeout, .error = {"timeout", "no answer"}};
    };
    script.probe = [](const auto&) { return Found{}; };
    auto gate = std::make_shared<LaneGate>();
    gate->pause(300ms, BootClock::now());
    daemon.tools.add({quick_policy("t"), std::make_unique<FakeTool>(script), nullptr, gate});
    store.insert("t", "a");
    daemon.start();
    daemon.run_until([&] { return store.row("a").status == Status::unknown; });
    daemon.run_for(100ms);
    CHECK(script.probes.empty());
    CHECK(store.row("a").due_at.has_value());  // it stays due
    daemon.run_until_settled("a");
    CHECK(script.probes.size() == 1);
}

TEST_CASE("a host that is down is asked by one probe at a time, at the breaker's pace") {
    MemoryStore store;
    FakeTool::Script script;
    Daemon daemon(store);
    auto gate = std::make_shared<LaneGate>(
        LaneGate::Settings{.failures = 3, .open = 100ms, .longest = 200ms, .longest_pause = 1h}
    );
    bool down = true;
    script.execute = [](const auto&) -> Outcome {
        return Unknown{.cause = Cause::timeout, .error = {"timeout", "no answer"}};
    };
    script.probe = [&](const auto&) -> Verdict {
        if (down) {
            gate->failed(BootClock::now(), 0);
            return Inconclusive{{"not_sent_connect", "refused"}};
        }
        gate->succeeded();
        return Found{};
    };
    daemon.tools.add({quick_policy("t"), std::make_unique<FakeTool>(script), nullptr, gate});
    for (int i = 0; i < 20; ++i) store.insert("t", "a" + std::to_string(i));
    daemon.start();
    daemon.run_for(1500ms);
    // At most one claim's worth (16) before it opened, then one per opening: without the breaker
    // twenty operations at an interval of 5 to 20 ms would have asked some thousand times.
    CHECK(script.probes.size() <= 16 + 8 + 2);
    CHECK(script.probes.size() >= 4);
    down = false;
    for (int i = 0; i < 20; ++i) daemon.run_until_settled("a" + std::to_string(i));
}
