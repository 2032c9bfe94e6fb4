// The request as it goes out, and look-ups by verdicts.
#include "tests/unit/tools/tool_fixture.hpp"

using namespace test;
using outbox::Absent;
using outbox::Conflict;
using outbox::Found;
using outbox::Inconclusive;
using outbox::Pending;

namespace {

const std::string kManual = "    reconcile: { type: manual, reason: a test }\n";

std::string header(const tools::HttpRequest& request, const std::string& name) {
    std::string all;
    for (const auto& [key, value] : request.headers) {
        if (key == name) all += (all.empty() ? "" : "|") + value;
    }
    return all;
}

std::string lookup(const std::string& members) {
    return "    execute: { type: http, method: POST, url: 'https://h.example/t', json: { k: '{{ "
           "operation.key }}' } }\n"
           "    reconcile: { type: http, url: 'https://h.example/t/{{ operation.key }}', " +
           members + " }\n";
}

const std::string kVerdicts =
    "verdicts: [ { when: { status: 404 }, then: absent },"
    " { when: { status: 200, body: { /state: processing } }, then: pending },"
    " { when: { status: 200, body: { /state: broken } }, then: conflict, result: /x },"
    " { when: { status: 200 }, then: found, result: { id: /id } } ], must_equal: { /title: '{{ "
    "arguments.title | optional }}' }";

}  // namespace

TEST_CASE("the exact request") {
    HttpToolFixture fixture(
        "    execute:\n      type: http\n      method: POST\n      url: "
        "'https://desk.example.com:8443/api/{{ arguments.team }}?v=2'\n"
        "      credential: desk\n      headers: { Idempotency-Key: '{{ operation.key }}', X-Opt: "
        "'{{ arguments.none | optional }}' }\n"
        "      query: { ref: '{{ operation.key }}', limit: 2, 'a b': [x, '{{ arguments.team }}'], "
        "gone: '{{ arguments.none | optional }}' }\n"
        "      json: { title: '{{ arguments.title }}', n: 20.0 }\n" +
            kManual,
        "credentials: { desk: { kind: bearer, token: s3cret } }"
    );
    fixture.sender->answer(200);
    (void)fixture.perform(R"({"title": "disk full", "team": "a/b"})");
    REQUIRE(fixture.sender->requests.size() == 1);
    const auto& request = fixture.sender->requests[0];
    CHECK(request.method == "POST");
    CHECK(request.origin == tools::Origin{true, "desk.example.com", 8443});
    CHECK(request.target == "/api/a%2Fb?v=2&ref=key-1&limit=2&a%20b=x&a%20b=a%2Fb");
    CHECK(request.body == R"({"title":"disk full","n":20.0})");
    CHECK(header(request, "Idempotency-Key") == "key-1");
    CHECK(header(request, "Authorization") == "Bearer s3cret");
    CHECK(header(request, "Content-Type") == "application/json");
    CHECK(header(request, "Accept") == "application/json");
    CHECK(header(request, "X-Opt").empty());
}

TEST_CASE("credentials of every kind") {
    const std::string credentials =
        "credentials:\n  a: { kind: basic, username: bot, password: 'p:w' }\n"
        "  b: { kind: header, name: X-Api-Key, value: v }\n  c: { kind: query, name: token, value: "
        "'a b&c' }\n";
    const auto sent = [&](const std::string& name) {
        HttpToolFixture fixture(
            "    execute: { type: http, method: GET, url: 'https://h.example/t', credential: " +
                name + ", headers: { Accept: text/plain } }\n" + kManual,
            credentials
        );
        fixture.sender->answer(200);
        (void)fixture.perform();
        return fixture.sender->requests.at(0);
    };
    CHECK(header(sent("a"), "Authorization") == "Basic Ym90OnA6dw==");
    CHECK(header(sent("b"), "X-Api-Key") == "v");
    CHECK(sent("c").target == "/t?token=a%20b%26c");
    CHECK(header(sent("c"), "Accept") == "text/plain");
    CHECK(header(sent("c"), "Content-Type").empty());
}

TEST_CASE("bodies have their content type") {
    const auto sent = [](const std::string& body) {
        HttpToolFixture fixture(
            "    execute: { type: http, method: POST, url: 'https://h.example/t', " + body +
            " }\n" + kManual
        );
        fixture.sender->answer(200);
        (void)fixture.perform(R"({"x": {"y": 1}})");
        return fixture.sender->requests.at(0);
    };
    const auto form = sent("form: { a: '{{ arguments.x }}' }");
    CHECK(form.body == "a%5By%5D=1");
    CHECK(header(form, "Content-Type") == "application/x-www-form-urlencoded");
    const auto text =
        sent("newline: crlf, headers: { content-type: text/calendar }, text: \"a\\nb\\r\\nc\"");
    CHECK(text.body == "a\r\nb\r\nc");
    CHECK(header(text, "content-type") == "text/calendar");
    CHECK(header(text, "Content-Type").empty());
    CHECK(sent("json: '{{ arguments.x }}'").body == R"({"y":1})");
    CHECK(sent("json: [1, '{{ arguments.x.y }}']").body == "[1,1]");
}

TEST_CASE("verdicts in order") {
    HttpToolFixture fixture(lookup(kVerdicts));
    fixture.sender->answer(404);
    get<Absent>(fixture.ask());
    fixture.sender->answer(200, R"({"state": "processing"})");
    get<Pending>(fixture.ask());
    fixture.sender->answer(200, R"({"state": "broken"})");
    get<Conflict>(fixture.ask());
    fixture.sender->answer(200, R"({"state": "open", "id": "T-1", "title": "a"})");
    const auto found = fixture.ask(R"({"title": "a"})");
    CHECK(outbox::to_text(get<Found>(found).result) == R"({"id":"T-1"})");
    CHECK(fixture.sender->requests.back().method == "GET");
    CHECK(fixture.sender->requests.back().target == "/t/key-1");
}

TEST_CASE("found but different is a conflict") {
    HttpToolFixture fixture(lookup(kVerdicts));
    fixture.sender->answer(200, R"({"id": "T-1", "title": "b"})");
    const auto conflict = fixture.ask(R"({"title": "a"})");
    CHECK_THAT(get<Conflict>(conflict).error.message, ContainsSubstring("/title"));
    // An optional argument that was not sent is not compared.
    fixture.sender->answer(200, R"({"id": "T-1", "title": "b"})");
    get<Found>(fixture.ask());
}

TEST_CASE("a probe that failed is inconclusive, never absent") {
    HttpToolFixture fixture(lookup(kVerdicts));
    for (const int status : {301, 400, 401, 403, 429, 500, 503}) {
        INFO(status);
        fixture.sender->answer(status, "{}");
        const auto verdict = fixture.ask();
        CHECK(get<Inconclusive>(verdict).error.code == "status_" + std::to_string(status));
    }
    fixture.sender->answer(200, "<html>");
    CHECK(get<Inconclusive>(fixture.ask()).error.code == "unreadable");
    fixture.sender->fail(false, outbox::Cause::other, "not_sent_dns");
    CHECK(get<Inconclusive>(fixture.ask()).error.code == "not_sent_dns");
    fixture.sender->fail(true, outbox::Cause::timeout, "timeout");
    CHECK(get<Inconclusive>(fixture.ask()).error.code == "timeout");

    // Not even where a rule would take any answer for absent.
    HttpToolFixture careless(
        lookup("verdicts: [ { when: { body: { /id: { exists: true } } }, then: found },"
               " { when: { body: { /id: { exists: false } } }, then: absent } ]")
    );
    careless.sender->answer(200, "{}");
    get<Absent>(careless.ask());
    for (const int status : {401, 500, 503}) {
        careless.sender->answer(status, "{}");
        get<Inconclusive>(careless.ask());
    }
    careless.sender->answer(200, "oops");
    get<Inconclusive>(careless.ask());
}

TEST_CASE("a look-up that cannot be rendered is inconclusive and asks nothing") {
    HttpToolFixture fixture(
        "    execute: { type: http, method: POST, url: 'https://h.example/t', json: { k: '{{ "
        "operation.key }}' } }\n"
        "    reconcile: { type: http, url: 'https://h.example/t/{{ arguments.id }}', verdicts: [ { "
        "when: { status: 404 }, then: absent } ] }\n"
    );
    CHECK(get<Inconclusive>(fixture.ask()).error.code == "missing_argument");
    CHECK(fixture.sender->requests.empty());
}
