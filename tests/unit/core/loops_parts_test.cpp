#include <unistd.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "outbox/alarm.hpp"
#include "outbox/failpoint.hpp"
#include "outbox/heartbeat.hpp"
#include "outbox/slots.hpp"
#include "outbox/task_group.hpp"
#include "outbox/token_bucket.hpp"
#include "tests/support/memory_store.hpp"
#include "tests/support/recorders.hpp"
#include "tests/support/run_coroutine.hpp"

using namespace outbox;
using namespace std::chrono_literals;
namespace asio = boost::asio;

namespace {

asio::awaitable<void> sleep(asio::io_context& io, std::chrono::milliseconds duration) {
    asio::steady_timer timer(io, duration);
    co_await timer.async_wait(asio::use_awaitable);
}

asio::awaitable<void> fail() {
    throw std::runtime_error("broken");
    co_return;
}

}  // namespace

TEST_CASE("a group counts its tasks, reports what escapes, and is joined") {
    asio::io_context io(1);
    std::string escaped;
    TaskGroup group(io.get_executor(), [&](const auto& name, const auto& what) {
        escaped += name + ": " + what;
    });
    CHECK(test::run_coroutine(io, group.join(), 1s));
    group.spawn("slow", sleep(io, 20ms));
    group.spawn("bad", fail());
    CHECK(group.size() == 2);
    CHECK_FALSE(test::run_coroutine(io, group.join(1ms), 1s));
    CHECK(test::run_coroutine(io, group.join(1s), 2s));
    CHECK(escaped == "bad: broken");
    group.spawn("slow", sleep(io, 10s));
    asio::steady_timer timer(io, 10ms);
    timer.async_wait([&](auto) { group.interrupt_join(); });
    const auto start = std::chrono::steady_clock::now();
    CHECK_FALSE(test::run_coroutine(io, group.join(10s), 20s));
    CHECK(std::chrono::steady_clock::now() - start < 5s);
}

TEST_CASE("a bell keeps a ring for whoever waits next") {
    asio::io_context io(1);
    Bell bell(io.get_executor());
    bell.ring();
    bell.ring();
    CHECK(test::run_coroutine(io, bell.wait(1s), 500ms));
    CHECK_FALSE(test::run_coroutine(io, bell.wait(1ms), 500ms));
}

TEST_CASE("an alarm goes off for what is due, and not sooner for what is later") {
    asio::io_context io(1);
    Alarm alarm(io.get_executor());
    const auto took = [&](std::chrono::milliseconds limit) {
        const auto start = std::chrono::steady_clock::now();
        test::run_coroutine(io, alarm.wait(limit), 20s);
        return std::chrono::steady_clock::now() - start;
    };
    alarm.expect(30ms);
    const auto due = took(10s);
    CHECK(due >= 29ms);
    CHECK(due < 5s);
    alarm.expect(10s);
    CHECK(took(20ms) >= 20ms);
    alarm.wake();
    CHECK(took(10s) < 5s);
    asio::steady_timer timer(io, 10ms);
    timer.async_wait([&](auto) { alarm.expect(10ms); });
    CHECK(took(10s) < 5s);
    alarm.expect(0ms);
    CHECK(took(10s) < 5s);
}

TEST_CASE("slots are given back once, also when their limit is gone") {
    int freed = 0;
    auto slots = std::make_unique<Slots>(3, [&] { ++freed; });
    auto one = slots->take();
    {
        auto two = slots->take();
        auto moved = std::move(two);
        CHECK(slots->free() == 1);
    }
    CHECK(slots->used() == 1);
    one.give_back();
    one.give_back();
    CHECK(slots->free() == 3);
    CHECK(freed == 2);
    auto late = slots->take();
    slots.reset();
    late.give_back();
    CHECK(freed == 2);
}

TEST_CASE("a token bucket fills with the time and keeps a quarter of a second") {
    const BootClock::time_point start{};
    TokenBucket bucket(20, start);
    CHECK(bucket.available(start) == 5);
    bucket.take(5);
    CHECK(bucket.available(start) == 0);
    CHECK(bucket.wait() == 50ms);
    CHECK(bucket.available(start + 100ms) == 2);
    CHECK(bucket.available(start + 1h) == 5);
    TokenBucket slow(0.5, start);
    CHECK(slow.available(start) == 1);
    slow.take(1);
    CHECK(slow.available(start + 1999ms) == 0);
    CHECK(slow.available(start + 2s) == 1);
}

TEST_CASE("failpoints do what their specification says") {
    asio::io_context io(1);
    Failpoints failpoints;
    const auto hit = [&](FailpointId id) { test::run_coroutine(io, failpoints.hit(id), 1s); };
    hit(FailpointId::before_lease);
    CHECK_FALSE(failpoints.armed());

    CHECK(failpoints.arm("before_lease=throw*2@1,before_probe=delay:20ms").empty());
    CHECK(failpoints.armed());
    hit(FailpointId::before_lease);
    CHECK_THROWS(hit(FailpointId::before_lease));
    CHECK_THROWS(hit(FailpointId::before_lease));
    hit(FailpointId::before_lease);
    const auto start = std::chrono::steady_clock::now();
    hit(FailpointId::before_probe);
    CHECK(std::chrono::steady_clock::now() - start >= 20ms);

    const std::string file =
        std::filesystem::temp_directory_path() / ("outbox-failpoint-" + std::to_string(getpid()));
    CHECK(failpoints.arm("before_complete=pause:" + file).empty());
    asio::steady_timer timer(io, 30ms);
    timer.async_wait([&](auto) { std::ofstream(file) << "go"; });
    hit(FailpointId::before_complete);
    CHECK(std::remove(file.c_str()) == 0);
    CHECK(std::remove((file + ".reached").c_str()) == 0);

    // On a lane, which has no coroutine.
    CHECK(failpoints.arm("between_finish_and_move=throw*1").empty());
    CHECK_THROWS(failpoints.hit_blocking(FailpointId::between_finish_and_move));
    failpoints.hit_blocking(FailpointId::between_finish_and_move);

    for (const char* wrong :
         {"nothing=throw",
          "before_lease",
          "before_lease=explode",
          "before_lease=delay:fast",
          "before_lease=pause",
          "before_lease=throw*x",
          "before_lease=throw@-1"}) {
        INFO(wrong);
        CHECK_FALSE(failpoints.arm(wrong).empty());
    }
}

TEST_CASE("a daemon judges others only after its own connection was healthy all the time") {
    asio::io_context io(1);
    test::MemoryStore store;
    test::CountingObserver observer;
    test::RecordingLog log;
    Heartbeat heartbeat(
        io.get_executor(),
        store,
        observer,
        log,
        {WorkerId("w"), "w", "0", {}},
        {.period = 100ms, .retry = 20ms, .stale = 300ms}
    );
    CHECK_FALSE(heartbeat.healthy());
    CHECK(test::run_coroutine(io, heartbeat.beat(), 1s));
    CHECK(heartbeat.healthy());
    CHECK_FALSE(heartbeat.healthy_for(150ms));
    asio::co_spawn(io, heartbeat.run(), [](std::exception_ptr) {});
    test::run_until(io, [&] { return heartbeat.healthy_for(150ms); }, 10s);
    store.set_down(true);
    test::run_until(io, [&] { return !heartbeat.healthy(); }, 10s);
    store.set_down(false);
    test::run_until(io, [&] { return heartbeat.healthy(); }, 2s);
    CHECK_FALSE(heartbeat.healthy_for(150ms));
    // A process that was frozen: its last beat is old when it wakes up.
    std::this_thread::sleep_for(400ms);
    CHECK_FALSE(heartbeat.healthy());
    test::run_until(io, [&] { return heartbeat.healthy(); }, 2s);
    CHECK_FALSE(heartbeat.healthy_for(150ms));
    heartbeat.stop();
    io.run_for(50ms);
}
