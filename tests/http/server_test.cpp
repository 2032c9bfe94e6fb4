#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <stdexcept>
#include <string>

#include "daemon/http_server.hpp"
#include "tests/http/served.hpp"
#include "tests/support/catch.hpp"

using namespace tests;
using outboxd::HttpServer;
using outboxd::ServerRequest;
using outboxd::ServerResponse;

namespace {

asio::awaitable<ServerResponse> echo(ServerRequest request) {
    ServerResponse response;
    response.content_type = "text/plain";
    if (request.path == "/throw") throw std::runtime_error("a secret reason");
    if (request.path == "/drop") response.drop = true;
    if (request.path == "/wait") {
        asio::steady_timer timer(co_await asio::this_coro::executor, 60s);
        co_await timer.async_wait(asio::use_awaitable);
    }
    response.body = request.method + " " + request.path + " " + request.query + " " + request.body;
    co_return response;
}

std::size_t count(const std::string& text, const std::string& part) {
    std::size_t found = 0;
    for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
    return found;
}

}  // namespace

TEST_CASE("the server answers, keeps connections, and stops") {
    World world;
    HttpServer server(world.context.get_executor(), {}, echo);
    REQUIRE_FALSE(server.listen("127.0.0.1", 0));
    Served served(world, server);
    CHECK(summary(world.send(get(server.port(), "/a/b?c=d"))) == "200 GET /a/b c=d ");
    CHECK(summary(world.send(post(server.port(), "body"))) == "200 POST /  body");
    auto head = get(server.port(), "/x");
    head.method = "HEAD";
    CHECK(summary(world.send(head)) == "200 ");
    auto answer = talk(
        world,
        server.port(),
        "GET /1 HTTP/1.1\r\nHost: x\r\n\r\nGET /2 HTTP/1.1\r\nHost: x\r\n\r\n"
        "GET /3 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    );
    CHECK(count(answer, "HTTP/1.1 200 OK") == 3);
    CHECK(answer.find("GET /1") < answer.find("GET /2"));
    CHECK_THAT(answer, ContainsSubstring("GET /3"));
}

TEST_CASE("a handler that throws or drops") {
    World world;
    HttpServer server(world.context.get_executor(), {}, echo);
    REQUIRE_FALSE(server.listen("127.0.0.1", 0));
    Served served(world, server);
    auto result = world.send(get(server.port(), "/throw"));
    CHECK_THAT(summary(result), ContainsSubstring("500 "));
    CHECK(summary(result).find("secret") == std::string::npos);
    CHECK(summary(world.send(get(server.port(), "/drop"))) == "sent reset");
    CHECK_THAT(summary(world.send(get(server.port(), "/ok"))), ContainsSubstring("200 GET /ok"));
}

TEST_CASE("the server stops while a handler waits and a client says nothing") {
    World world;
    HttpServer server(world.context.get_executor(), {}, echo);
    REQUIRE_FALSE(server.listen("127.0.0.1", 0));
    Served served(world, server);  // its end checks that run() returned
    auto result = world.send(get(server.port(), "/wait"), outbox::Deadline::after(200ms));
    CHECK(summary(result) == "sent timeout");
}

TEST_CASE("limits of the server") {
    World world;
    outboxd::ServerOptions options{
        .max_head = 1'000, .max_body = 1'000, .read_time = 300ms, .idle_time = 300ms
    };
    HttpServer server(world.context.get_executor(), options, echo);
    REQUIRE_FALSE(server.listen("127.0.0.1", 0));
    Served served(world, server);
    int port = server.port();
    CHECK_THAT(
        talk(world, port, "GET / HTTP/1.1\r\nX: " + std::string(2'000, 'x') + "\r\n\r\n"),
        ContainsSubstring("HTTP/1.1 431")
    );
    CHECK_THAT(
        talk(world, port, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2000\r\n\r\n"),
        ContainsSubstring("HTTP/1.1 413")
    );
    CHECK_THAT(talk(world, port, "this is not HTTP\r\n\r\n"), ContainsSubstring("HTTP/1.1 400"));
    // Slow ones are closed without an answer.
    CHECK(talk(world, port, "").empty());
    CHECK(talk(world, port, "GET / HT").empty());
    CHECK(talk(world, port, "POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc").empty());
}

TEST_CASE("a port that is taken, an address that is none") {
    World world;
    HttpServer one(world.context.get_executor(), {}, echo);
    REQUIRE_FALSE(one.listen("127.0.0.1", 0));
    HttpServer two(world.context.get_executor(), {}, echo);
    CHECK_THAT(*two.listen("127.0.0.1", one.port()), ContainsSubstring("Address already in use"));
    CHECK_THAT(*two.listen("desk.example", 0), ContainsSubstring("not an IP address"));
}

TEST_CASE("query parameters and headers") {
    ServerRequest request;
    request.query = "a=1&b=x%20y+z&c&a=2&=e&d=%zz%4";
    CHECK(request.parameter("a") == "1");
    CHECK(request.parameter("b") == "x y z");
    CHECK(request.parameter("c").value_or("missing").empty());
    CHECK(request.parameter("d") == "%zz%4");
    CHECK_FALSE(request.parameter("e"));
    request.headers = {{"Host", "a"}, {"X", "1"}, {"host", "b"}};
    CHECK_FALSE(request.header("Host"));
    CHECK(request.header("x") == "1");
    CHECK(outboxd::percent_decode("a+b%2B", false) == "a+b+");
}

namespace {

asio::awaitable<void> three_pieces(outboxd::ResponseStream& stream) {
    for (const auto* piece : {"one\n", "", "two\n", "three\n"}) {
        auto writing = stream.write(piece);
        if (!co_await std::move(writing)) co_return;
    }
}

asio::awaitable<void> breaks_off(outboxd::ResponseStream& stream) {
    auto writing = stream.write("begun");
    (void)co_await std::move(writing);
    throw std::runtime_error("a secret reason");
}

bool g_left = false;  // whether endless() noticed that its client went

asio::awaitable<void> endless(outboxd::ResponseStream& stream) {
    asio::steady_timer timer(co_await asio::this_coro::executor);
    for (;;) {
        auto writing = stream.write(std::string(1000, 'x'));
        if (!co_await std::move(writing)) break;
        timer.expires_after(5ms);
        co_await timer.async_wait(asio::use_awaitable);
    }
    g_left = true;
}

asio::awaitable<ServerResponse> streamed(ServerRequest request) {
    ServerResponse response;
    response.content_type = "text/event-stream";
    response.stream = request.path == "/endless"  ? endless
                      : request.path == "/breaks" ? breaks_off
                                                  : three_pieces;
    co_return response;
}

}  // namespace

TEST_CASE("a body in pieces") {
    World world;
    HttpServer server(world.context.get_executor(), {}, streamed);
    REQUIRE_FALSE(server.listen("127.0.0.1", 0));
    Served served(world, server);
    CHECK(summary(world.send(get(server.port(), "/"))) == "200 one\ntwo\nthree\n");
    // The connection stays, and HEAD has no body.
    auto answer = talk(
        world,
        server.port(),
        "GET /1 HTTP/1.1\r\nHost: x\r\n\r\nHEAD /2 HTTP/1.1\r\nHost: x\r\n\r\n"
        "GET /3 HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    );
    CHECK(count(answer, "HTTP/1.1 200 OK") == 3);
    CHECK(count(answer, "three") == 2);
    CHECK(count(answer, "0\r\n\r\n") == 2);
    // What breaks off is not taken for the whole.
    auto broken = talk(world, server.port(), "GET /breaks HTTP/1.1\r\nHost: x\r\n\r\n");
    CHECK_THAT(broken, ContainsSubstring("begun"));
    CHECK(count(broken, "0\r\n\r\n") == 0);
    CHECK(count(broken, "secret") == 0);
}

TEST_CASE("a body in pieces ends when its client leaves, and when the server stops") {
    World world;
    HttpServer server(world.context.get_executor(), {}, streamed);
    REQUIRE_FALSE(server.listen("127.0.0.1", 0));
    Served served(world, server);
    g_left = false;
    auto cut = world.send(get(server.port(), "/endless"), outbox::Deadline::after(200ms));
    CHECK(std::holds_alternative<tools::HttpFailure>(cut));
    for (int i = 0; i < 500 && !g_left; ++i) world.run_for(20ms);
    CHECK(g_left);
    // Served's destructor stops the server while this one goes on.
    asio::ip::tcp::socket other(world.context);
    other.connect({asio::ip::make_address("127.0.0.1"), static_cast<std::uint16_t>(server.port())});
    asio::write(other, asio::buffer(std::string("GET /endless HTTP/1.1\r\nHost: x\r\n\r\n")));
    world.run_for(100ms);
}
