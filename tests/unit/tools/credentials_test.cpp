// Credentials beyond a fixed header: signatures, tokens, and what can be wrong with them.
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <set>

#include "tests/support/recorders.hpp"
#include "tests/unit/tools/tool_fixture.hpp"
#include "tools/authorized_sender.hpp"
#include "tools/encoding.hpp"
#include "tools/oauth_tokens.hpp"
#include "tools/toolset.hpp"
#include "tools/webhook_signature.hpp"

using namespace test;
using outbox::Deadline;

namespace {

const std::string kManual = "    reconcile: { type: manual, reason: a test }\n";

std::string header(const tools::HttpRequest& request, const std::string& name) {
    for (const auto& [key, value] : request.headers) {
        if (key == name) return value;
    }
    return {};
}

config::Credential graph() {
    config::Credential credential;
    credential.name = "graph";
    credential.kind = config::Credential::Kind::oauth2_client_credentials;
    credential.token_url.value = "https://auth.example:8443/oauth2/token?tenant=1";
    credential.user_or_name = "me & co";
    credential.secret.value = "s:cr&t";
    credential.scope = "read write";
    return credential;
}

tools::HttpResponse response(int status, std::string body) {
    tools::HttpResponse result;
    result.status = status;
    result.body = std::move(body);
    return result;
}

std::string no_token(const tools::HttpResult& result) {
    const auto read = tools::read_token(result);
    const auto* why = std::get_if<std::string>(&read);
    return why != nullptr ? *why : "a token";
}

tools::NewToken token(const std::string& body) {
    return std::get<tools::NewToken>(tools::read_token(response(200, body)));
}

// Answers after a while; says how many requests were under way at once.
class SlowSender final : public tools::HttpSender {
 public:
    explicit SlowSender(boost::asio::io_context& io) : io_(io) {}

    boost::asio::awaitable<tools::HttpResult> send(tools::HttpRequest request, Deadline) override {
        requests.push_back(std::move(request));
        most = std::max(most, ++running);
        boost::asio::steady_timer timer(io_, takes);
        co_await timer.async_wait(boost::asio::use_awaitable);
        --running;
        co_return answer(static_cast<int>(requests.size()));
    }

    std::function<tools::HttpResult(int)> answer;
    std::chrono::milliseconds takes{20};
    std::vector<tools::HttpRequest> requests;
    int running = 0;
    int most = 0;

 private:
    boost::asio::io_context& io_;
};

struct Tokens {
    boost::asio::io_context io{1};
    std::shared_ptr<SlowSender> sender = std::make_shared<SlowSender>(io);
    std::vector<std::string> fetched;
    int failed = 0;
    tools::OAuthTokens tokens{
        io.get_executor(),
        graph(),
        sender,
        {.fetched = [this](const std::string& t) { fetched.push_back(t); },
         .failed = [this] { ++failed; }}
    };

    // "cached t1", "fresh t1" or the code of an error.
    std::string get(Deadline deadline = Deadline::after(5s)) {
        return text(run_coroutine(io, tokens.get(deadline), 10s));
    }
    static std::string text(const tools::OAuthTokens::Got& got) {
        if (const auto* error = std::get_if<outbox::Error>(&got)) return error->code;
        const auto& found = std::get<tools::OAuthTokens::Token>(got);
        return (found.cached ? "cached " : "fresh ") + found.value;
    }
    // So many at once.
    std::multiset<std::string> get_many(int count, Deadline deadline = Deadline::after(5s)) {
        std::multiset<std::string> all;
        for (int i = 0; i < count; ++i) {
            boost::asio::co_spawn(
                io,
                tokens.get(deadline),
                [&](const std::exception_ptr& error, const tools::OAuthTokens::Got& got) {
                    all.insert(error ? "an exception" : text(got));
                }
            );
        }
        run_until(io, [&] { return all.size() == static_cast<std::size_t>(count); }, 20s);
        return all;
    }
};

tools::HttpResult numbered_token(int n) {
    return response(
        200,
        R"({"access_token": "token-)" + std::to_string(n) +
            R"(", "token_type": "bearer", "expires_in": 3600})"
    );
}

}  // namespace

TEST_CASE("base64 both ways") {
    for (const std::string bytes : {"", "f", "fo", "foo", "foob", "fooba", "foobar"}) {
        CHECK(tools::base64_decode(tools::base64(bytes)) == bytes);
    }
    CHECK(tools::base64_decode("Zm9vYg") == "foob");
    std::string all;
    for (int i = 0; i < 256; ++i) all += static_cast<char>(i);
    CHECK(tools::base64_decode(tools::base64(all)) == all);
    for (const auto* bad :
         {"Z", "Zm9v=", "Zm9vYg=", "Zm9vYg===", "Zm9 v", "Zm-v", "Zh==", "=", "Zm9vYh=="}) {
        CAPTURE(bad);
        CHECK_FALSE(tools::base64_decode(bad).has_value());
    }
}

TEST_CASE("the vectors of Standard Webhooks") {
    using tools::WebhookSignature;
    const auto sign = [](const char* secret, const char* id, long at, const char* body) {
        const auto signature = WebhookSignature::compile(secret);
        REQUIRE(signature.has_value());
        return signature->sign(id, std::chrono::sys_seconds{std::chrono::seconds{at}}, body);
    };
    // Published by others, not computed here: the specification's text has no example with its
    // secret, its reference libraries do (the message and secret that most of them and Svix's
    // documentation share, and test_sign of the one in Rust).
    CHECK(
        sign(
            "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
            "msg_p5jXN8AQM9LWM0D4loKWxJek",
            1614265330,
            R"({"test": 2432232314})"
        ) == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="
    );
    CHECK(
        sign(
            "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD",
            "msg_27UH4WbU6Z5A5EzD8u03UvzRbpk",
            1649367553,
            R"({"email":"test@example.com","username":"test_user"})"
        ) == "v1,tZ1I4/hDygAJgO5TYxiSd6Sd0kDW6hPenDe+bTa3Kkw="
    );
    for (const auto* bad :
         {"MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
          "whsec_",
          "whsec_short",
          "whsec_c2hvcnQ=",
          "whsec_not base64 at all, really not",
          "whsk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}) {
        CHECK_FALSE(WebhookSignature::compile(bad).has_value());
    }
}

TEST_CASE("a signed request: the operation's id, the time, and a signature of what is sent") {
    HttpToolFixture fixture(
        "    execute: { type: http, method: POST, url: 'https://h.example/t', credential: svix, "
        "json: { a: '{{ arguments.a }}' } }\n    reconcile: { type: http, url: "
        "'https://h.example/t', credential: svix, verdicts: [ { when: { status: 404 }, then: "
        "absent } ] }\n",
        "credentials: { svix: { kind: standard_webhooks, secret: "
        "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw } }"
    );
    fixture.sender->answer(200).answer(404);
    (void)fixture.perform(R"({"a": "ü.1"})");
    (void)fixture.ask();
    const auto signature =
        tools::WebhookSignature::compile("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw");
    for (const auto& request : fixture.sender->requests) {
        CHECK(header(request, "webhook-id") == "op-1");
        const auto stamp = std::stol(header(request, "webhook-timestamp"));
        const std::chrono::sys_seconds at{std::chrono::seconds{stamp}};
        CHECK(std::chrono::abs(std::chrono::system_clock::now() - at) < 60s);
        CHECK(header(request, "webhook-signature") == signature->sign("op-1", at, request.body));
    }
}

TEST_CASE("the request for a token") {
    auto credential = graph();
    SECTION("the secret in the header") {
        const auto request = tools::token_request(credential);
        CHECK(request.method == "POST");
        CHECK(request.origin == tools::Origin{true, "auth.example", 8443});
        CHECK(request.target == "/oauth2/token?tenant=1");
        // RFC 6749, 2.3.1: both are encoded before they are joined.
        CHECK(
            header(request, "Authorization") == "Basic " + tools::base64("me%20%26%20co:s%3Acr%26t")
        );
        CHECK(request.body == "grant_type=client_credentials&scope=read%20write");
        CHECK(header(request, "Content-Type") == "application/x-www-form-urlencoded");
    }
    SECTION("the secret in the body") {
        credential.secret_in_body = true;
        credential.scope = {};
        credential.audience = "https://api.example";
        const auto request = tools::token_request(credential);
        CHECK(header(request, "Authorization").empty());
        CHECK(
            request.body ==
            "grant_type=client_credentials&audience=https%3A%2F%2Fapi.example&client_id="
            "me%20%26%20co&client_secret=s%3Acr%26t"
        );
    }
    SECTION("addresses") {
        credential.token_url.value = "https://auth.example";
        CHECK(tools::token_request(credential).target == "/");
        credential.token_url.value = "https://auth.example?a=1";
        CHECK(tools::token_request(credential).target == "/?a=1");
    }
}

TEST_CASE("what a token endpoint may answer") {
    CHECK(token(R"({"access_token": "a", "expires_in": 3600})").expires_in == 1h);
    CHECK(token(R"({"access_token": "a", "expires_in": "90"})").expires_in == 90s);
    CHECK(token(R"({"access_token": "a"})").expires_in == 5min);
    CHECK(token(R"({"access_token": "a", "expires_in": 1e300})").expires_in == 24h);
    CHECK(token(R"({"access_token": "a", "expires_in": -5})").expires_in == 0s);
    CHECK(token(R"({"access_token": "a", "expires_in": "soon"})").expires_in == 0s);
    CHECK(token(R"({"access_token": "a.b-c", "token_type": "BEARER"})").value == "a.b-c");

    CHECK_THAT(no_token(response(200, "{}")), ContainsSubstring("no access_token"));
    CHECK_THAT(no_token(response(200, "<html>")), ContainsSubstring("no access_token"));
    CHECK_THAT(no_token(response(200, R"({"access_token": 7})")), ContainsSubstring("no access"));
    CHECK_THAT(
        no_token(response(200, R"({"access_token": "a\r\nX: 1"})")),
        ContainsSubstring("no header can carry")
    );
    CHECK_THAT(
        no_token(response(200, R"({"access_token": "a", "token_type": "mac"})")),
        ContainsSubstring("another type")
    );
    CHECK(
        no_token(response(400, R"({"error": "invalid_client", "error_description": "s:cr&t"})")) ==
        "it answered with status 400, invalid_client"
    );
    // Only a short word is repeated: anything else may hold the secret.
    CHECK(no_token(response(401, R"({"error": "s:cr&t"})")) == "it answered with status 401");
    CHECK(no_token(response(302, "")) == "it answered with status 302");
    CHECK(
        no_token(tools::HttpFailure{false, outbox::Cause::other, {"not_sent_dns", "no name"}}) ==
        "no name"
    );
}

TEST_CASE("a token is used until shortly before it expires") {
    CHECK(tools::used_for(1h) == 59min);
    CHECK(tools::used_for(100s) == 90s);
    CHECK(tools::used_for(0s) == 0s);
}

TEST_CASE("a token is fetched once, kept, and fetched again when it was refused") {
    Tokens world;
    world.sender->answer = numbered_token;
    CHECK(world.get() == "fresh token-1");
    CHECK(world.get() == "cached token-1");
    world.tokens.refused("token-0");  // somebody else's late answer
    CHECK(world.get() == "cached token-1");
    world.tokens.refused("token-1");
    CHECK(world.get() == "fresh token-2");
    CHECK(world.fetched == std::vector<std::string>{"token-1", "token-2"});
    CHECK(world.failed == 0);
}

TEST_CASE("two hundred at once make one request for a token") {
    Tokens world;
    world.sender->answer = numbered_token;
    const auto all = world.get_many(200);
    CHECK(all.count("fresh token-1") == 200);
    CHECK(world.sender->requests.size() == 1);
    // Withdrawn: each of them comes back with its 401, and again there is one request.
    for (int i = 0; i < 200; ++i) world.tokens.refused("token-1");
    CHECK(world.get_many(200).count("fresh token-2") == 200);
    CHECK(world.sender->requests.size() == 2);
    CHECK(world.sender->most == 1);
}

TEST_CASE("a token that may not be kept serves those who waited for it") {
    Tokens world;
    world.sender->answer = [](int) -> tools::HttpResult {
        return response(200, R"({"access_token": "once", "expires_in": 0})");
    };
    CHECK(world.get_many(20).count("fresh once") == 20);
    CHECK(world.sender->requests.size() == 1);
    CHECK(world.get() == "fresh once");
    CHECK(world.sender->requests.size() == 2);
}

TEST_CASE("a refusal is everybody's, remembered for a moment, and then asked again") {
    Tokens world;
    world.sender->answer = [](int) -> tools::HttpResult {
        return response(401, R"({"error": "invalid_client"})");
    };
    CHECK(world.get_many(50).count("not_sent_credential") == 50);
    CHECK(world.get() == "not_sent_credential");
    CHECK(world.sender->requests.size() == 1);
    CHECK(world.failed == 1);
    world.sender->answer = numbered_token;
    boost::asio::steady_timer(world.io, 1100ms).wait();
    CHECK(world.get() == "fresh token-2");
}

TEST_CASE("whoever waits for a token waits no longer than its own deadline") {
    Tokens world;
    world.sender->takes = 600ms;
    world.sender->answer = numbered_token;
    std::string first = "nothing", second = "nothing";
    const auto keep = [](std::string& into) {
        return [&into](const std::exception_ptr&, const tools::OAuthTokens::Got& got) {
            into = Tokens::text(got);
        };
    };
    boost::asio::co_spawn(world.io, world.tokens.get(Deadline::after(30s)), keep(first));
    boost::asio::co_spawn(world.io, world.tokens.get(Deadline::after(50ms)), keep(second));
    run_until(world.io, [&] { return second != "nothing"; }, 10s);
    CHECK(second == "not_sent_deadline");
    CHECK(first == "nothing");
    run_until(world.io, [&] { return first != "nothing"; }, 10s);
    CHECK(first == "fresh token-1");
    CHECK(world.sender->requests.size() == 1);
}

TEST_CASE("one who gives up while fetching leaves the fetching to the next") {
    Tokens world;
    world.sender->answer = [](int n) -> tools::HttpResult {
        if (n > 1) return numbered_token(n);
        return tools::HttpFailure{
            false, outbox::Cause::other, {"not_sent_cancelled", "this process stops"}
        };
    };
    const auto all = world.get_many(3);
    CHECK(all.count("not_sent_cancelled") == 1);
    CHECK(all.count("fresh token-2") == 2);
    CHECK(world.failed == 0);
}

TEST_CASE("without a token nothing is sent, and who refuses a credential is counted") {
    struct Refusals : CountingObserver {
        std::vector<std::string> names;
        void credential_error(std::string_view name) override { names.emplace_back(name); }
    } refusals;
    auto inner = std::make_shared<ScriptedSender>();
    boost::asio::io_context io{1};
    const auto send = [&](tools::HttpSender& sender) {
        return run_coroutine(io, sender.send({}, Deadline::after(5s)), 10s);
    };
    SECTION("a fixed one") {
        tools::AuthorizedSender sender(inner, "desk", nullptr, &refusals);
        inner->answer(200).answer(403).answer(401);
        for (int i = 0; i < 3; ++i) {
            const auto result = send(sender);
            CHECK_FALSE(std::get<tools::HttpResponse>(result).token_was_stale);
        }
        CHECK(refusals.names == std::vector<std::string>{"desk"});
    }
    SECTION("a client certificate that expired while the daemon ran") {
        tools::AuthorizedSender sender(inner, "desk", nullptr, &refusals, "cert");
        inner->fail(false, outbox::Cause::other, "not_sent_credential");
        (void)send(sender);
        inner->fail(false, outbox::Cause::other, "not_sent_connect");
        (void)send(sender);
        CHECK(refusals.names == std::vector<std::string>{"cert"});
    }
    SECTION("one that has to be fetched") {
        auto slow = std::make_shared<SlowSender>(io);
        slow->answer = numbered_token;
        const tools::OAuthTokens::Events none;
        auto tokens = std::make_shared<tools::OAuthTokens>(io.get_executor(), graph(), slow, none);
        tools::AuthorizedSender sender(inner, "graph", tokens, &refusals);
        inner->answer(200).answer(401).answer(401).answer(200);
        CHECK_FALSE(std::get<tools::HttpResponse>(send(sender)).token_was_stale);
        CHECK(std::get<tools::HttpResponse>(send(sender)).token_was_stale);
        CHECK(refusals.names.empty());
        // A fresh one, refused: that is an error, and no reason to try at once again.
        CHECK_FALSE(std::get<tools::HttpResponse>(send(sender)).token_was_stale);
        CHECK(refusals.names == std::vector<std::string>{"graph"});
        (void)send(sender);
        CHECK(header(inner->requests.at(0), "Authorization") == "Bearer token-1");
        CHECK(header(inner->requests.at(1), "Authorization") == "Bearer token-1");
        CHECK(header(inner->requests.at(2), "Authorization") == "Bearer token-2");
        CHECK(header(inner->requests.at(3), "Authorization") == "Bearer token-3");
    }
    SECTION("none to be had") {
        auto slow = std::make_shared<SlowSender>(io);
        slow->answer = [](int) -> tools::HttpResult { return response(500, ""); };
        const tools::OAuthTokens::Events none;
        auto tokens = std::make_shared<tools::OAuthTokens>(io.get_executor(), graph(), slow, none);
        tools::AuthorizedSender sender(inner, "graph", tokens, nullptr);
        const auto failure = std::get<tools::HttpFailure>(send(sender));
        CHECK_FALSE(failure.sent);
        CHECK(failure.error.code == "not_sent_credential");
        CHECK_THAT(failure.error.message, ContainsSubstring("graph from auth.example:8443"));
        CHECK(inner->requests.empty());
    }
}

TEST_CASE("after a stale token one request more, where the outcome says that nothing happened") {
    const auto tool = [](const std::string& outcomes) {
        return "    execute: { type: http, method: POST, url: 'https://h.example/t'" + outcomes +
               " }\n    reconcile: { type: http, url: 'https://h.example/t', verdicts: [ { when: { "
               "status: 404 }, then: absent } ] }\n";
    };
    const auto stale = [] {
        auto result = response(401, "");
        result.token_was_stale = true;
        return result;
    };
    SECTION("and it works") {
        HttpToolFixture fixture(tool(""));
        fixture.sender->answers.emplace_back(stale());
        fixture.sender->answer(200, R"({"id": 1})");
        get<outbox::Succeeded>(fixture.perform());
        CHECK(fixture.sender->requests.size() == 2);
    }
    SECTION("once, not for ever") {
        HttpToolFixture fixture(tool(""));
        fixture.sender->answers.emplace_back(stale());
        fixture.sender->answers.emplace_back(stale());
        const auto later = get<outbox::RetryLater>(fixture.perform());
        CHECK_FALSE(later.counts);
        CHECK(fixture.sender->requests.size() == 2);
    }
    SECTION("the second one's end is the end") {
        HttpToolFixture fixture(tool(""));
        fixture.sender->answers.emplace_back(stale());
        fixture.sender->fail(true, outbox::Cause::timeout, "timeout");
        get<outbox::Unknown>(fixture.perform());
    }
    SECTION("not where the file says that a 401 may hide an effect") {
        HttpToolFixture fixture(tool(", outcomes: [ { when: { status: 401 }, then: unknown } ]"));
        fixture.sender->answers.emplace_back(stale());
        get<outbox::Unknown>(fixture.perform());
        CHECK(fixture.sender->requests.size() == 1);
    }
    SECTION("a fresh token that is refused: later") {
        HttpToolFixture fixture(tool(""));
        fixture.sender->answer(401);
        get<outbox::RetryLater>(fixture.perform());
        CHECK(fixture.sender->requests.size() == 1);
    }
    SECTION("a look-up asks once more, too") {
        HttpToolFixture fixture(tool(""));
        fixture.sender->answers.emplace_back(stale());
        fixture.sender->answer(404);
        get<outbox::Absent>(fixture.ask());
        fixture.sender->answers.emplace_back(stale());
        fixture.sender->answers.emplace_back(stale());
        get<outbox::Inconclusive>(fixture.ask());
    }
}

TEST_CASE("execute and reconcile may speak as somebody else") {
    HttpToolFixture fixture(
        "    execute: { type: http, method: POST, url: 'https://h.example/t', credential: a }\n"
        "    reconcile: { type: http, url: 'https://h.example/t', credential: b, verdicts: [ { "
        "when: { status: 404 }, then: absent } ] }\n",
        "credentials: { a: { kind: bearer, token: aaa }, b: { kind: query, name: k, value: bbb } }"
    );
    fixture.sender->answer(200).answer(404);
    (void)fixture.perform();
    (void)fixture.ask();
    CHECK(header(fixture.sender->requests.at(0), "Authorization") == "Bearer aaa");
    CHECK(header(fixture.sender->requests.at(1), "Authorization").empty());
    CHECK(fixture.sender->requests.at(1).target == "/t?k=bbb");
}

TEST_CASE("mistakes about credentials") {
    const auto checked = [](const std::string& credentials, const std::string& request) {
        const auto config = configuration(
            "  t:\n    execute: { type: http, method: POST, url: 'https://h.example/t', " +
                request + " }\n" + kManual,
            "credentials: { " + credentials + " }"
        );
        config::Diagnostics diagnostics;
        tools::check_toolset(config, diagnostics);
        return all_of(diagnostics);
    };
    CHECK_THAT(
        checked("w: { kind: standard_webhooks, secret: whsec_abc }", "credential: w"),
        ContainsSubstring("error: the secret of w is no secret of Standard Webhooks")
    );
    CHECK_THAT(
        checked(
            "o: { kind: oauth2_client_credentials, token_url: 'ftp://a/t', client_id: a, "
            "client_secret: b }",
            "credential: o"
        ),
        ContainsSubstring("error: token_url of o is no http or https address")
    );
    CHECK_THAT(
        checked(
            "o: { kind: oauth2_client_credentials, token_url: 'http://a.example/t', client_id: a, "
            "client_secret: b }",
            "credential: o"
        ),
        ContainsSubstring("warning: token_url of o: the secret goes over plain http")
    );
    CHECK_THAT(
        checked(
            "o: { kind: oauth2_client_credentials, token_url: 'http://127.0.0.1/t', client_id: a, "
            "client_secret: b }",
            "credential: o, headers: { authorization: x }"
        ),
        ContainsSubstring("authorization is set twice") && !ContainsSubstring("plain http")
    );
    CHECK_THAT(
        checked(
            "w: { kind: standard_webhooks, secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw }",
            "credential: w, headers: { Webhook-Id: x }"
        ),
        ContainsSubstring("Webhook-Id is set twice")
    );
    const auto plain = configuration(
        "  t:\n    effect: read\n    execute: { type: http, method: POST, url: "
        "'http://h.example/t', "
        "mtls: c }\n",
        "credentials: { c: { kind: mtls, cert_file: /etc/hostname, key_file: /etc/hostname } }"
    );
    config::Diagnostics diagnostics;
    tools::check_toolset(plain, diagnostics);
    CHECK_THAT(
        all_of(diagnostics),
        ContainsSubstring("error: a client certificate is shown by TLS alone") &&
            ContainsSubstring("error: /etc/hostname: holds no certificate")
    );
    CHECK_THAT(
        checked("b: { kind: bearer, token: abc }", "mtls: b"),
        ContainsSubstring("mtls: b is no credential of kind mtls")
    );
}
