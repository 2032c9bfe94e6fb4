// OAuth2 client credentials over real sockets and TLS: one token for many, refreshed when it is
// refused, and nothing sent without one.
#include <boost/asio/co_spawn.hpp>
#include <set>
#include <string>

#include "tests/http/certificates.hpp"
#include "tests/http/tools_world.hpp"
#include "tests/support/catch.hpp"

using namespace tests;
using outbox::Deadline;

namespace {

const Certificates& certificates() {
    static Certificates made;
    static bool issued = [] {
        made.issue("auth", "DNS:localhost,IP:127.0.0.1", 2);
        return true;
    }();
    static_cast<void>(issued);
    return made;
}

constexpr const char* kSecret = "cl1ent-s3cret";

// A provider: an endpoint for tokens and an API that takes the last one only.
struct Provider {
    int tokens = 0;
    int withdrawn = 0;  // tokens up to this number are refused
    int effects = 0;
    bool refuses_clients = false;
    bool repeats_token = false;

    std::string answer_token(const std::string& request) {
        if (refuses_clients) {
            return "HTTP/1.1 401 No\r\nContent-Length: 26\r\n\r\n{\"error\":\"invalid_client\"}";
        }
        CHECK_THAT(request, ContainsSubstring("grant_type=client_credentials&scope=tickets"));
        CHECK_THAT(request, ContainsSubstring("client_secret=cl1ent-s3cret"));
        ++tokens;
        return ok(
            R"({"access_token": "t0ken-)" + std::to_string(tokens) +
            R"(", "token_type": "Bearer", "expires_in": 3600})"
        );
    }
    std::string answer_api(const std::string& request) {
        const auto at = request.find("Bearer t0ken-");
        const int number = at == std::string::npos ? 0 : std::stoi(request.substr(at + 13, 6));
        if (number <= withdrawn) {
            const std::string body =
                repeats_token ? R"({"detail": "t0ken-)" + std::to_string(number) + R"( is bad"})"
                              : "{}";
            return "HTTP/1.1 401 No\r\nContent-Type: application/json\r\nContent-Length: " +
                   std::to_string(body.size()) + "\r\n\r\n" + body;
        }
        if (request.rfind("POST ", 0) == 0) ++effects;
        return ok(R"({"id": 1})");
    }
};
Provider provider;

asio::awaitable<void> token_endpoint(StubConnection& connection) {
    while (true) {
        auto reading = connection.read_request();
        const auto request = co_await std::move(reading);
        if (request.empty()) co_return;
        auto sleeping = connection.sleep(30ms);
        co_await std::move(sleeping);
        auto sending = connection.send(provider.answer_token(request));
        co_await std::move(sending);
    }
}

asio::awaitable<void> api(StubConnection& connection) {
    while (true) {
        auto reading = connection.read_request();
        const auto request = co_await std::move(reading);
        if (request.empty()) co_return;
        auto sending = connection.send(provider.answer_api(request));
        co_await std::move(sending);
    }
}

struct OAuthWorld : ToolWorld {
    StubHttpServer auth{
        io.get_executor(),
        token_endpoint,
        {.certificate_file = certificates().certificate("auth"),
         .key_file = certificates().key("auth")}
    };
    StubHttpServer desk{io.get_executor(), api};

    explicit OAuthWorld(int token_port = 0) {
        provider = {};
        const auto port = std::to_string(token_port > 0 ? token_port : auth.port());
        const auto url = "http://127.0.0.1:" + std::to_string(desk.port()) + "/tickets";
        build(
            "  ticket:\n    execute: { type: http, method: POST, url: '" + url +
                "', credential: graph, json: { k: '{{ operation.key }}' } }\n"
                "    reconcile: { type: http, url: '" +
                url +
                "', credential: graph, verdicts: [ { when: { status: 200, body: { /id: 1 } }, "
                "then: found } ] }\n",
            "defaults: { http: { ca_file: '" + certificates().authority() +
                "' } }\ncredentials: { graph: { kind: oauth2_client_credentials, token_url: "
                "'https://localhost:" +
                port + "/token', client_id: outboxd, client_secret: " + std::string(kSecret) +
                ", client_auth: post, scope: tickets } }"
        );
    }
    // So many attempts at once; how many ended how.
    std::multiset<std::string> execute_many(int count) {
        std::multiset<std::string> ends;
        for (int i = 0; i < count; ++i) {
            asio::co_spawn(
                io,
                tools->find("ticket")->tool->execute(test::call_with("{}"), Deadline::after(30s)),
                [&](const std::exception_ptr& error, const outbox::Outcome& outcome) {
                    ends.insert(error ? "exception" : std::string(outcome_name(outcome)));
                }
            );
        }
        test::run_until(io, [&] { return ends.size() == static_cast<std::size_t>(count); }, 60s);
        return ends;
    }
};

}  // namespace

TEST_CASE("fifty attempts at once fetch one token") {
    OAuthWorld world;
    CHECK(world.execute_many(50).count("succeeded") == 50);
    CHECK(provider.tokens == 1);
    CHECK(provider.effects == 50);
    CHECK(world.auth.connections() == 1);
    // The probe speaks with the same one.
    test::get<outbox::Found>(world.probe("ticket"));
    CHECK(provider.tokens == 1);
}

TEST_CASE("a token that is withdrawn under fifty attempts: one more token, every effect once") {
    OAuthWorld world;
    (void)world.execute("ticket");
    provider.withdrawn = 1;
    CHECK(world.execute_many(50).count("succeeded") == 50);
    CHECK(provider.tokens == 2);
    CHECK(provider.effects == 51);
    CHECK(world.observer.credential_errors.empty());
}

TEST_CASE("a fresh token that is refused: later, counted, and its text is in no report") {
    OAuthWorld world;
    provider.withdrawn = 1'000;
    provider.repeats_token = true;
    const auto later = test::get<outbox::RetryLater>(world.execute("ticket"));
    CHECK_FALSE(later.counts);
    CHECK(later.error.code == "status_401");
    CHECK(later.error.message == "*** is bad");
    CHECK(provider.effects == 0);
    CHECK(world.observer.credential_errors["graph"] == 1);
    test::get<outbox::Inconclusive>(world.probe("ticket"));
}

TEST_CASE("no token to be had: not a byte goes to the API") {
    const auto check = [](OAuthWorld& world, const char* why) {
        const auto later = test::get<outbox::RetryLater>(world.execute("ticket"));
        CHECK_FALSE(later.counts);
        CHECK(later.error.code == "not_sent_credential");
        CHECK_THAT(later.error.message, ContainsSubstring(why));
        CHECK(later.error.message.find(kSecret) == std::string::npos);
        CHECK(world.desk.connections() == 0);
        CHECK(world.observer.credential_errors["graph"] == 1);
        test::get<outbox::Inconclusive>(world.probe("ticket"));
        CHECK(world.desk.connections() == 0);
        for (const auto& line : world.log.lines) CHECK(line.find(kSecret) == std::string::npos);
    };
    SECTION("refused") {
        OAuthWorld world;
        provider.refuses_clients = true;
        check(world, "status 401, invalid_client");
    }
    SECTION("nobody there") {
        OAuthWorld world(1);
        check(world, "Connection refused");
    }
    SECTION("no TLS there") {
        OAuthWorld other;
        OAuthWorld world(other.desk.port());
        check(world, "TLS");
    }
}

TEST_CASE("a client certificate beside a token, from the files that the configuration names") {
    const auto& certs = certificates();
    ToolWorld world;
    StubHttpServer desk(
        world.io.get_executor(),
        answer_ok,
        {.certificate_file = certs.certificate("auth"),
         .key_file = certs.key("auth"),
         .client_authority = certs.authority()}
    );
    const auto url = "https://localhost:" + std::to_string(desk.port()) + "/";
    const auto tool = [&](const std::string& name, const std::string& credentials) {
        return "  " + name + ":\n    effect: read\n    execute: { type: http, method: GET, url: '" +
               url + "'" + credentials + " }\n";
    };
    world.build(
        tool("both", ", credential: desk, mtls: cert") + tool("alone", ", credential: cert") +
            tool("without", ", credential: desk"),
        "defaults: { http: { ca_file: '" + certs.authority() +
            "' } }\ncredentials: { desk: { kind: bearer, token: t0ken }, cert: { kind: mtls, "
            "cert_file: '" +
            certs.certificate("auth") + "', key_file: '" + certs.key("auth") + "' } }"
    );
    test::get<outbox::Succeeded>(world.execute("both"));
    test::get<outbox::Succeeded>(world.execute("alone"));
    CHECK_THAT(desk.requests().at(0), ContainsSubstring("Authorization: Bearer t0ken"));
    CHECK(desk.requests().at(1).find("Authorization") == std::string::npos);
    // Another client, which has none: the connections of the others are not its own.
    const auto refused = world.execute("without");
    CHECK_FALSE(std::holds_alternative<outbox::Succeeded>(refused));
    CHECK(desk.requests().size() == 2);
}
