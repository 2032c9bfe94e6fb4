#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <string>
#include <string_view>

#include "tests/http/world.hpp"
#include "tests/support/catch.hpp"

using namespace tests;
using outbox::Cause;
using outbox::Deadline;

namespace {

asio::awaitable<void> reset_at_once(StubConnection& connection) {
    connection.reset();
    co_return;
}

asio::awaitable<void> reset_in_the_body(StubConnection& connection) {
    auto reading = connection.read_head();
    co_await std::move(reading);
    connection.reset();
}

asio::awaitable<void> never_answer(StubConnection& connection) {
    auto reading = connection.read_request();
    co_await std::move(reading);
    auto stalling = connection.stall();
    co_await std::move(stalling);
}

asio::awaitable<void> never_read(StubConnection& connection) {
    auto reading = connection.read_head();
    co_await std::move(reading);
    auto sleeping = connection.sleep(2s);
    co_await std::move(sleeping);
}

// Answers what the test put here, then does what it says.
struct Cut {
    std::string bytes;
    bool reset = false;
};
Cut cut;

asio::awaitable<void> cut_the_answer(StubConnection& connection) {
    auto reading = connection.read_request();
    co_await std::move(reading);
    auto sending = connection.send(cut.bytes);
    co_await std::move(sending);
    if (cut.reset) {
        // Lets the bytes arrive before the reset throws away what was not read.
        auto sleeping = connection.sleep(2ms);
        co_await std::move(sleeping);
        connection.reset();
    } else {
        connection.close();
    }
}

asio::awaitable<void> drip_the_answer(StubConnection& connection) {
    auto reading = connection.read_request();
    co_await std::move(reading);
    auto dripping = connection.drip(ok("slowly"), 3ms);
    co_await std::move(dripping);
}

asio::awaitable<void> refuse_and_close(StubConnection& connection) {
    auto reading = connection.read_head();
    co_await std::move(reading);
    auto sending = connection.send("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
    co_await std::move(sending);
    connection.close();
}

asio::awaitable<void> refuse_and_wait(StubConnection& connection) {
    auto reading = connection.read_head();
    co_await std::move(reading);
    auto sending = connection.send("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
    co_await std::move(sending);
    auto sleeping = connection.sleep(20s);
    co_await std::move(sleeping);
}

asio::awaitable<void> answer_while_the_process_is_frozen(StubConnection& connection) {
    auto reading = connection.read_request();
    co_await std::move(reading);
    auto sending = connection.send(ok(std::string(100'000, 'x')));
    co_await std::move(sending);
    // The one thread of this test stands still until the client's deadline is over.
    auto until = Deadline::after(400ms);
    while (!until.passed()) {
    }
}

const tools::HttpFailure& failure_of(const tools::HttpResult& result) {
    REQUIRE(std::holds_alternative<tools::HttpFailure>(result));
    return std::get<tools::HttpFailure>(result);
}

}  // namespace

TEST_CASE("a connection reset before, in and after the request") {
    World world;
    SECTION("before: whatever it saw, it claims no answer") {
        StubHttpServer stub(world.context.get_executor(), reset_at_once);
        auto result = world.send(post(stub.port(), "{}"));
        const auto& failure = failure_of(result);
        CHECK((!failure.sent || failure.cause == Cause::reset));
        CHECK(stub.bytes() == 0);
    }
    SECTION("in the body") {
        StubHttpServer stub(world.context.get_executor(), reset_in_the_body);
        auto result = world.send(post(stub.port(), std::string(20'000'000, 'x')));
        CHECK(summary(result) == "sent reset");
        CHECK(failure_of(result).cause == Cause::reset);
        CHECK(stub.connections() == 1);
    }
    SECTION("after") {
        StubHttpServer stub(world.context.get_executor(), cut_the_answer);
        for (bool reset : {true, false}) {
            cut = {"", reset};
            auto result = world.send(post(stub.port(), "{}"));
            CHECK(summary(result) == "sent reset");
            CHECK(failure_of(result).cause == Cause::reset);
        }
        CHECK(stub.requests().size() == 2);
    }
}

TEST_CASE("an answer cut at any of its bytes is no answer, and nothing is sent twice") {
    World world;
    StubHttpServer stub(world.context.get_executor(), cut_the_answer);
    const std::string whole = ok(R"({"id": 7})");
    for (std::size_t length = 0; length < whole.size(); ++length) {
        for (bool reset : {false, true}) {
            cut = {whole.substr(0, length), reset};
            auto result = world.send(post(stub.port(), "{}"));
            CAPTURE(length, reset, summary(result));
            const auto& failure = failure_of(result);
            CHECK(failure.sent);
            bool known = failure.cause == Cause::reset || failure.cause == Cause::unreadable;
            CHECK(known);
        }
    }
    CHECK(stub.requests().size() == whole.size() * 2);
    cut = {whole, true};
    CHECK(summary(world.send(post(stub.port(), "{}"))) == R"(200 {"id": 7})");
}

TEST_CASE("answers that are no answers are unreadable") {
    World world;
    StubHttpServer stub(world.context.get_executor(), cut_the_answer);
    for (const auto* bytes :
         {"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
          "HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n",
          "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n0\r\n\r\n",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabcdef\r\n0\r\n\r\n",
          "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
          "SSH-2.0-OpenSSH_9.2\r\n",
          "{\"id\": 7}",
          "HTTP/1.1 2OO OK\r\n\r\n"}) {
        CAPTURE(bytes);
        cut = {bytes, false};
        auto result = world.send(post(stub.port(), "{}"));
        CHECK(summary(result) == "sent unreadable");
        CHECK(failure_of(result).cause == Cause::unreadable);
    }
    cut = {"HTTP/1.1 200 OK\r\nX: " + std::string(200'000, 'x') + "\r\n\r\n", false};
    CHECK(summary(world.send(post(stub.port(), "{}"))) == "sent unreadable");
    cut = {"", false};
    for (int i = 0; i < 40; ++i) cut.bytes += "HTTP/1.1 102 Processing\r\n\r\n";
    CHECK(summary(world.send(post(stub.port(), "{}"))) == "sent unreadable");
}

TEST_CASE("the deadline after the first byte") {
    World world;
    SECTION("no answer") {
        StubHttpServer stub(world.context.get_executor(), never_answer);
        auto start = outbox::BootClock::now();
        auto result = world.send(post(stub.port(), "{}"), Deadline::after(300ms));
        auto took = outbox::BootClock::now() - start;
        CHECK(summary(result) == "sent timeout");
        CHECK(failure_of(result).cause == Cause::timeout);
        CHECK(took >= 290ms);
        CHECK(took < 20s);
        CHECK(stub.requests().size() == 1);
    }
    SECTION("a request half written is cut, not finished") {
        StubHttpServer stub(world.context.get_executor(), never_read);
        std::size_t size = 50'000'000;
        auto request = post(stub.port(), std::string(size, 'x'));  // made before its time begins
        auto result = world.send(std::move(request), Deadline::after(1500ms));
        CHECK(summary(result) == "sent timeout");
        world.run_for(2500ms);
        CHECK(stub.requests().empty());
        CHECK(stub.bytes() < size);
    }
    SECTION("an answer that drips is fine until then") {
        StubHttpServer stub(world.context.get_executor(), drip_the_answer);
        CHECK(summary(world.send(post(stub.port(), "{}"))) == "200 slowly");
        world.run_for(50ms);  // the server closes, which the client notices
        auto result = world.send(post(stub.port(), "{}"), Deadline::after(100ms));
        CHECK(summary(result) == "sent timeout");
    }
}

TEST_CASE("an answer that arrived whole counts, whenever it is read") {
    World world;
    StubHttpServer stub(world.context.get_executor(), answer_while_the_process_is_frozen);
    auto result = world.send(post(stub.port(), "{}"), Deadline::after(200ms));
    REQUIRE(std::holds_alternative<tools::HttpResponse>(result));
    CHECK(std::get<tools::HttpResponse>(result).body.size() == 100'000);
}

TEST_CASE("a deadline that passed before the first byte sends nothing") {
    World world;
    StubHttpServer stub(world.context.get_executor(), answer_ok);
    auto past = Deadline::after(-1s);
    CHECK(summary(world.send(post(stub.port(), "{}"), past)) == "unsent not_sent_deadline");
    CHECK(stub.bytes() == 0);

    REQUIRE(world.failpoints.arm("before_first_byte=delay:200ms").empty());
    auto result = world.send(post(stub.port(), "{}"), Deadline::after(100ms));
    CHECK(summary(result) == "unsent not_sent_deadline");
    world.run_for(50ms);
    CHECK(stub.connections() >= 1);
    CHECK(stub.bytes() == 0);
    CHECK(summary(world.send(post(stub.port(), "{}"), Deadline::after(1s))) == "200 {}");
}

TEST_CASE("a server that refuses early is heard") {
    World world;
    std::string body(50'000'000, 'x');
    SECTION("and closes") {
        StubHttpServer stub(world.context.get_executor(), refuse_and_close);
        CHECK(summary(world.send(post(stub.port(), body))) == "413 ");
    }
    SECTION("and waits, without reading") {
        StubHttpServer stub(world.context.get_executor(), refuse_and_wait);
        auto start = outbox::BootClock::now();
        CHECK(summary(world.send(post(stub.port(), body))) == "413 ");
        CHECK(outbox::BootClock::now() - start < 15s);
    }
}

namespace {

// Sends, and is cancelled after a while, as the executor does at the end of a drain.
std::string send_and_cancel(World& world, tools::HttpRequest request) {
    asio::cancellation_signal signal;
    std::string told = "nothing";
    auto ended = [&](const std::exception_ptr& error, tools::HttpResult result) {
        told = error ? "an exception" : summary(result);
    };
    asio::co_spawn(
        world.context,
        world.client->send(std::move(request), Deadline::after(10s)),
        asio::bind_cancellation_slot(signal.slot(), ended)
    );
    world.run_for(100ms);
    signal.emit(asio::cancellation_type::terminal);
    world.run_for(100ms);
    return told;
}

}  // namespace

TEST_CASE("a cancelled request says whether it was sent") {
    World world({.max_connections_per_host = 1});
    StubHttpServer stub(world.context.get_executor(), never_answer);
    CHECK(send_and_cancel(world, post(stub.port(), "{}")) == "sent cancelled");
    CHECK(stub.requests().size() == 1);
    CHECK(
        send_and_cancel(world, post(stub.port(), std::string(50'000'000, 'x'))) == "sent cancelled"
    );

    REQUIRE(world.failpoints.arm("before_first_byte=delay:150ms").empty());
    CHECK(send_and_cancel(world, post(stub.port(), "{}")) == "unsent not_sent_cancelled");
    CHECK(stub.requests().size() <= 2);
}
