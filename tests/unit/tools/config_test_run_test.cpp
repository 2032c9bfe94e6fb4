// tests: of a configuration, run without the other side; and what render shows.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "config/load.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/tools/tool_fixture.hpp"
#include "tools/config_test_run.hpp"
#include "tools/rehearsal.hpp"

namespace {

using test::configuration;

// Everything a tool can be: http with a listing, a single resource, a command, log, manual, read.
constexpr auto kTools = R"yaml(
  ticket:
    arguments: { type: object, required: [title], properties: { title: { type: string } } }
    key: { prefix: t-, max_length: 40 }
    execute:
      type: http
      method: POST
      url: "https://desk.example.com/api/tickets?team={{ arguments.team | default('ops') }}"
      credential: desk
      headers: { Idempotency-Key: "{{ operation.key }}", X-Run: "{{ operation.run_id | optional }}" }
      json: { title: "{{ arguments.title }}", at: "{{ operation.created_at }}" }
      outcomes:
        - { when: { status: 201 }, then: succeeded, result: { id: /id } }
        - { when: { status: 202 }, then: accepted, result: { id: /id } }
        - { when: { status: 429 }, then: retry, retry_after: header }
        - { when: { status: 422 }, then: rejected, code: /code, message: /message }
    reconcile:
      type: http
      url: https://desk.example.com/api/tickets
      credential: desk
      query: { ref: "{{ operation.key }}" }
      items: /tickets
      match: { /ref: "{{ operation.key }}" }
      paginate: { from: "body:/next", to: "query:cursor", max_pages: 3 }
      result: { id: /id }
    compensate:
      close:
        type: http
        method: POST
        url: "https://desk.example.com/api/tickets/{{ original.result.id }}/close"
        headers: { Idempotency-Key: "{{ operation.key }}" }
        reconcile: { type: http, url: "https://desk.example.com/api/tickets/{{ original.result.id }}", verdicts: [{ when: { status: 404 }, then: found }] }
  label:
    execute: { type: command, argv: [/bin/label, "{{ arguments.to }}"], stdin: "{{ arguments.text | raw }}", env: { LANG: C }, exit_codes: { 0: succeeded, 65: rejected, default: unknown } }
    reconcile: { type: command, argv: [/bin/labelled, "{{ operation.key }}"], exit_codes: { 0: found, 1: absent, default: inconclusive } }
  search: { effect: read, execute: { type: http, method: GET, url: "https://desk.example.com/s" } }
  password: { effect: read, execute: { type: http, method: POST, url: "https://desk.example.com/p", json: { token: "{{ arguments.token }}", password: made-up-secret } } }
  note: { effect: read, execute: { type: log } }
  grant:
    execute:
      type: sql
      statement: "UPDATE account SET credit = credit + (:amount)::numeric, api_key = :api_key WHERE id = :account RETURNING id, credit"
      parameters: { amount: "{{ arguments.amount }}", account: "{{ arguments.account }}", api_key: "${env:OUTBOX_TEST_PASSWORD}" }
      outcomes: [ { when: { rows: 0 }, then: rejected, code: no_such_account }, { when: { rows: 1 }, then: succeeded, result: { id: /0/id, credit: /0/credit } } ]
  pay:
    execute: { type: sql, dsn: "host=billing", statement: "INSERT INTO payment VALUES (:ref, :note)",
               parameters : {ref : "{{ operation.key }}", note : "{{ arguments.note | optional }}"},
               outcomes : [ {when : {rows : 1}, then : succeeded} ]
}
    reconcile: { type: sql, dsn: "host=billing", statement: "SELECT amount FROM payment WHERE ref = :ref", parameters: { ref: "{{ operation.key }}" }, verdicts: [ { when: { rows: 1 }, then: found, result: { amount: /0/amount } }, { when: { rows: 0 }, then: absent } ] }
  charge:
    key: { window: 23h }
    execute: { type: http, method: POST, url: "https://pay.example.com/charges", headers: { Idempotency-Key: "{{ operation.key }}" }, outcomes: [ { when: { status: 201 }, then: succeeded, result: { id: /id } }, { when: { status: 404 }, then: rejected, proves_absence: true } ] }
    reconcile: { type: resend }
  fax: { execute: { type: command, argv: [/bin/fax] }, reconcile: { type: manual, reason: no log } }
)yaml";

constexpr auto kCredentials =
    R"(credentials: { desk: { kind: basic, username: bot, password: "${env:OUTBOX_TEST_PASSWORD}" } })";

struct Ran {
    std::vector<tools::TestResult> results;
    std::string text;  // of all failures: what, expected, got
};

Ran run_tests(const std::string& tests) {
    setenv("OUTBOX_TEST_PASSWORD", "hunter2hunter2", 1);
    const auto config = configuration(kTools, std::string(kCredentials) + "\ntests:\n" + tests);
    Ran ran{tools::run_config_tests(config), {}};
    for (const auto& result : ran.results) {
        for (const auto& failure : result.failures) {
            ran.text += result.name + ": " + failure.what + ": " + failure.expected + " | " +
                        failure.got + "\n";
        }
    }
    return ran;
}

}  // namespace

TEST_CASE("tests of a configuration: what holds passes, every kind of expectation") {
    const auto ran = run_tests(R"(
  a ticket:
    tool: ticket
    arguments: { title: "disk {{ full }}" }
    operation: { id: op-7, key: k-7, attempt: 3, created_at: "2026-02-03T04:05:06Z" }
    request:
      method: POST
      url: https://desk.example.com/api/tickets?team=ops
      headers: { idempotency-key: k-7, X-Run: null, Content-Type: application/json }
      json: { at: "2026-02-03T04:05:06Z", title: "disk {{ full }}" }
    answers:
      - { status: 201, body: { id: 12345678901234567890 }, then: succeeded, result: { id: 12345678901234567890 } }
      - { status: 202, body: { id: a }, then: accepted, result: { id: a } }
      - { status: 200, body: {}, then: unknown, code: status_200 }
      - { status: 422, body: { code: bad, message: No. }, then: rejected, code: bad, message: No. }
      - { status: 429, headers: { Retry-After: "30" }, then: retry, retry_after: 30s }
      - { status: 500, text: "<html>", then: unknown }
      - { fails: not_sent, then: retry, code: not_sent_connect }
      - { fails: timeout, then: unknown }
      - { fails: reset, then: unknown }
    reconcile:
      request: { url: "https://desk.example.com/api/tickets?ref=k-7" }
      answers:
        - { status: 200, body: { tickets: [{ ref: k-7, id: 1 }] }, then: found, result: { id: 1 } }
        - { status: 200, body: { tickets: [{ ref: k-7, id: 1 }, { ref: k-7, id: 2 }] }, then: conflict }
        - { status: 200, body: { tickets: [] }, then: absent }
        - { status: 404, then: inconclusive }
        - pages:
            - { status: 200, body: { tickets: [{ ref: other }], next: b } }
            - { status: 200, body: { tickets: [{ ref: k-7, id: 2 }] } }
          then: found
          result: { id: 2 }
        - { pages: [{ status: 200, body: { tickets: [{ ref: other }], next: b } }, { fails: timeout }], then: inconclusive }
  a missing title is refused:
    tool: ticket
    arguments: {}
    request: { refused: invalid_arguments }
  a compensation:
    tool: "ticket:close"
    original: { result: { id: 9 } }
    request: { url: https://desk.example.com/api/tickets/9/close }
    reconcile: { answers: [{ status: 404, then: found }] }
  a command:
    tool: label
    arguments: { to: Bonn, text: "line\n" }
    operation: { key: k }
    request: { argv: [/bin/label, Bonn], stdin: "line\n", env: { LANG: C, OUTBOX_KEY: k, HOME: null } }
    answers:
      - { exit_code: 0, body: { id: 1 }, then: succeeded, result: { id: 1 } }
      - { exit_code: 0, text: done, then: succeeded, result: { text: done } }
      - { exit_code: 65, stderr: "no such place\nmore", then: rejected, code: exit_65 }
      - { fails: killed, then: unknown }
      - { fails: timeout, then: unknown }
      - { fails: not_sent, then: retry }
    reconcile:
      request: { argv: [/bin/labelled, k] }
      answers: [{ exit_code: 1, then: absent }, { exit_code: 3, then: inconclusive }, { fails: timeout, then: inconclusive }]
  an option as an argument:
    tool: label
    arguments: { to: --rm, text: x }
    request: { refused: invalid_argument }
  a read tool has no unknown: { tool: search, answers: [{ status: 500, then: retry }, { fails: timeout, then: retry }] }
  a token among the arguments is data:
    tool: password
    arguments: { token: abcdefgh }
    request: { json: { token: abcdefgh, password: "***" } }
  nothing leaves the process: { tool: note, request: { refused: nothing_sent } }
)");
    CHECK(ran.text == "");
    REQUIRE(ran.results.size() == 8);
    CHECK(ran.results[0].checks >= 30);
    for (const auto& result : ran.results) CHECK(result.checks > 0);
}

TEST_CASE("tests of a configuration: what does not hold fails, every kind of expectation") {
    // One wrong expectation per test: each must fail, and once.
    const auto ran = run_tests(R"(
  method: { tool: ticket, arguments: { title: a }, request: { method: PUT } }
  url: { tool: ticket, arguments: { title: a }, request: { url: https://desk.example.com/api/tickets } }
  header value: { tool: ticket, arguments: { title: a }, request: { headers: { Accept: text/html } } }
  header missing: { tool: ticket, arguments: { title: a }, request: { headers: { X-Nothing: a } } }
  header too many: { tool: ticket, arguments: { title: a }, request: { headers: { Accept: null } } }
  json: { tool: ticket, arguments: { title: "1" }, request: { json: { title: 1, at: "2026-01-02T03:04:05Z" } } }
  form: { tool: ticket, arguments: { title: "1" }, request: { form: { title: 1 } } }
  text: { tool: ticket, arguments: { title: "1" }, request: { text: "" } }
  refused though it is sent: { tool: ticket, arguments: { title: "1" }, request: { refused: invalid_arguments } }
  sent though it is refused: { tool: ticket, arguments: {}, request: { method: POST } }
  refused otherwise: { tool: ticket, arguments: {}, request: { refused: missing_argument } }
  of a command: { tool: ticket, arguments: { title: a }, request: { argv: [a] } }
  argv: { tool: label, arguments: { to: a, text: b }, request: { argv: [/bin/label] } }
  stdin: { tool: label, arguments: { to: a, text: b }, request: { stdin: c } }
  env: { tool: label, arguments: { to: a, text: b }, request: { env: { LANG: D } } }
  env too many: { tool: label, arguments: { to: a, text: b }, request: { env: { LANG: null } } }
  of http: { tool: label, arguments: { to: a, text: b }, request: { url: a } }
  then: { tool: ticket, arguments: { title: a }, answers: [{ status: 201, then: rejected }] }
  result: { tool: ticket, arguments: { title: a }, answers: [{ status: 201, body: { id: 1 }, then: succeeded, result: { id: "1" } }] }
  no result: { tool: ticket, arguments: { title: a }, answers: [{ status: 500, then: unknown, result: {} }] }
  code: { tool: ticket, arguments: { title: a }, answers: [{ status: 500, then: unknown, code: status_501 }] }
  message: { tool: ticket, arguments: { title: a }, answers: [{ status: 422, body: { message: a }, then: rejected, message: b }] }
  retry_after: { tool: ticket, arguments: { title: a }, answers: [{ status: 429, headers: { Retry-After: "31" }, then: retry, retry_after: 30s }] }
  no retry_after: { tool: ticket, arguments: { title: a }, answers: [{ status: 429, then: retry, retry_after: 30s }] }
  exit code for http: { tool: ticket, arguments: { title: a }, answers: [{ exit_code: 0, then: succeeded }] }
  status for a command: { tool: label, arguments: { to: a, text: b }, answers: [{ status: 200, then: succeeded }] }
  verdict: { tool: ticket, arguments: { title: a }, reconcile: { answers: [{ status: 404, then: absent }] } }
  unread pages: { tool: ticket, arguments: { title: a }, reconcile: { answers: [{ pages: [{ status: 200, body: { tickets: [] } }, { status: 200 }], then: absent }] } }
  too few pages: { tool: ticket, arguments: { title: a }, reconcile: { answers: [{ status: 200, body: { tickets: [], next: b }, then: absent }] } }
  nobody is asked: { tool: fax, reconcile: { answers: [{ exit_code: 0, then: found }] } }
  no time: { tool: ticket, arguments: { title: a }, operation: { created_at: yesterday }, request: { method: POST } }
  wrong key: { tool: ticket, arguments: { title: a }, reconcile: { request: { url: "https://desk.example.com/api/tickets?ref=t-" } } }
)");
    CHECK(ran.results.size() == 32);
    for (const auto& result : ran.results) {
        INFO(result.name << "\n" << ran.text);
        CHECK(result.failures.size() == 1);
        for (const auto& failure : result.failures) {
            CHECK(failure.mark.line > 0);
            CHECK_FALSE(failure.expected == failure.got);
        }
    }
}

TEST_CASE("a secret that a test itself names is not shown when it fails") {
    setenv("OUTBOX_TEST_PASSWORD", "hunter2hunter2", 1);
    const auto file =
        (std::filesystem::temp_directory_path() / ("outbox-expected-" + std::to_string(::getpid())))
            .string();
    std::ofstream(file) << "hunter2hunter2\n";
    const auto secret = "\"x ${file:" + file + "}\"";
    const auto ran = run_tests(
        "  a: { tool: ticket, arguments: { title: a }, request: { url: " + secret +
        ", headers: { A: " + secret + ", X-Token: \"${env:OUTBOX_TEST_PASSWORD}\" }, json: { a: " +
        secret + " }, form: { a: " + secret + " }, text: " + secret +
        " }, answers: [{ status: 201, then: succeeded, result: [" + secret +
        "] }, { status: 422, then: rejected, code: " + secret + ", message: " + secret + " }] }\n" +
        "  b: { tool: label, arguments: { to: a, text: b }, request: { argv: [" + secret +
        "], stdin: " + secret + ", env: { LANG: " + secret + " } } }\n"
    );
    std::filesystem::remove(file);
    INFO(ran.text);
    REQUIRE(ran.results.size() == 2);
    CHECK(ran.results[0].failures.size() == 9);
    CHECK(ran.results[1].failures.size() == 3);
    CHECK(ran.text.find("hunter2") == std::string::npos);
}

TEST_CASE("requests as somebody are tried without asking for a token, signed by nobody's secret") {
    setenv("OUTBOX_TEST_PASSWORD", "hunter2hunter2", 1);
    setenv("OUTBOX_TEST_WHSEC", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", 1);
    const auto config = configuration(
        R"(
  token: { execute: { type: http, method: POST, url: https://a.example.com/, credential: oauth, json: { k: "{{ operation.key }}" } }, reconcile: { type: manual, reason: no } }
  signed: { execute: { type: http, method: POST, url: https://a.example.com/, credential: svix, json: { k: "{{ operation.key }}" } }, reconcile: { type: manual, reason: no } }
)",
        R"(
credentials:
  oauth: { kind: oauth2_client_credentials, token_url: https://auth.example.com/, client_id: a, client_secret: "${env:OUTBOX_TEST_PASSWORD}" }
  svix: { kind: standard_webhooks, secret: "${env:OUTBOX_TEST_WHSEC}" }
tests:
  a token:
    tool: token
    request: { headers: { Authorization: "Bearer ***" } }
    answers: [{ status: 401, then: retry }, { status: 200, then: succeeded }, { fails: not_sent, then: retry }]
  a signature:
    tool: signed
    operation: { id: op-7 }
    request: { headers: { webhook-id: op-7, webhook-signature: "v1,***", Authorization: null } }
    answers: [{ status: 200, then: succeeded }]
)"
    );
    const auto results = tools::run_config_tests(config);
    REQUIRE(results.size() == 2);
    for (const auto& result : results) {
        for (const auto& failure : result.failures) FAIL_CHECK(failure.what << ": " << failure.got);
        CHECK(result.checks >= 3);
    }
}

TEST_CASE("no secret is in what render and failing tests show") {
    setenv("OUTBOX_TEST_PASSWORD", "hunter2hunter2", 1);
    const auto file =
        (std::filesystem::temp_directory_path() / ("outbox-secret-" + std::to_string(::getpid())))
            .string();
    std::ofstream(file) << "https://hooks.example.com/T0/hunter2hunter2\n";
    const auto password = file + ".word";
    std::ofstream(password) << "hunter2hunter2\n";
    const auto config = configuration(
        "  http:\n"
        "    execute:\n"
        "      type: http\n"
        "      method: POST\n"
        "      url: \"https://a.example.com/${file:" +
            password +
            "}/x\"\n"
            "      credential: CREDENTIAL\n"
            "      headers: { X-A: \"Token ${file:" +
            password +
            "} {{ operation.key }}\", X-Api-Key: hunter2hunter2, "
            "X-Token: \"${env:OUTBOX_TEST_PASSWORD}\", X-Plain: "
            "\"${env:OUTBOX_TEST_NOT_SET:-plain}\" }\n"
            "      query: { token: hunter2hunter2, b: \"${file:" +
            password +
            "}\" }\n"
            "      json: { password: hunter2hunter2, list: [\"${file:" +
            password +
            "}\"] }\n"
            "    reconcile: { type: http, url: \"${file:" +
            file +
            "}\", credential: asks, verdicts: [{ when: { status: 200 }, then: found }] }\n"
            "  command:\n"
            "    execute: { type: command, argv: [/bin/x, \"${file:" +
            password + "}\"], stdin: \"${file:" + password +
            "}\", "
            "env: { A: \"${file:" +
            password +
            "}\", TOKEN: \"${env:OUTBOX_TEST_PASSWORD}\" } }\n"
            "    reconcile: { type: manual, reason: no }\n",
        "credentials:\n"
        "  CREDENTIAL: { kind: basic, username: bot, password: \"${env:OUTBOX_TEST_PASSWORD}\" "
        "}\n"
        "  asks: { kind: query, name: key, value: \"${env:OUTBOX_TEST_PASSWORD}\" }\n"
    );
    for (const auto* name : {"http", "command"}) {
        std::string why;
        auto stage = tools::Rehearsal::of(config, name, why);
        INFO(why);
        REQUIRE(stage);
        auto call = test::call_with("{}");
        const auto sent = stage->request(call);
        REQUIRE(sent.ok());
        const auto shown = to_text(sent.value()) + outbox::to_text(to_json(sent.value()));
        INFO(shown);
        CHECK(shown.find("hunter2") == std::string::npos);
        CHECK(shown.find("aHVudGVyMmh1bnRlcjI") == std::string::npos);
        CHECK(shown.find("***") != std::string::npos);
        if (std::string(name) == "command") continue;
        CHECK(shown.find("X-Plain: plain") != std::string::npos);
        CHECK(shown.find("Token *** key-1") != std::string::npos);
        const auto asked = stage->lookup(call);
        REQUIRE(asked.ok());
        const auto text = to_text(asked.value());
        INFO(text);
        CHECK(text.find("hunter2") == std::string::npos);
        CHECK(text.find("hooks.example.com") != std::string::npos);
    }
    std::filesystem::remove(file);
    std::filesystem::remove(password);
}

TEST_CASE("tests of sql tools: the statement, its values by type, rows, affected and SQLSTATE") {
    const auto ran = run_tests(R"(
  grants:
    tool: grant
    arguments: { amount: 5, account: "a1" }
    request:
      statement: |
        UPDATE account SET credit = credit + (:amount)::numeric, api_key = :api_key
        WHERE id = :account RETURNING id, credit
      parameters: { amount: 5, account: a1 }
    answers:
      - { rows: [ { id: a1, credit: 12.5 } ], then: succeeded, result: { id: a1, credit: 12.5 } }
      - { rows: [], then: rejected, code: no_such_account }
      - { sqlstate: "23505", then: rejected, code: sql_23505 }
      - { sqlstate: "40001", then: retry }
      - { affected: 2, then: rejected, code: no_outcome }
      - { fails: not_sent, then: retry }
      - { fails: timeout, then: retry, code: sql_57014 }
      - { fails: reset, then: retry, code: commit_in_doubt }
  pays:
    tool: pay
    request: { parameters: { note: null } }
    answers:
      - { affected: 1, then: succeeded }
      - { fails: reset, then: unknown }
    reconcile:
      request: { statement: "SELECT amount FROM payment WHERE ref = :ref" }
      answers:
        - { rows: [ { amount: 3 } ], then: found, result: { amount: 3 } }
        - { rows: [], then: absent }
        - { rows: [ {}, {} ], then: inconclusive }
        - { sqlstate: "42P01", then: inconclusive }
  refused:
    tool: grant
    arguments: { amount: 5 }
    request: { refused: missing_argument }
)");
    CHECK(ran.text == "");
}

TEST_CASE("tests of sql tools that do not hold say what came instead") {
    const auto ran = run_tests(R"(
  wrong:
    tool: grant
    arguments: { amount: "5", account: a1 }
    request: { statement: "SELECT 1", parameters: { amount: 5, nobody: 1 } }
    answers:
      - { status: 200, then: succeeded }
      - { rows: [], then: succeeded }
)");
    CHECK_THAT(ran.text, ContainsSubstring("wrong: request.statement: SELECT 1 | UPDATE account"));
    CHECK_THAT(ran.text, ContainsSubstring("wrong: request.parameters.amount: 5 | \"5\""));
    CHECK_THAT(ran.text, ContainsSubstring("request.parameters.nobody: 1 | \"there is no such"));
    CHECK_THAT(ran.text, ContainsSubstring("the end of a statement: rows, affected, sqlstate"));
    CHECK_THAT(ran.text, ContainsSubstring("wrong: answers[1].then: succeeded | rejected"));
}

TEST_CASE("a resend is tested as what it is: the request again, its answer as a verdict") {
    const auto ran = run_tests(R"(
  charges:
    tool: charge
    request: { method: POST }
    reconcile:
      request: { method: POST, url: "https://pay.example.com/charges" }
      answers:
        - { status: 201, body: { id: 7 }, then: found, result: { id: 7 } }
        - { status: 409, then: pending }
        - { status: 429, then: pending }
        - { fails: not_sent, then: pending }
        - { status: 500, then: inconclusive }
        - { status: 422, then: inconclusive }
        - { status: 404, then: absent }
)");
    CHECK(ran.text == "");
}

TEST_CASE("render shows a statement with its values, and no secret") {
    setenv("OUTBOX_TEST_PASSWORD", "hunter2hunter2", 1);
    const auto config = configuration(kTools, kCredentials);
    std::string why;
    auto stage = tools::Rehearsal::of(config, "grant", why);
    REQUIRE(stage);
    auto call = test::call_with(R"({"amount": 5, "account": "a'; --\nDROP"})");
    const auto sent = stage->request(call);
    REQUIRE(sent.ok());
    const auto text = tools::to_text(sent.value());
    CHECK_THAT(text, ContainsSubstring("in one transaction with the record"));
    CHECK_THAT(text, ContainsSubstring("-- :amount = 5\n"));
    CHECK_THAT(text, ContainsSubstring("-- :account = \"a'; --\\nDROP\"\n"));
    CHECK(text.find("hunter2") == std::string::npos);
    const auto shown = tools::to_json(sent.value());
    CHECK(*shown.find("type")->as_string() == "sql");
    CHECK(*shown.find("parameters")->find("api_key")->as_string() == "***");
    CHECK(outbox::to_text(*shown.find("parameters")->find("amount")) == "5");
    CHECK_FALSE(stage->lookup(call).ok());  // there is nothing to ask
    auto elsewhere = tools::Rehearsal::of(config, "pay", why);
    CHECK(
        tools::to_text(elsewhere->lookup(call).value()).find("SELECT amount") != std::string::npos
    );
}
