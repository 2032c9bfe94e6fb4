// Ordered rules, and the defaults behind them, row by row.
#include "tests/unit/tools/tool_fixture.hpp"

using namespace test;
using outbox::Accepted;
using outbox::Attention;
using outbox::Cause;
using outbox::Rejected;
using outbox::RetryLater;
using outbox::Succeeded;
using outbox::Unknown;

namespace {

std::string tool(const std::string& outcomes) {
    return "    execute: { type: http, method: POST, url: 'https://h.example/t', "
           "headers: { K: '{{ operation.key }}' }" +
           (outcomes.empty() ? "" : ", outcomes: " + outcomes) +
           " }\n    reconcile: { type: manual, reason: a test }\n";
}

outbox::Outcome judged(
    const std::string& outcomes,
    int status,
    const std::string& body = {},
    const std::string& header = {},
    const std::string& value = {}
) {
    HttpToolFixture fixture(tool(outcomes));
    fixture.sender->answer(status, body, header, value);
    return fixture.perform();
}

const std::string kRules =
    "[ { when: { status: 201 }, then: succeeded, result: { id: /id, url: 'header:Location' } },"
    "  { when: { status: 202 }, then: accepted, result: /job },"
    "  { when: { status: 409, body: { /code: in_progress } }, then: unknown },"
    "  { when: { status: 409 }, then: attention, code: key_reused, message: /why },"
    "  { when: { status: 404 }, then: rejected, proves_absence: true },"
    "  { when: { status: 503 }, then: retry, retry_after: 2s },"
    "  { when: { status: 429 }, then: retry, retry_after: 'header:X-Reset' },"
    "  { when: { status: [400, 422] }, then: rejected, code: /code, message: /message } ]";

}  // namespace

TEST_CASE("defaults: 2xx") {
    const auto plain = judged("", 200, R"({"id": "T-1"})");
    CHECK(outbox::to_text(get<Succeeded>(plain).result) == R"({"id":"T-1"})");
    CHECK(get<Succeeded>(judged("", 204)).result.is_null());
    CHECK(outbox::to_text(get<Succeeded>(judged("", 200, "ok")).result) == R"({"text":"ok"})");
    // An answer nobody described proves nothing.
    const auto undescribed = judged(kRules, 200, "{}");
    CHECK(get<Unknown>(undescribed).cause == Cause::status);
    CHECK(get<Unknown>(judged("[]", 200, "{}")).cause == Cause::status);
}

TEST_CASE("defaults: everything else") {
    for (const int status : {301, 302, 307, 308, 400, 403, 404, 410, 422}) {
        INFO(status);
        const auto outcome = judged("", status);
        CHECK(get<Rejected>(outcome).error.code == "status_" + std::to_string(status));
        CHECK_FALSE(get<Rejected>(outcome).proves_absence);
    }
    for (const int status : {408, 409, 425, 500, 502, 503, 504, 100, 999}) {
        INFO(status);
        CHECK(get<Unknown>(judged("", status)).cause == Cause::status);
    }
    const auto unauthorized = judged("", 401);
    CHECK_FALSE(get<RetryLater>(unauthorized).counts);
    const auto limited = judged("", 429, "", "Retry-After", "7");
    CHECK_FALSE(get<RetryLater>(limited).counts);
    CHECK(get<RetryLater>(limited).after == 7s);
    CHECK(get<RetryLater>(limited).error.code == "status_429");
}

TEST_CASE("defaults: failures") {
    HttpToolFixture fixture(tool(kRules));
    fixture.sender->fail(false, Cause::other, "not_sent_connect");
    const auto unsent = fixture.perform();
    CHECK_FALSE(get<RetryLater>(unsent).counts);
    CHECK(get<RetryLater>(unsent).error.code == "not_sent_connect");
    for (const auto cause : {Cause::timeout, Cause::reset, Cause::unreadable}) {
        fixture.sender->fail(true, cause, "code");
        CHECK(get<Unknown>(fixture.perform()).cause == cause);
    }
}

TEST_CASE("messages come from where APIs usually put them") {
    const auto message = [](const std::string& body) {
        return get<Rejected>(judged("", 422, body)).error.message;
    };
    CHECK(message(R"({"detail": "a", "title": "b"})") == "a");
    CHECK(message(R"({"title": "b", "message": "c"})") == "b");
    CHECK(message(R"({"error": {"message": "c"}, "message": "d"})") == "c");
    CHECK(message(R"({"message": "d"})") == "d");
    CHECK(message(R"({"errors": [{"message": "e"}]})") == "e");
    CHECK(message(R"({"message": {"x": 1}})") == "the other side answered with status 422");
    CHECK(message("<html>") == "the other side answered with status 422");
    CHECK(message(R"({"message": "a\r\nb\u0000"})") == "a  b");
    CHECK(message("{\"message\": \"" + std::string(5'000, 'x') + "\"}").size() == 1'000);
}

TEST_CASE("the first rule that matches wins") {
    const auto created = judged(kRules, 201, R"({"id": 9007199254740993})", "location", "/t/1");
    CHECK(
        outbox::to_text(get<Succeeded>(created).result) == R"({"id":9007199254740993,"url":"/t/1"})"
    );
    CHECK(get<Succeeded>(created).note.empty());
    CHECK(outbox::to_text(get<Accepted>(judged(kRules, 202, R"({"job": [1]})")).result) == "[1]");
    CHECK(get<Unknown>(judged(kRules, 409, R"({"code": "in_progress"})")).cause == Cause::status);
    const auto reused = judged(kRules, 409, R"({"code": "x", "why": "other content"})");
    CHECK(get<Attention>(reused).error.code == "key_reused");
    CHECK(get<Attention>(reused).error.message == "other content");
    CHECK(get<Rejected>(judged(kRules, 404)).proves_absence);
    const auto busy = judged(kRules, 503);
    CHECK(get<RetryLater>(busy).counts);
    CHECK(get<RetryLater>(busy).after == 2s);
    const auto limited = judged(kRules, 429, "", "X-Reset", "3");
    CHECK(get<RetryLater>(limited).after == 3s);
    CHECK_FALSE(get<RetryLater>(limited).counts);
    const auto refused =
        judged(kRules, 422, R"({"code": "no_title", "message": "title is empty"})");
    CHECK(get<Rejected>(refused).error.code == "no_title");
    CHECK(get<Rejected>(refused).error.message == "title is empty");
    CHECK(get<Rejected>(judged(kRules, 422, "{}")).error.code == "status_422");
    CHECK(get<Rejected>(judged(kRules, 403)).error.code == "status_403");
}

TEST_CASE("a rule that matched holds even if its result cannot be extracted") {
    const auto html = judged(kRules, 201, "<html>");
    CHECK(get<Succeeded>(html).result.is_null());
    CHECK_THAT(get<Succeeded>(html).note, ContainsSubstring("could not be extracted"));
    const auto part = judged(kRules, 201, R"({"id": "T-1"})");
    CHECK(outbox::to_text(get<Succeeded>(part).result) == R"({"id":"T-1","url":null})");
    CHECK_THAT(get<Succeeded>(part).note, ContainsSubstring("header:Location"));
    CHECK(get<Succeeded>(judged(kRules, 201)).result.is_null());
    // Broken UTF-8 and lone surrogates do not hide a success.
    const auto odd = judged(kRules, 201, "{\"id\": \"\\ud800\xff\"}", "Location", "\xff");
    CHECK(get<Succeeded>(odd).note.empty());
    HttpToolFixture fixture(tool(kRules));
    fixture.sender->truncated(201, R"({"id": "T-)");
    const auto cut = fixture.perform();
    CHECK(get<Succeeded>(cut).result.is_null());
}

TEST_CASE("a rule that needs a body nobody could read makes it unknown") {
    CHECK(get<Unknown>(judged(kRules, 409, "<html>")).cause == Cause::unreadable);
    HttpToolFixture fixture(tool(kRules));
    fixture.sender->truncated(409, R"({"code": "in_pro)");
    CHECK(get<Unknown>(fixture.perform()).cause == Cause::unreadable);
    // … but only where the rest of it holds.
    CHECK(get<Rejected>(judged(kRules, 422, "<html>")).error.code == "status_422");
}

TEST_CASE("what cannot be rendered is rejected before anything is sent") {
    HttpToolFixture fixture(
        "    execute: { type: http, method: POST, url: 'https://h.example/t', json: { a: '{{ "
        "arguments.a }}' } }\n"
        "    reconcile: { type: manual, reason: a test }\n"
    );
    const auto missing = fixture.perform();
    CHECK(get<Rejected>(missing).error.code == "missing_argument");
    CHECK_THAT(get<Rejected>(missing).error.message, ContainsSubstring("arguments.a"));
    CHECK(fixture.sender->requests.empty());
    // A condition compares with arguments too: its value is needed before the request goes out.
    HttpToolFixture compared(
        tool("[ { when: { body: { /t: '{{ arguments.t }}' } }, then: succeeded } ]")
    );
    CHECK(get<Rejected>(compared.perform()).error.code == "missing_argument");
    CHECK(compared.sender->requests.empty());
}
