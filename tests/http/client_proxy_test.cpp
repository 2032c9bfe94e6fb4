// Requests through a proxy: what it sees, and that nothing counts as sent before it is.
#include <string>

#include "tests/http/certificates.hpp"
#include "tests/http/stub_proxy.hpp"
#include "tests/http/world.hpp"
#include "tests/support/catch.hpp"

using namespace tests;
using outbox::Deadline;

namespace {

const Certificates& certificates() {
    static Certificates made;
    static bool issued = [] {
        made.issue("desk", "DNS:desk.example", 2);
        return true;
    }();
    static_cast<void>(issued);
    return made;
}

tools::HttpOptions through(int port, std::string authorization = {}) {
    tools::HttpOptions options;
    options.ca_file = certificates().authority();
    options.proxy = tools::HttpProxy{
        .host = "127.0.0.1", .port = port, .authorization = std::move(authorization)
    };
    return options;
}

// A name that only the proxy can reach.
tools::HttpRequest secure(int port, std::string body = "{}") {
    auto request = post(port, std::move(body));
    request.origin = {.tls = true, .host = "desk.example", .port = port};
    return request;
}

struct ProxyWorld {
    World world;
    StubHttpServer stub{
        world.context.get_executor(),
        answer_ok,
        {.certificate_file = certificates().certificate("desk"),
         .key_file = certificates().key("desk")}
    };
    std::unique_ptr<StubProxy> proxy;

    explicit ProxyWorld(StubProxy::Options options = {}, std::string authorization = {}) {
        proxy = std::make_unique<StubProxy>(world.context.get_executor(), std::move(options));
        world.client = std::make_unique<tools::HttpClient>(
            world.context.get_executor(),
            through(proxy->port(), std::move(authorization)),
            world.failpoints
        );
    }
};

}  // namespace

TEST_CASE("https goes through a tunnel, and the proxy sees nothing of it") {
    ProxyWorld w({}, "Basic dTpwdw==");
    const auto authority = "desk.example:" + std::to_string(w.stub.port());
    auto request = secure(w.stub.port(), R"({"title": "secret"})");
    request.headers.emplace_back("Authorization", "Bearer t0ken");
    CHECK(summary(w.world.send(request)) == "200 {}");
    CHECK(summary(w.world.send(request)) == "200 {}");
    // One tunnel for both.
    REQUIRE(w.proxy->heads().size() == 1);
    CHECK(
        w.proxy->heads()[0] == "CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority +
                                   "\r\nUser-Agent: outboxd\r\nProxy-Authorization: Basic "
                                   "dTpwdw==\r\n\r\n"
    );
    REQUIRE(w.stub.requests().size() == 2);
    // The other side gets an ordinary request, without a word meant for the proxy.
    CHECK(w.stub.requests()[0].rfind("POST / HTTP/1.1\r\nHost: " + authority + "\r\n", 0) == 0);
    CHECK(w.stub.requests()[0].find("Proxy-") == std::string::npos);
}

TEST_CASE("http goes to the proxy with its whole address") {
    ProxyWorld w({}, "Basic dTpwdw==");
    auto request = post(8080, "{}");
    request.origin.host = "desk.example";
    request.target = "/tickets?a=b";
    CHECK(summary(w.world.send(request)) == "200 ok");
    REQUIRE(w.proxy->heads().size() == 1);
    CHECK(
        w.proxy->heads()[0].rfind(
            "POST http://desk.example:8080/tickets?a=b HTTP/1.1\r\nHost: desk.example:8080\r\n"
            "Proxy-Authorization: Basic dTpwdw==\r\n",
            0
        ) == 0
    );
}

TEST_CASE("a proxy that refuses: nothing was sent") {
    for (const int status : {400, 403, 407, 502, 503, 504}) {
        CAPTURE(status);
        ProxyWorld w(
            {.connect_answer =
                 "HTTP/1.0 " + std::to_string(status) + " No\r\nContent-Length: 3\r\n\r\nno!"}
        );
        const auto result = w.world.send(secure(w.stub.port()));
        CHECK(summary(result) == "unsent not_sent_proxy");
        CHECK_THAT(message(result), ContainsSubstring("status " + std::to_string(status)));
        CHECK(w.stub.bytes() == 0);
    }
    SECTION("407 to a request that was handed over is a refusal to pass it on") {
        ProxyWorld w({.forward_answer = "HTTP/1.1 407 Auth\r\nContent-Length: 0\r\n\r\n"});
        CHECK(summary(w.world.send(post(80, "{}"))) == "unsent not_sent_proxy");
    }
    SECTION("any other answer to it may come from behind") {
        ProxyWorld w({.forward_answer = "HTTP/1.1 502 Bad\r\nContent-Length: 0\r\n\r\n"});
        CHECK(summary(w.world.send(post(80, "{}"))) == "502 ");
    }
    SECTION("a 407 through a tunnel is the other side's") {
        ProxyWorld w;
        StubHttpServer odd(
            w.world.context.get_executor(),
            [](StubConnection& connection) -> asio::awaitable<void> {
                auto reading = connection.read_request();
                co_await std::move(reading);
                auto sending = connection.send("HTTP/1.1 407 Odd\r\nContent-Length: 0\r\n\r\n");
                co_await std::move(sending);
            },
            {.certificate_file = certificates().certificate("desk"),
             .key_file = certificates().key("desk")}
        );
        CHECK(summary(w.world.send(secure(odd.port()))) == "407 ");
    }
}

TEST_CASE("a proxy that is not there, or says nothing sensible") {
    SECTION("not there") {
        ProxyWorld w;
        const int port = w.proxy->port();
        w.proxy.reset();
        for (const bool tls : {true, false}) {
            auto request = secure(w.stub.port());
            request.origin.tls = tls;
            const auto result = w.world.send(request);
            CHECK(summary(result) == "unsent not_sent_proxy");
            CHECK_THAT(
                message(result),
                ContainsSubstring("through the proxy 127.0.0.1:" + std::to_string(port))
            );
        }
    }
    SECTION("a name that nobody knows") {
        World world([] {
            tools::HttpOptions options;
            options.proxy =
                tools::HttpProxy{.host = "proxy.invalid", .port = 1, .authorization = {}};
            return options;
        }());
        CHECK(summary(world.send(post(80, "{}"))) == "unsent not_sent_proxy");
    }
    SECTION("silent") {
        ProxyWorld w({.silent = true});
        const auto result = w.world.send(secure(w.stub.port()), Deadline::after(300ms));
        CHECK(summary(result) == "unsent not_sent_deadline");
        CHECK(w.proxy->heads().size() == 1);
        CHECK(w.stub.bytes() == 0);
        // A request handed over in the absolute form and not answered may have been passed on.
        CHECK(summary(w.world.send(post(80, "{}"), Deadline::after(300ms))) == "sent timeout");
    }
    SECTION("no HTTP") {
        ProxyWorld w({.connect_answer = "SSH-2.0-OpenSSH\r\n"});
        CHECK(summary(w.world.send(secure(w.stub.port()))) == "unsent not_sent_proxy");
    }
    SECTION("a tunnel that leads nowhere") {
        ProxyWorld w({.target_port = 1});
        CHECK(summary(w.world.send(secure(w.stub.port()))) == "unsent not_sent_tls");
    }
    SECTION("a tunnel to somebody else") {
        ProxyWorld w;
        auto request = secure(w.stub.port());
        request.origin.host = "other.example";
        const auto result = w.world.send(request);
        CHECK(summary(result) == "unsent not_sent_tls");
        CHECK_THAT(message(result), ContainsSubstring("hostname mismatch"));
        CHECK(w.stub.requests().empty());
    }
}

TEST_CASE("no secret of a proxy in any message") {
    ProxyWorld w({.connect_answer = "HTTP/1.1 407 No\r\n\r\n"}, "Basic c2VjcmV0");
    for (const bool tls : {true, false}) {
        auto request = secure(w.stub.port());
        request.origin.tls = tls;
        CHECK(message(w.world.send(request)).find("c2VjcmV0") == std::string::npos);
    }
}

TEST_CASE("private addresses behind a proxy: an address is refused, a proxy may have one") {
    ProxyWorld w;
    auto options = through(w.proxy->port());
    options.allow_private_hosts = false;
    w.world.client = std::make_unique<tools::HttpClient>(
        w.world.context.get_executor(), options, w.world.failpoints
    );
    CHECK(summary(w.world.send(secure(w.stub.port()))) == "200 {}");
    for (const auto* host : {"10.0.0.1", "::1", "::ffff:127.0.0.1"}) {
        auto request = secure(w.stub.port());
        request.origin.host = host;
        CHECK(summary(w.world.send(request)) == "unsent not_sent_private_host");
    }
    CHECK(w.proxy->heads().size() == 1);
}
