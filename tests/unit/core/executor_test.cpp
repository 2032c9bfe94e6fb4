#include "outbox/executor.hpp"

#include <boost/asio/io_context.hpp>
#include <deque>

#include "outbox/bell.hpp"
#include "tests/support/memory_store.hpp"
#include "tests/support/recorders.hpp"
#include "tests/support/run_coroutine.hpp"

using namespace std::chrono_literals;
using namespace outbox;

namespace {

// Each call waits until the test rings its bell.
class HeldTool final : public Tool {
 public:
    explicit HeldTool(asio::any_io_executor executor) : executor_(std::move(executor)) {}

    asio::awaitable<Outcome> execute(ToolCall, Deadline) override {
        auto& bell = calls.emplace_back(executor_);
        co_await bell.wait();
        co_return Succeeded{};
    }
    asio::awaitable<Verdict> probe(ToolCall, Deadline) override { co_return Absent{}; }

    std::deque<Bell> calls;

 private:
    asio::any_io_executor executor_;
};

struct World {
    boost::asio::io_context io;
    test::MemoryStore store;
    test::CountingObserver observer;
    test::RecordingLog log;
    Failpoints failpoints;
    Random random;
    Completer completer{io.get_executor(), store, observer, log, failpoints, {}};
    ProviderKeys keys{store, "default"};
    Executor executor{
        io.get_executor(),
        completer,
        keys,
        observer,
        log,
        failpoints,
        random,
        [](const auto&, const auto& what) { FAIL(what); }
    };
    Slots slots{10};
    SharedLimit limit{{.slots = 10}, BootClock::now()};
    SharedLimit::Share share{limit, [] {}, [] {}};
    ToolEntry entry;
    HeldTool* tool = nullptr;

    World() {
        auto held = std::make_unique<HeldTool>(io.get_executor());
        tool = held.get();
        entry.policy.name = "t";
        entry.policy.request_hash = 7;
        entry.tool = std::move(held);
    }

    void start(const LeasedAttempt& attempt, bool unsent = false) {
        executor.start(
            {.attempt = attempt,
             .entry = &entry,
             .leased_at = BootClock::now(),
             .worker_slot = slots.take(),
             .call_slot = share.take(),
             .tool_slot = share.take(),
             .unsent = unsent}
        );
    }
};

}  // namespace

TEST_CASE("a compensation without an original is refused before anything is sent") {
    World world;
    world.entry.policy.compensation = true;
    world.store.insert("t", "op-1");
    auto leased = test::run_coroutine(
        world.io,
        world.store.lease(
            {.worker = WorkerId("w1"),
             .margin = 1s,
             .lanes = {{.tool = "t", .limit = 1, .timeout = 10s, .request_hash = 7, .after = {}}}}
        ),
        1s
    );
    REQUIRE(leased.size() == 1);
    boost::asio::co_spawn(world.io, world.completer.run(), [](std::exception_ptr error) {
        REQUIRE_FALSE(error);
    });
    world.start(leased[0]);
    test::run_until(world.io, [&] { return world.executor.in_flight().empty(); }, 30s);
    CHECK(world.tool->calls.empty());
    CHECK(world.store.row("op-1").status == Status::failed);
    CHECK(world.store.row("op-1").error->code == "not_a_compensation");
    world.completer.stop();
    test::run_until(world.io, [&] { return world.executor.idle(); }, 30s);
    world.io.run_for(50ms);
}

TEST_CASE("what is leased and not begun at a stop, or finds its slot gone, goes back unsent") {
    const bool stopping = GENERATE(true, false);
    World world;
    world.store.insert("t", "op-1");
    auto leased = test::run_coroutine(
        world.io,
        world.store.lease(
            {.worker = WorkerId("w1"),
             .margin = 1s,
             .lanes = {{.tool = "t", .limit = 1, .timeout = 10s, .request_hash = 7, .after = {}}}}
        ),
        5s
    );
    REQUIRE(leased.size() == 1);
    boost::asio::co_spawn(world.io, world.completer.run(), [](std::exception_ptr error) {
        REQUIRE_FALSE(error);
    });
    if (stopping) world.executor.drain();
    world.start(leased[0], !stopping);
    const auto& row = world.store.row("op-1");
    test::run_until(world.io, [&] { return row.status != Status::attempting; }, 30s);
    CHECK(world.tool->calls.empty());
    CHECK(row.status == Status::pending);
    CHECK(row.attempts == 0);
    CHECK(row.event_kinds() == "released");
    world.completer.stop();
    test::run_until(world.io, [&] { return world.executor.idle(); }, 30s);
    world.io.run_for(50ms);
}

TEST_CASE("two attempts of one operation in flight: the end of one does not hide the other") {
    World world;
    world.store.insert("t", "op-1");
    auto leased = test::run_coroutine(
        world.io,
        world.store.lease(
            {.worker = WorkerId("w1"),
             .margin = 1s,
             .lanes = {{.tool = "t", .limit = 1, .timeout = 10s, .request_hash = 7, .after = {}}}}
        ),
        1s
    );
    REQUIRE(leased.size() == 1);
    auto later = leased[0];
    later.epoch =
        Epoch(later.epoch.value + 2);  // its lease expired, and this worker leased it anew
    world.start(leased[0]);
    world.start(later);
    test::run_until(world.io, [&] { return world.tool->calls.size() == 2; }, 1s);
    CHECK(world.executor.in_flight().size() == 2);

    boost::asio::co_spawn(world.io, world.completer.run(), [](std::exception_ptr error) {
        REQUIRE_FALSE(error);
    });
    world.tool->calls[0].ring();
    test::run_until(world.io, [&] { return world.executor.in_flight().size() == 1; }, 1s);
    // A lost lease that is given back now must not take the second attempt with it.
    CHECK(world.executor.in_flight() == std::vector{leased[0].intent.seq});
    world.tool->calls[1].ring();
    test::run_until(world.io, [&] { return world.executor.in_flight().empty(); }, 1s);
    world.completer.stop();
    test::run_until(world.io, [&] { return world.executor.idle(); }, 1s);
    world.io.run_for(50ms);
}

namespace {

// Records its own success, as the sql adapter does on the outbox's database; then fails to say so.
class OwnTool final : public Tool {
 public:
    asio::awaitable<Outcome> execute(ToolCall call, Deadline) override {
        if (call.own) *call.written = call.own->decide(Succeeded{Json("done"), {}});
        throw std::runtime_error("the answer was lost on the way back");
        co_return Succeeded{};
    }
    asio::awaitable<Verdict> probe(ToolCall, Deadline) override { co_return Absent{}; }
};

}  // namespace

TEST_CASE("what a tool committed with its effect is not recorded again, whatever comes after") {
    for (const bool own : {true, false}) {
        World world;
        world.entry.tool = std::make_unique<OwnTool>();
        world.entry.policy.own_transaction = own;
        world.store.insert("t", "op-1");
        auto leased = test::run_coroutine(
            world.io,
            world.store.lease(
                {.worker = WorkerId("w1"),
                 .margin = 1s,
                 .lanes = {{.tool = "t", .limit = 1, .timeout = 10s, .request_hash = 7, .after = {}}
                 }}
            ),
            1s
        );
        REQUIRE(leased.size() == 1);
        std::vector<Transition> told;
        world.executor.on_written = [&](const Transition& next) { told.push_back(next); };
        boost::asio::co_spawn(world.io, world.completer.run(), [](std::exception_ptr error) {
            REQUIRE_FALSE(error);
        });
        world.start(leased[0]);
        test::run_until(world.io, [&] { return !told.empty(); }, 5s);
        REQUIRE(told.size() == 1);
        CHECK(told[0].to == (own ? Status::succeeded : Status::unknown));
        CHECK(told[0].epoch.value == leased[0].epoch.value);
        if (own) CHECK(to_text(told[0].result) == "\"done\"");
        // The store was told of it only by the completer.
        CHECK(world.observer.batches == std::vector<std::size_t>{1});
        world.completer.stop();
        test::run_until(world.io, [&] { return world.executor.idle(); }, 5s);
        world.io.run_for(50ms);
    }
}
