// What outboxes of one process share: who may take how much, and what it comes to when two engines
// with databases of their own run the same tool.
#include "outbox/shared_limit.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "outbox/bell.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/core/engine_fixture.hpp"

using namespace outbox;
using namespace test;

namespace {

// Ahead of the clock that slots are given back by.
const BootClock::time_point kStart = BootClock::now() + 1h;

struct Member {
    explicit Member(SharedLimit& limit) : share(limit, [] {}, [this] { ++turns; }) {}
    // A lease of so many that finds so many.
    void lease(int asked, int found, BootClock::time_point at = kStart) {
        share.reserve(asked, at);
        for (int i = 0; i < found; ++i) {
            CHECK(share.claim(at));
            slots.push_back(share.take());
        }
        share.settle(at);
    }
    int turns = 0;
    SharedLimit::Share share;
    std::vector<SharedLimit::Slot> slots;
};

}  // namespace

TEST_CASE("an outbox alone may take everything, whatever became of its lease") {
    SharedLimit limit({.slots = 4, .rate = 8.0}, kStart);
    Member one(limit);
    CHECK(one.share.free(kStart) == 4);
    CHECK(one.share.available(kStart) == 2);
    CHECK(one.share.token_wait() == 0ns);
    one.share.reserve(2, kStart);
    CHECK(one.share.taken(kStart) == 2);
    CHECK(one.share.available(kStart) == 0);
    CHECK(one.share.token_wait() > 0ns);
    CHECK(one.share.claim(kStart + 1h));
    auto slot = one.share.take();
    one.share.settle(kStart + 1h);
    CHECK(one.share.used() == 1);
    CHECK(one.share.free(kStart) == 3);
    slot.give_back();
    slot.give_back();
    CHECK(one.share.used() == 0);
}

TEST_CASE("with one slot, two that want more take turns") {
    SharedLimit limit({.slots = 1}, kStart);
    Member a(limit);
    Member b(limit);
    a.lease(1, 1);
    b.share.stand_in_line(true);
    CHECK(b.share.free(kStart) == 0);
    a.slots.clear();
    CHECK(b.turns == 1);
    CHECK(a.share.free(kStart) == 0);
    CHECK(b.share.free(kStart) == 1);
    b.lease(1, 1);
    a.share.stand_in_line(true);
    b.slots.clear();
    CHECK(a.turns == 1);
    CHECK(b.share.free(kStart) == 0);
    // Who does not stand in line keeps nobody from anything.
    a.share.stand_in_line(false);
    CHECK(b.share.free(kStart) == 1);
}

TEST_CASE("what nobody else wants may be taken, and is shared again as it comes free") {
    SharedLimit limit({.slots = 8}, kStart);
    Member a(limit);
    Member b(limit);
    CHECK(a.share.free(kStart) == 8);
    a.lease(8, 8);
    b.share.stand_in_line(true);
    for (int freed = 1; freed <= 4; ++freed) {
        a.slots.pop_back();
        CHECK(a.share.free(kStart) == 0);
        CHECK(b.share.free(kStart) == 1);
        b.lease(1, 1);
        b.share.stand_in_line(true);
    }
    a.share.stand_in_line(true);
    a.slots.pop_back();
    b.slots.pop_back();
    CHECK(a.share.free(kStart) == 1);
    CHECK(b.share.free(kStart) == 1);
}

TEST_CASE("an outbox always finds what is kept for it") {
    SharedLimit limit({.slots = 16, .kept = 2}, kStart);
    Member a(limit);
    Member b(limit);
    Member c(limit);
    CHECK(a.share.free(kStart) == 12);
    a.lease(12, 12);
    CHECK(a.share.free(kStart) == 0);
    CHECK(b.share.free(kStart) == 2);
    b.lease(2, 2);
    CHECK(b.share.free(kStart) == 0);
    CHECK(c.share.free(kStart) == 2);
}

TEST_CASE("tokens are divided among those that could use one") {
    SharedLimit limit({.slots = 2, .rate = 4.0}, kStart);
    Member a(limit);
    Member b(limit);
    a.lease(1, 1);
    CHECK(a.share.token_wait() == 250ms);
    const auto later = kStart + 250ms;
    b.share.stand_in_line(true);
    CHECK(a.share.available(later) == 0);
    CHECK(b.share.available(later) == 1);
    a.share.nudge(later);
    CHECK(b.turns == 1);
    b.lease(1, 1, later);
    // b was served last but one; its slots are full, so that the token is not kept for it.
    b.share.stand_in_line(true);
    a.slots.clear();
    CHECK(a.share.available(later + 250ms) == 1);
    // What a lease did not find is a token again.
    a.lease(1, 0, later + 250ms);
    CHECK(a.share.available(later + 250ms) == 1);
}

TEST_CASE("what a database that does not answer set aside falls back") {
    SharedLimit limit({.slots = 2}, kStart);
    Member frozen(limit);
    Member other(limit);
    frozen.share.reserve(2, kStart);
    CHECK(other.share.free(kStart + SharedLimit::kPatience - 1ms) == 0);
    CHECK(other.share.free(kStart + SharedLimit::kPatience) == 2);
    // Nobody rings for it: who waits asks how long.
    CHECK(other.share.fallback_wait(kStart + 1ms) == SharedLimit::kPatience - 1ms);
    CHECK(other.share.fallback_wait(kStart + SharedLimit::kPatience) == 0ns);
    CHECK(frozen.share.fallback_wait(kStart + 1ms) == 0ns);
    other.lease(1, 1, kStart + SharedLimit::kPatience);
    // Its answer after all: there is room for one.
    CHECK(frozen.share.claim(kStart + 2 * SharedLimit::kPatience));
    const auto slot = frozen.share.take();
    CHECK_FALSE(frozen.share.claim(kStart + 2 * SharedLimit::kPatience));
    frozen.share.settle(kStart + 2 * SharedLimit::kPatience);
    CHECK(frozen.share.taken(kStart + 2 * SharedLimit::kPatience) == 2);
}

TEST_CASE("random turns: never above the limit, and somebody in line may always go on") {
    const auto seed = std::random_device{}();
    CAPTURE(seed);
    std::mt19937 random(seed);
    const auto draw = [&](int below) {
        return static_cast<int>(random() % static_cast<unsigned>(below));
    };
    for (int round = 0; round < 200; ++round) {
        const int slots = 1 + draw(9);
        SharedLimit limit({.slots = slots}, kStart);
        std::vector<std::unique_ptr<Member>> members;
        const int count = 1 + draw(4);
        for (int i = 0; i < count; ++i) members.push_back(std::make_unique<Member>(limit));
        for (int step = 0; step < 100; ++step) {
            auto& one = *members[static_cast<std::size_t>(draw(count))];
            const int free = one.share.free(kStart);
            if (free > 0 && draw(2) == 0) {
                one.lease(free, draw(free + 1));
            } else if (!one.slots.empty()) {
                one.slots.pop_back();
            }
            one.share.stand_in_line(draw(2) == 0);
            REQUIRE(one.share.used() <= slots);
            const int left = slots - one.share.used();
            int may = 0;
            for (const auto& member : members) member->share.stand_in_line(true);
            for (const auto& member : members) {
                REQUIRE(member->share.free(kStart) <= left);
                may += member->share.free(kStart);
            }
            REQUIRE(may >= left);
        }
    }
}

namespace {

// Engines with stores of their own and one tool, as one daemon with several databases has them.
struct Sources {
    explicit Sources(
        ToolPolicy policy, int concurrency = 8, std::chrono::milliseconds poll_idle = 20ms
    )
        : policy_(std::move(policy)) {
        Toolset tools;
        tools.add({policy_, std::make_unique<FakeTool>(script)});
        limits = std::make_shared<SharedLimits>(tools, concurrency, 2);
        for (auto* one : {&a, &b}) {
            one->tools.add({policy_, std::make_unique<FakeTool>(script)});
            auto settings = quick_settings();
            settings.concurrency = concurrency;
            settings.poll_idle = poll_idle;
            settings.limits = limits;
            one->engine = std::make_unique<Engine>(
                io.get_executor(),
                one->store,
                one->tools,
                one->observer,
                one->log,
                failpoints,
                settings
            );
        }
    }
    void start() {
        for (auto* one : {&a, &b}) {
            boost::asio::co_spawn(io, one->engine->run(), [one](std::exception_ptr error) {
                one->ended = true;
                REQUIRE_FALSE(error);
            });
        }
    }
    void stop() {
        for (auto* one : {&a, &b}) one->engine->stop();
        run_until(io, [&] { return a.ended && b.ended; }, 30s);
    }

    struct One {
        MemoryStore store;
        Toolset tools;
        CountingObserver observer;
        RecordingLog log;
        std::unique_ptr<Engine> engine;
        bool ended = false;
        [[nodiscard]] std::size_t final() const {
            std::size_t count = 0;
            for (const auto& [seq, row] : store.rows()) count += row.is_final() ? 1 : 0;
            return count;
        }
    };
    boost::asio::io_context io{1};
    Failpoints failpoints;
    FakeTool::Script script;
    std::shared_ptr<SharedLimits> limits;
    One a;
    One b;

 private:
    ToolPolicy policy_;
};

}  // namespace

TEST_CASE("one operation does not wait behind another database's backlog") {
    auto policy = quick_policy("t");
    policy.concurrency = GENERATE(1, 3);
    Sources world(policy);
    world.script.execute_takes = 5ms;
    for (int i = 0; i < 400; ++i) world.a.store.insert("t", "many-" + std::to_string(i));
    world.start();
    run_until(world.io, [&] { return world.a.final() >= 5; }, 30s);
    world.b.store.insert("t", "one");
    const auto before = world.a.final();
    run_until(world.io, [&] { return world.b.final() == 1; }, 30s);
    // The idle poll is 20 ms, a call takes five: that many of the others may have gone ahead.
    CHECK(world.a.final() - before < 100);
    CHECK(world.script.most_running <= policy.concurrency);
    world.stop();
}

TEST_CASE("two backlogs of one tool share its rate evenly, and use it up") {
    auto policy = quick_policy("t");
    policy.rate_per_second = 100;
    Sources world(policy);
    for (int i = 0; i < 400; ++i) {
        world.a.store.insert("t", "a-" + std::to_string(i));
        world.b.store.insert("t", "b-" + std::to_string(i));
    }
    const auto begun = BootClock::now();
    world.start();
    run_until(world.io, [&] { return world.a.final() + world.b.final() >= 60; }, 30s);
    const auto lasted = BootClock::now() - begun;
    CHECK(world.a.final() >= 15);
    CHECK(world.b.final() >= 15);
    CHECK(lasted >= 300ms);  // 25 at once, then a hundred a second
    world.stop();
}

TEST_CASE("a database that hangs in its lease keeps the slot from the other for a second only") {
    auto policy = quick_policy("t");
    policy.concurrency = 1;
    Sources world(policy);
    Bell thaw(world.io.get_executor());
    bool frozen = true;
    world.a.store.travel = [&]() -> asio::awaitable<void> {
        while (frozen) co_await thaw.wait(10ms);
    };
    // It must get as far as the lease: that hangs alone.
    frozen = false;
    world.a.store.on_call = [&](MemoryStore::Method method) -> std::optional<MemoryStore::Fault> {
        if (method == MemoryStore::Method::lease && world.a.store.row("a").attempts > 0) {
            frozen = true;
        }
        return {};
    };
    world.a.store.insert("t", "a");
    world.script.execute_takes = 300ms;
    world.start();
    run_until(world.io, [&] { return world.a.store.row("a").attempts > 0; }, 30s);
    world.b.store.insert("t", "b");
    run_until(world.io, [&] { return world.b.final() == 1; }, 30s);
    frozen = false;
    world.a.store.on_call = {};
    run_until(world.io, [&] { return world.a.final() == 1; }, 30s);
    CHECK(world.script.most_running == 1);
    world.stop();
}

TEST_CASE("who stands in line behind a silent database looks again when its slots fall back") {
    auto policy = quick_policy("t");
    const bool of_tool = GENERATE(true, false);
    if (of_tool) policy.concurrency = 1;
    Sources world(policy, of_tool ? 8 : 1, 1h);
    Bell thaw(world.io.get_executor());
    bool frozen = false;
    world.a.store.travel = [&]() -> asio::awaitable<void> {
        while (frozen) co_await thaw.wait(10ms);
    };
    world.a.store.on_call = [&](MemoryStore::Method method) -> std::optional<MemoryStore::Fault> {
        if (method == MemoryStore::Method::lease) frozen = true;
        return {};
    };
    world.b.store.insert("t", "b");
    const auto begun = BootClock::now();
    world.start();
    run_until(world.io, [&] { return world.b.final() == 1; }, 30s);
    CHECK(BootClock::now() - begun >= SharedLimit::kPatience);
    frozen = false;
    world.a.store.on_call = {};
    world.stop();
}
