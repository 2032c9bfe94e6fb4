#include <string>

#include "tests/http/certificates.hpp"
#include "tests/http/world.hpp"
#include "tests/support/catch.hpp"

using namespace tests;
using outbox::Deadline;

namespace {

// Made once: two dozen openssl processes would be slow.
const Certificates& certificates() {
    static Certificates made;
    static bool issued = [] {
        made.issue("good", "DNS:localhost,IP:127.0.0.1", 2);
        made.issue("other", "DNS:other.example", 2);
        made.issue("expired", "DNS:localhost,IP:127.0.0.1", -1);
        return true;
    }();
    static_cast<void>(issued);
    return made;
}

StubHttpServer::Options with(const std::string& name) {
    return {
        .certificate_file = certificates().certificate(name), .key_file = certificates().key(name)
    };
}

tools::HttpRequest secure(int port, std::string body = "{}") {
    auto request = post(port, std::move(body));
    request.origin.tls = true;
    request.origin.host = "localhost";
    return request;
}

tools::HttpOptions trusting() {
    return {.ca_file = certificates().authority()};
}

asio::awaitable<void> reset_after_the_request(StubConnection& connection) {
    auto reading = connection.read_request();
    co_await std::move(reading);
    connection.reset();
}

// Ends the TCP connection without TLS's own goodbye: the body may have been cut by anybody.
asio::awaitable<void> cut_without_goodbye(StubConnection& connection) {
    auto reading = connection.read_request();
    co_await std::move(reading);
    auto sending = connection.send("HTTP/1.1 200 OK\r\n\r\nsome of it");
    co_await std::move(sending);
    connection.close();
}

asio::awaitable<void> freeze_after_answering(StubConnection& connection) {
    auto reading = connection.read_request();
    co_await std::move(reading);
    auto sending = connection.send(ok(std::string(100'000, 'x')));
    co_await std::move(sending);
    auto until = Deadline::after(400ms);
    while (!until.passed()) {
    }
}

asio::awaitable<void> stall(StubConnection& connection) {
    auto stalling = connection.stall();
    co_await std::move(stalling);
}

}  // namespace

TEST_CASE("TLS with a certificate authority of one's own") {
    World world(trusting());
    StubHttpServer stub(world.context.get_executor(), answer_ok, with("good"));
    CHECK(summary(world.send(secure(stub.port()))) == "200 {}");
    CHECK(summary(world.send(secure(stub.port(), std::string(3'000'000, 'x')))) == "200 {}");
    CHECK(stub.connections() == 1);
    CHECK(stub.requests().at(1).size() > 3'000'000);
    auto by_address = secure(stub.port());
    by_address.origin.host = "127.0.0.1";
    CHECK(summary(world.send(by_address)) == "200 {}");
}

TEST_CASE("a certificate that proves nothing: nothing is sent") {
    SECTION("another name") {
        World world(trusting());
        StubHttpServer stub(world.context.get_executor(), answer_ok, with("other"));
        auto result = world.send(secure(stub.port()));
        CHECK(summary(result) == "unsent not_sent_tls");
        CHECK_THAT(message(result), ContainsSubstring("hostname mismatch"));
        CHECK(stub.bytes() == 0);
    }
    SECTION("expired") {
        World world(trusting());
        StubHttpServer stub(world.context.get_executor(), answer_ok, with("expired"));
        auto result = world.send(secure(stub.port()));
        CHECK(summary(result) == "unsent not_sent_tls");
        CHECK_THAT(message(result), ContainsSubstring("expired"));
        CHECK(stub.bytes() == 0);
    }
    SECTION("an authority the system does not know") {
        World world;
        StubHttpServer stub(world.context.get_executor(), answer_ok, with("good"));
        CHECK(summary(world.send(secure(stub.port()))) == "unsent not_sent_tls");
        CHECK(stub.bytes() == 0);
    }
    SECTION("unless the configuration says so") {
        World world({.tls_verify = false});
        StubHttpServer stub(world.context.get_executor(), answer_ok, with("other"));
        CHECK(summary(world.send(secure(stub.port()))) == "200 {}");
    }
    SECTION("a file of authorities that is not there") {
        World world({.ca_file = "/no/such/file.pem"});
        auto result = world.send(secure(1));
        CHECK(summary(result) == "unsent not_sent_tls");
        CHECK_THAT(message(result), ContainsSubstring("/no/such/file.pem"));
    }
}

TEST_CASE("TLS against plain text, and the other way round") {
    World world(trusting());
    StubHttpServer plain(world.context.get_executor(), answer_ok);
    auto result = world.send(secure(plain.port()), Deadline::after(1s));
    bool unsent =
        summary(result) == "unsent not_sent_tls" || summary(result) == "unsent not_sent_deadline";
    CHECK(unsent);
    CHECK(plain.requests().empty());

    StubHttpServer stub(world.context.get_executor(), answer_ok, with("good"));
    auto request = post(stub.port(), "{}");
    auto failed = world.send(request);
    CHECK(std::holds_alternative<tools::HttpFailure>(failed));
    CHECK(std::get<tools::HttpFailure>(failed).sent);
}

TEST_CASE("a handshake that never ends is not sent") {
    World world({.connect_timeout = 200ms, .ca_file = certificates().authority()});
    StubHttpServer plain(world.context.get_executor(), stall);
    auto result = world.send(secure(plain.port()));
    CHECK(summary(result) == "unsent not_sent_tls");
    CHECK_THAT(message(result), ContainsSubstring("took too long"));
}

TEST_CASE("faults after the first byte over TLS") {
    World world(trusting());
    SECTION("reset") {
        StubHttpServer stub(world.context.get_executor(), reset_after_the_request, with("good"));
        CHECK(summary(world.send(secure(stub.port()))) == "sent reset");
        CHECK(stub.requests().size() == 1);
    }
    SECTION("an end that is none") {
        StubHttpServer stub(world.context.get_executor(), cut_without_goodbye, with("good"));
        auto result = world.send(secure(stub.port()));
        CHECK(std::holds_alternative<tools::HttpFailure>(result));
        CHECK(std::get<tools::HttpFailure>(result).sent);
    }
    SECTION("time-out") {
        StubHttpServer stub(world.context.get_executor(), stall, with("good"));
        CHECK(summary(world.send(secure(stub.port()), Deadline::after(300ms))) == "sent timeout");
        auto big = secure(stub.port(), std::string(1'000'000, 'x'));
        CHECK(summary(world.send(big, Deadline::after(300ms))) == "sent timeout");
    }
    SECTION("an answer that arrived whole counts") {
        StubHttpServer stub(world.context.get_executor(), freeze_after_answering, with("good"));
        auto result = world.send(secure(stub.port()), Deadline::after(200ms));
        REQUIRE(std::holds_alternative<tools::HttpResponse>(result));
        CHECK(std::get<tools::HttpResponse>(result).body.size() == 100'000);
    }
}
