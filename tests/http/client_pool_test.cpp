#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <string>

#include "tests/http/world.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/tcp_gate.hpp"

using namespace tests;
using outbox::Deadline;

namespace {

asio::awaitable<void> answer_once_and_close(StubConnection& connection) {
    auto reading = connection.read_request();
    co_await std::move(reading);
    auto sending = connection.send(ok());
    co_await std::move(sending);
    connection.close();
}

asio::awaitable<void> reset_the_second(StubConnection& connection) {
    auto first = connection.read_request();
    co_await std::move(first);
    auto sending = connection.send(ok());
    co_await std::move(sending);
    auto second = connection.read_request();
    co_await std::move(second);
    connection.reset();
}

asio::awaitable<void> say_close(StubConnection& connection) {
    auto reading = connection.read_request();
    co_await std::move(reading);
    auto sending =
        connection.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    co_await std::move(sending);
    auto stalling = connection.stall();
    co_await std::move(stalling);
}

asio::awaitable<void> answer_twice(StubConnection& connection) {
    auto reading = connection.read_request();
    co_await std::move(reading);
    auto sending = connection.send(ok("mine") + ok("somebody else's"));
    co_await std::move(sending);
    auto stalling = connection.stall();
    co_await std::move(stalling);
}

asio::awaitable<void> answer_again_later(StubConnection& connection) {
    auto reading = connection.read_request();
    co_await std::move(reading);
    auto sending = connection.send(ok("mine"));
    co_await std::move(sending);
    auto sleeping = connection.sleep(20ms);
    co_await std::move(sleeping);
    auto again = connection.send("HTTP/1.1 408 Request Timeout\r\nContent-Length: 0\r\n\r\n");
    co_await std::move(again);
    auto stalling = connection.stall();
    co_await std::move(stalling);
}

asio::awaitable<void> stall(StubConnection& connection) {
    auto stalling = connection.stall();
    co_await std::move(stalling);
}

}  // namespace

TEST_CASE("a connection serves one request after the other") {
    World world;
    StubHttpServer stub(world.context.get_executor(), answer_ok);
    for (int i = 0; i < 5; ++i) CHECK(summary(world.send(get(stub.port()))) == "200 {}");
    CHECK(stub.connections() == 1);
    world.client->close_idle();
    CHECK(summary(world.send(get(stub.port()))) == "200 {}");
    CHECK(stub.connections() == 2);
}

TEST_CASE("a connection that the server closed is replaced, and nothing is sent twice") {
    World world;
    StubHttpServer stub(world.context.get_executor(), answer_once_and_close);
    for (int i = 0; i < 20; ++i) {
        CHECK(summary(world.send(post(stub.port(), "{}"))) == "200 {}");
        world.run_for(5ms);  // the close arrives
    }
    CHECK(stub.requests().size() == 20);
    CHECK(stub.connections() == 20);
}

TEST_CASE("a close that races with the next request never doubles it") {
    World world;
    StubHttpServer stub(world.context.get_executor(), answer_once_and_close);
    std::size_t whole = 0;
    for (int i = 0; i < 200; ++i) {
        auto result = world.send(post(stub.port(), "{}"));
        whole += std::holds_alternative<tools::HttpResponse>(result) ? 1 : 0;
        if (const auto* failure = std::get_if<tools::HttpFailure>(&result)) CHECK(failure->sent);
    }
    CHECK(stub.requests().size() == whole);  // each answered request was seen exactly once
    CHECK(whole >= 100);
}

TEST_CASE("a pooled connection that breaks after the first byte is not replaced") {
    World world;
    StubHttpServer stub(world.context.get_executor(), reset_the_second);
    CHECK(summary(world.send(post(stub.port(), "{}"))) == "200 {}");
    CHECK(summary(world.send(post(stub.port(), "{}"))) == "sent reset");
    CHECK(stub.requests().size() == 2);
    CHECK(stub.connections() == 1);
}

TEST_CASE("a connection is not used again after Connection: close or a byte too many") {
    World world;
    SECTION("close") {
        StubHttpServer stub(world.context.get_executor(), say_close);
        CHECK(summary(world.send(get(stub.port()))) == "200 ");
        CHECK(summary(world.send(get(stub.port()))) == "200 ");
        CHECK(stub.connections() == 2);
    }
    SECTION("two answers at once") {
        StubHttpServer stub(world.context.get_executor(), answer_twice);
        CHECK(summary(world.send(get(stub.port()))) == "200 mine");
        CHECK(summary(world.send(get(stub.port()))) == "200 mine");
        CHECK(stub.connections() == 2);
    }
    SECTION("an answer nobody asked for") {
        StubHttpServer stub(world.context.get_executor(), answer_again_later);
        CHECK(summary(world.send(get(stub.port()))) == "200 mine");
        world.run_for(60ms);
        CHECK(summary(world.send(get(stub.port()))) == "200 mine");
        CHECK(stub.connections() == 2);
    }
}

TEST_CASE("idle connections are closed after some seconds") {
    World world;
    StubHttpServer stub(world.context.get_executor(), answer_ok);
    CHECK(summary(world.send(get(stub.port()))) == "200 {}");
    world.run_for(3500ms);
    CHECK(summary(world.send(get(stub.port()))) == "200 {}");
    CHECK(stub.connections() == 2);
}

TEST_CASE("waiting for a free connection counts against the deadline, and is not sent") {
    World world({.max_connections_per_host = 1});
    StubHttpServer stub(world.context.get_executor(), stall);
    std::string first = "nothing";
    auto ended = [&](const std::exception_ptr&, tools::HttpResult result) {
        first = summary(result);
    };
    asio::co_spawn(
        world.context, world.client->send(post(stub.port(), "{}"), Deadline::after(1s)), ended
    );
    world.run_for(50ms);
    auto bytes = stub.bytes();
    auto result = world.send(post(stub.port(), "{}"), Deadline::after(300ms));
    CHECK(summary(result) == "unsent not_sent_deadline");
    CHECK(stub.bytes() == bytes);
    CHECK(stub.connections() == 1);
    world.run_for(1500ms);
    CHECK(first == "sent timeout");
    CHECK(summary(world.send(post(stub.port(), "{}"), Deadline::after(200ms))) == "sent timeout");
}

TEST_CASE("two hundred at once share the connections they may have") {
    World world({.max_connections_per_host = 16});
    StubHttpServer stub(world.context.get_executor(), answer_ok);
    int answered = 0;
    auto ended = [&](const std::exception_ptr&, tools::HttpResult result) {
        answered += summary(result) == "200 {}" ? 1 : 0;
    };
    for (int i = 0; i < 200; ++i) {
        asio::co_spawn(
            world.context,
            world.client->send(get(stub.port(), "/" + std::to_string(i)), Deadline::after(10s)),
            ended
        );
    }
    for (int i = 0; i < 100 && answered < 200; ++i) world.run_for(50ms);
    CHECK(answered == 200);
    CHECK(stub.connections() == 16);
    auto requests = stub.requests();
    std::sort(requests.begin(), requests.end());
    CHECK(std::unique(requests.begin(), requests.end()) == requests.end());
    CHECK(requests.size() == 200);
}

TEST_CASE("a cable that is pulled, and a cut at every byte of the request") {
    World world;
    StubHttpServer stub(world.context.get_executor(), answer_ok);
    TcpGate gate("127.0.0.1:" + std::to_string(stub.port()));
    SECTION("pulled") {
        gate.swallow(true);
        auto result = world.send(post(gate.port(), "{}"), Deadline::after(300ms));
        CHECK(summary(result) == "sent timeout");
        CHECK(stub.requests().empty());
    }
    SECTION("cut") {
        CHECK(summary(world.send(post(gate.port(), "{}"))) == "200 {}");
        world.client->close_idle();
        std::size_t length = stub.requests().at(0).size();
        for (std::size_t at = 1; at < length; at += 7) {
            gate.cut_after_client_bytes(at);
            CHECK(summary(world.send(post(gate.port(), "{}"))) == "sent reset");
        }
        CHECK(stub.requests().size() == 1);
        gate.never_cut();
        CHECK(summary(world.send(post(gate.port(), "{}"))) == "200 {}");
    }
    SECTION("slow") {
        gate.delay(50ms);
        CHECK(summary(world.send(post(gate.port(), "{}"))) == "200 {}");
    }
}
