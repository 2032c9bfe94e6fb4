// Lanes of tools over real sockets, with the real loops: who is told to wait, or whose host is
// down, waits alone; the other tools notice nothing, and nothing is lost or counted.
#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <string>

#include "outbox/engine.hpp"
#include "tests/http/tools_world.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/memory_store.hpp"

using namespace tests;

namespace {

asio::awaitable<void> too_many(StubConnection& connection) {
    while (true) {
        auto reading = connection.read_request();
        const auto request = co_await std::move(reading);
        if (request.empty()) co_return;
        auto sending =
            connection.send("HTTP/1.1 429 Too Many\r\nRetry-After: 30\r\nContent-Length: 0\r\n\r\n"
            );
        co_await std::move(sending);
    }
}

std::string tool(const std::string& name, int port) {
    return "  " + name + ":\n    concurrency: 8\n    execute: { type: http, method: POST, url: " +
           "'http://127.0.0.1:" + std::to_string(port) +
           "/', json: { k: '{{ operation.key }}' } }\n"
           "    reconcile: { type: manual, reason: a test }\n";
}

outbox::EngineSettings settings() {
    outbox::EngineSettings settings;
    settings.worker = {.id = outbox::WorkerId("w"), .name = "w", .version = "0", .tools = {}};
    settings.concurrency = 32;
    settings.margin = 2s;
    settings.poll_busy = 2ms;
    settings.poll_idle = 20ms;
    settings.maintain_poll = 20ms;
    settings.drain_timeout = 5s;
    return settings;
}

// Two tools at work on one store.
struct Lanes : ToolWorld {
    test::MemoryStore store;
    std::unique_ptr<outbox::Engine> engine;
    bool ended = false;

    ~Lanes() {
        if (engine) stop();
    }
    void start() {
        engine = std::make_unique<outbox::Engine>(
            io.get_executor(), store, *tools, observer, log, failpoints, settings()
        );
        asio::co_spawn(io, engine->run(), [this](const std::exception_ptr&) { ended = true; });
    }
    void stop() {
        engine->stop();
        test::run_until(io, [this] { return ended; }, 60s);
        engine.reset();
    }
    // One row of `good` every few milliseconds, until all of them are done.
    void trickle(int rows) {
        for (int i = 0; i < rows; ++i) {
            store.insert("good", "g" + std::to_string(i));
            boost::asio::steady_timer timer(io, 4ms);
            bool over = false;
            timer.async_wait([&](const auto&) { over = true; });
            test::run_until(io, [&] { return over; }, 30s);
        }
        test::run_until(io, [&] { return count("good", outbox::Status::succeeded) == rows; }, 60s);
    }
    [[nodiscard]] int count(const std::string& name, outbox::Status status) const {
        int count = 0;
        for (const auto& [seq, row] : store.rows()) {
            count += row.intent.tool == name && row.status == status ? 1 : 0;
        }
        return count;
    }
    [[nodiscard]] int attempts_of(const std::string& name) const {
        int count = 0;
        for (const auto& [seq, row] : store.rows()) {
            count += row.intent.tool == name ? row.attempts : 0;
        }
        return count;
    }
};

struct Latency {
    double median;
    double p99;
};

Latency latency(std::vector<std::chrono::nanoseconds> all) {
    REQUIRE_FALSE(all.empty());
    std::sort(all.begin(), all.end());
    const auto at = [&](double share) {
        const auto place = static_cast<std::size_t>(share * static_cast<double>(all.size() - 1));
        return std::chrono::duration<double, std::milli>(all[place]).count();
    };
    return {at(0.5), at(0.99)};
}

}  // namespace

TEST_CASE("Retry-After: 30 pauses one lane; the pickup latency of another stays what it was") {
    constexpr int kRows = 300;
    Latency alone{}, beside{};
    {
        Lanes world;
        StubHttpServer good(world.io.get_executor(), answer_ok);
        world.build(tool("good", good.port()));
        world.start();
        world.trickle(kRows);
        alone = latency(world.observer.pickups["good"]);
    }
    Lanes world;
    StubHttpServer good(world.io.get_executor(), answer_ok);
    StubHttpServer limited(world.io.get_executor(), too_many);
    world.build(tool("good", good.port()) + tool("limited", limited.port()));
    for (int i = 0; i < 500; ++i) world.store.insert("limited", "l" + std::to_string(i));
    world.start();
    world.trickle(kRows);
    beside = latency(world.observer.pickups["good"]);
    INFO(
        "pickup of the other tool, ms: alone p50 " << alone.median << " p99 " << alone.p99
                                                   << ", beside a paused one p50 " << beside.median
                                                   << " p99 " << beside.p99
    );
    // Nobody asked again: only what was under way when the first 429 came.
    CHECK(limited.requests().size() >= 1);
    CHECK(limited.requests().size() <= 8);
    CHECK(world.count("good", outbox::Status::succeeded) == kRows);
    // The tool that has to wait: every row is there, none has lost an attempt or failed.
    const int pending = world.count("limited", outbox::Status::pending);
    const int scheduled = world.count("limited", outbox::Status::scheduled);
    CHECK(pending + scheduled == 500);
    CHECK(scheduled <= 8);
    CHECK(world.attempts_of("limited") == 0);
    CHECK(world.observer.openings.empty());
    // Generous: this machine may be busy. A lane that blocked others would make this 30 s.
    CHECK(beside.p99 < 10 * alone.p99 + 2'000);
}

TEST_CASE("a host that is down is asked a few times, and everything goes on when it is back") {
    Lanes world;
    StubHttpServer down(world.io.get_executor(), answer_ok, {.down = true});
    StubHttpServer good(world.io.get_executor(), answer_ok);
    world.build(tool("good", good.port()) + tool("down", down.port()));
    for (int i = 0; i < 400; ++i) world.store.insert("down", "d" + std::to_string(i));
    world.start();
    test::run_until(world.io, [&] { return world.observer.open_breakers["down"] == 1; }, 30s);
    world.trickle(300);
    // Without the breaker all four hundred would have been tried by now, many of them again.
    CHECK(world.observer.started["down"] <= 40);
    CHECK(world.count("good", outbox::Status::succeeded) == 300);
    CHECK(world.attempts_of("down") == 0);
    CHECK(world.count("down", outbox::Status::failed) == 0);
    CHECK(world.count("down", outbox::Status::unknown) == 0);
    CHECK(world.observer.open_breakers["good"] == 0);
    INFO("attempts at the host that is down: " << world.observer.started["down"]);

    down.listen();
    test::run_until(
        world.io, [&] { return world.count("down", outbox::Status::succeeded) == 400; }, 120s
    );
    CHECK(world.observer.open_breakers["down"] == 0);
    CHECK(down.requests().size() == 400);
}
