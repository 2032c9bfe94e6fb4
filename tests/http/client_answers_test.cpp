#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "tests/http/world.hpp"
#include "tests/support/catch.hpp"
#include "tools/http_client_address.hpp"
#include "tools/http_client_parser.hpp"

using namespace tests;

namespace {

// Answers every request with the bytes of its path's name.
asio::awaitable<void> answer_by_path(StubConnection& connection) {
    while (true) {
        auto reading = connection.read_request();
        auto request = co_await std::move(reading);
        if (request.empty()) co_return;
        std::string answer = ok("plain");
        bool close = false;
        if (request.find(" /chunked ") != std::string::npos) {
            answer =
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
                "3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: x\r\n\r\n";
        } else if (request.find(" /nothing ") != std::string::npos) {
            answer = "HTTP/1.1 204 No Content\r\n\r\n";
        } else if (request.find(" /not-modified ") != std::string::npos) {
            answer = "HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n";
        } else if (request.starts_with("HEAD ")) {
            answer = "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n";
        } else if (request.find(" /hints ") != std::string::npos) {
            answer = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" +
                     ok("after hints");
        } else if (request.find(" /until-close ") != std::string::npos) {
            answer = "HTTP/1.1 200 OK\r\n\r\nall of it";
            close = true;
        } else if (request.find(" /old ") != std::string::npos) {
            answer = "HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nold";
        } else if (request.find(" /empty ") != std::string::npos) {
            answer = "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n";
        } else if (request.find(" /redirect ") != std::string::npos) {
            answer = "HTTP/1.1 302 Found\r\nLocation: /chunked\r\nContent-Length: 0\r\n\r\n";
        }
        auto sending = connection.send(std::move(answer));
        co_await std::move(sending);
        if (close) connection.close();
    }
}

asio::awaitable<void> answer_fifty_megabytes(StubConnection& connection) {
    auto reading = connection.read_request();
    co_await std::move(reading);
    auto sending = connection.send("HTTP/1.1 200 OK\r\nContent-Length: 52428800\r\n\r\n");
    co_await std::move(sending);
    for (int i = 0; i < 800; ++i) {
        auto more = connection.send(std::string(65'536, 'x'));
        co_await std::move(more);
    }
}

}  // namespace

TEST_CASE("a request on the wire") {
    World world;
    StubHttpServer stub(world.context.get_executor(), answer_ok);
    auto port = std::to_string(stub.port());

    auto request = post(stub.port(), R"({"title":"x"})");
    request.target = "/tickets?ref=a%20b";
    request.headers.emplace_back("Idempotency-Key", "k-1");
    CHECK(summary(world.send(request)) == "200 {}");
    CHECK(
        stub.requests().at(0) ==
        "POST /tickets?ref=a%20b HTTP/1.1\r\nHost: 127.0.0.1:" + port +
            "\r\nUser-Agent: outboxd\r\nAccept-Encoding: gzip\r\nContent-Length: 13\r\n"
            "Content-Type: application/json\r\n"
            "Idempotency-Key: k-1\r\n\r\n{\"title\":\"x\"}"
    );
    // A POST without a body says so: some servers wait for one otherwise (411).
    world.send(post(stub.port(), ""));
    CHECK_THAT(stub.requests().at(1), ContainsSubstring("Content-Length: 0\r\n"));
    world.send(get(stub.port()));
    CHECK(stub.requests().at(2).find("Content-Length") == std::string::npos);
    request.headers = {{"user-agent", "mine/1"}};
    world.send(request);
    CHECK_THAT(stub.requests().at(3), ContainsSubstring("user-agent: mine/1\r\n"));
    CHECK(stub.requests().at(3).find("outboxd") == std::string::npos);
}

TEST_CASE("every way an answer can be framed") {
    World world;
    StubHttpServer stub(world.context.get_executor(), answer_by_path);
    auto answer = [&](const std::string& target) {
        return summary(world.send(get(stub.port(), target)));
    };
    CHECK(answer("/plain") == "200 plain");
    CHECK(answer("/chunked") == "200 abcde");
    CHECK(answer("/nothing") == "204 ");
    CHECK(answer("/not-modified") == "304 ");
    CHECK(answer("/hints") == "200 after hints");
    CHECK(answer("/empty") == "201 ");
    CHECK(answer("/redirect") == "302 ");
    auto head = get(stub.port());
    head.method = "HEAD";
    CHECK(summary(world.send(head)) == "200 ");
    CHECK(answer("/plain") == "200 plain");
    CHECK(stub.connections() == 1);  // all of these left the connection in order
    CHECK(answer("/old") == "200 old");
    CHECK(answer("/until-close") == "200 all of it");
    CHECK(answer("/plain") == "200 plain");
    CHECK(stub.requests().size() == 12);
}

// Without a socket, so that every piece has exactly this size; then the connection closes.
static std::string read_in_pieces(std::string_view bytes, std::size_t size) {
    tools::ResponseParser parser(false, 100);
    auto state = tools::ResponseParser::State::more;
    while (!bytes.empty() && state == tools::ResponseParser::State::more) {
        const auto piece = bytes.substr(0, size);
        std::copy(piece.begin(), piece.end(), static_cast<char*>(parser.prepare().data()));
        state = parser.commit(piece.size());
        bytes.remove_prefix(piece.size());
    }
    if (state == tools::ResponseParser::State::more) state = parser.end();
    if (state == tools::ResponseParser::State::broken) return "broken";
    return summary(parser.take());
}

TEST_CASE("the network may cut an answer anywhere") {
    const std::string chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    const std::vector<std::pair<std::string, std::string>> answers = {
        {ok("plain"), "200 plain"},
        {chunked + "0\r\n\r\n", "200 "},
        {chunked + "0\r\nTrailer: x\r\n\r\n", "200 "},
        {chunked + "1\r\na\r\n2;x=y\r\nbc\r\n0\r\n\r\n", "200 abc"},
        {chunked + "00;x\r\n\r\n", "200 "},
        {chunked + "1\r\na\r\n0\r\n\r", "broken"},
        {chunked + "1\r\na\r\n0\r\n", "broken"},
        {chunked + "1\r\na\r\n", "broken"},
        {chunked + "1\r\na", "broken"},
        {chunked + "0\r\n", "broken"},
        {chunked + "0\r\nx\r\n0\r\n\r\n", "broken"},
        {chunked + "x\r\n\r\n", "broken"},
        {chunked, "broken"},
        {"HTTP/1.1 100 Continue\r\n\r\n" + chunked + "0\r\n\r\n", "200 "},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nabcd", "broken"},
        {"HTTP/1.1 200 OK\r\n\r\nabcd", "200 abcd"},
    };
    for (const auto& [bytes, expected] : answers) {
        for (std::size_t size = 1; size <= bytes.size(); ++size) {
            INFO(bytes << " in pieces of " << size);
            CHECK(read_in_pieces(bytes, size) == expected);
        }
    }
}

TEST_CASE("headers of an answer are found by name in any case") {
    World world;
    StubHttpServer stub(world.context.get_executor(), answer_by_path);
    auto result = world.send(get(stub.port(), "/redirect"));
    const auto& response = std::get<tools::HttpResponse>(result);
    CHECK(response.header("location") == "/chunked");
    CHECK(response.header("LOCATION") == "/chunked");
    CHECK_FALSE(response.header("Locatio"));
}

TEST_CASE("an answer over the limit is cut, and its connection closed") {
    World world({.max_response_bytes = 1'000'000});
    StubHttpServer stub(world.context.get_executor(), answer_fifty_megabytes);
    auto result = world.send(get(stub.port()));
    const auto& response = std::get<tools::HttpResponse>(result);
    CHECK(response.status == 200);
    CHECK(response.truncated);
    CHECK(response.body.size() == 1'000'000);
    world.send(get(stub.port()));
    CHECK(stub.connections() == 2);

    World exact({.max_response_bytes = 5});
    StubHttpServer five(exact.context.get_executor(), answer_by_path);
    auto whole = exact.send(get(five.port(), "/plain"));
    CHECK_FALSE(std::get<tools::HttpResponse>(whole).truncated);
}

TEST_CASE("what could break a message is refused before anything is sent") {
    World world;
    StubHttpServer stub(world.context.get_executor(), answer_ok);
    auto good = get(stub.port());
    auto refuses = [&](tools::HttpRequest request) {
        return summary(world.send(std::move(request))) == "unsent not_sent_invalid";
    };
    using namespace std::string_literals;
    for (const auto& value : {"a\r\nX: y"s, "a\nb"s, "a\rb"s, "a\0b"s, "a\x01"s, "a\x7f"s}) {
        auto request = good;
        request.headers = {{"X-Thing", value}};
        CHECK(refuses(request));
    }
    for (const auto& name :
         {""s,
          "a b"s,
          "a:"s,
          "a\r\n"s,
          "ä"s,
          "Content-Length"s,
          "transfer-encoding"s,
          "HOST"s,
          "Connection"s,
          "Expect"s}) {
        auto request = good;
        request.headers = {{name, "x"}};
        CHECK(refuses(request));
    }
    for (const auto& target : {""s, "x"s, "/a b"s, "/a\r\nX: y"s, "/\0"s, "/ä"s, "//\n"s}) {
        auto request = good;
        request.target = target;
        CHECK(refuses(request));
    }
    for (const auto& method : {""s, "GE T"s, "GET / HTTP/1.1\r\n"s}) {
        auto request = good;
        request.method = method;
        CHECK(refuses(request));
    }
    auto request = good;
    request.origin.host = "a\r\nb";
    CHECK(refuses(request));
    CHECK(stub.connections() == 0);
    request = good;
    request.headers = {{"X-Thing", "tab\tand ü are fine"}};
    CHECK(summary(world.send(request)) == "200 {}");
}

TEST_CASE("names, refused ports and IPv6") {
    World world;
    auto request = get(1);
    CHECK(summary(world.send(request)) == "unsent not_sent_connect");
    CHECK_THAT(message(world.send(request)), ContainsSubstring("127.0.0.1:1: Connection refused"));
    request.origin.host = "no-such-host.invalid";
    CHECK(summary(world.send(request)) == "unsent not_sent_dns");

    StubHttpServer six(world.context.get_executor(), answer_ok, {.address = "::1"});
    request = get(six.port());
    request.origin.host = "::1";
    CHECK(summary(world.send(request)) == "200 {}");
    CHECK_THAT(six.requests().at(0), ContainsSubstring("Host: [::1]:"));
    request.origin.host = "localhost";
    StubHttpServer four(world.context.get_executor(), answer_ok);
    request.origin.port = four.port();
    CHECK(summary(world.send(request)) == "200 {}");
}

TEST_CASE("a name with several addresses: the next one when one refuses") {
    // localhost is ::1 and 127.0.0.1 here and there; a server listens on one of them.
    World world;
    for (const auto* address : {"127.0.0.1", "::1"}) {
        StubHttpServer stub(world.context.get_executor(), answer_ok, {.address = address});
        auto request = post(stub.port(), "{}");
        request.origin.host = "localhost";
        const auto result = world.send(request);
        const bool only_one =
            std::string(address) == "::1" && !std::holds_alternative<tools::HttpResponse>(result);
        if (only_one) continue;  // a machine whose localhost is IPv4 alone
        CHECK(summary(result) == "200 {}");
        CHECK(stub.requests().size() == 1);
    }
}

TEST_CASE("private addresses can be refused") {
    World world({.allow_private_hosts = false});
    StubHttpServer stub(world.context.get_executor(), answer_ok);
    auto request = get(stub.port());
    CHECK(summary(world.send(request)) == "unsent not_sent_private_host");
    // Whatever the address is written as, and whatever name leads to it.
    for (const auto* host :
         {"localhost", "::ffff:127.0.0.1", "::ffff:7f00:1", "2130706433", "127.1", "0x7f000001"}) {
        CAPTURE(host);
        request.origin.host = host;
        CHECK(summary(world.send(request)) == "unsent not_sent_private_host");
    }
    CHECK(stub.connections() == 0);

    auto is_private = [](const char* text) {
        return tools::is_private(asio::ip::make_address(text));
    };
    for (const auto* text :
         {"127.0.0.1",
          "127.9.9.9",
          "10.0.0.1",
          "172.16.0.1",
          "172.31.255.255",
          "192.168.1.1",
          "169.254.169.254",
          "0.0.0.0",
          "100.64.0.1",
          "224.0.0.1",
          "255.255.255.255",
          "::1",
          "::",
          "fe80::1",
          "fd00::1",
          "fc00::1",
          "::ffff:10.0.0.1",
          "fec0::1",
          "ff02::1",
          "::10.0.0.1",
          "100::1",
          "2001::1",
          "2001:db8::1",
          "64:ff9b:1::808:808",
          "64:ff9b::7f00:1",
          "2002:7f00:1::"}) {
        CAPTURE(text);
        CHECK(is_private(text));
    }
    for (const auto* text :
         {"8.8.8.8",
          "172.32.0.1",
          "172.15.255.255",
          "100.128.0.1",
          "192.167.1.1",
          "2606:4700::1111",
          "2001:4860:4860::8888",
          "2a00:1450::1",
          "::ffff:8.8.8.8",
          "64:ff9b::808:808"}) {
        CAPTURE(text);
        CHECK_FALSE(is_private(text));
    }
}
