#include "tools/toolset.hpp"

#include "tests/support/recorders.hpp"
#include "tests/unit/tools/tool_fixture.hpp"
#include "tools/compiled_tool.hpp"
#include "tools/tool_policy.hpp"

using namespace test;

namespace {

std::string checked(const std::string& tools, const std::string& rest = {}) {
    const auto config = configuration(tools, rest);
    config::Diagnostics diagnostics;
    tools::check_toolset(config, diagnostics);
    return all_of(diagnostics);
}

std::string ticket(const std::string& execute, const std::string& reconcile) {
    return "  ticket:\n    arguments: { type: object, properties: { title: {}, severity: {} } }\n"
           "    execute: { type: http, method: POST, url: 'https://h.example/t', " +
           execute +
           " }\n"
           "    reconcile: { type: http, url: 'https://h.example/t', " +
           reconcile + " }\n";
}

const std::string kGoodExecute =
    "headers: { Idempotency-Key: '{{ operation.key }}' }, json: { title: '{{ arguments.title }}', "
    "ref: '{{ operation.key }}' },"
    " outcomes: [ { when: { status: 201 }, then: succeeded, result: { id: /id } } ]";
const std::string kGoodReconcile =
    "query: { ref: '{{ operation.key }}' }, items: /tickets, match: { /ref: '{{ operation.key }}' "
    "}";

std::int64_t hash_of(const std::string& tools, const std::string& rest = {}) {
    return tools::request_hash(configuration(tools, rest).tools[0]);
}

}  // namespace

TEST_CASE("a good tool has nothing to say") {
    CHECK(checked(ticket(kGoodExecute, kGoodReconcile)).empty());
}

TEST_CASE("all mistakes of all tools at once") {
    const auto said = checked(
        ticket(
            "json: { a: '{{ argument.title }}', b: '{{ operation.key | uper }}' }",
            "items: tickets, match: { ref: 1 }"
        ) +
        "  other:\n    execute: { type: command, argv: [x, '{{ oops }}'], stdin: '{{ arguments.a "
        "}}' }\n"
        "    reconcile: { type: manual, reason: a test }\n"
    );
    for (const auto* part :
         {"unknown root argument",
          "unknown filter uper",
          "did you mean /tickets?",
          "did you mean /ref?",
          "unknown root oops",
          "does not say how it is escaped"}) {
        CHECK_THAT(said, ContainsSubstring(part));
    }
    const auto config = configuration(ticket("json: '{{ nope }}'", kGoodReconcile));
    config::Diagnostics diagnostics;
    tools::check_toolset(config, diagnostics);
    const auto marks = diagnostics.all();
    REQUIRE_FALSE(marks.empty());
    CHECK(marks[0].mark.line == 7);
    CHECK(marks[0].mark.column > 60);
    // Said once already, it is not said again.
    const auto count = marks.size();
    tools::check_toolset(config, diagnostics);
    std::size_t errors = 0;
    for (const auto& d : diagnostics.all()) errors += d.severity == config::Severity::error ? 1 : 0;
    CHECK(errors == 1);
    CHECK(diagnostics.all().size() >= count);
}

TEST_CASE("lints") {
    CHECK_THAT(
        checked(ticket("json: { title: '{{ arguments.title }}' }", kGoodReconcile)),
        ContainsSubstring("reconcile asks for nothing that execute sent")
    );
    CHECK_THAT(
        checked(ticket("json: { title: '{{ arguments.title }}' }", kGoodReconcile)),
        ContainsSubstring("no idempotency key is sent")
    );
    CHECK_THAT(
        checked(ticket(kGoodExecute, "items: /tickets, match: { /ref: 7 }")),
        ContainsSubstring("asks for nothing that execute sent")
    );
    CHECK_THAT(
        checked(ticket(
            "headers: { K: '{{ operation.key }}' }, json: { t: '{{ arguments.titel }}' }",
            kGoodReconcile
        )),
        ContainsSubstring("has no titel (did you mean title?")
    );
    CHECK_THAT(
        checked(ticket(
            "headers: { K: '{{ operation.key }}' }, outcomes: [ { when: { status: [503, 422] }, "
            "then: retry } ]",
            kGoodReconcile
        )),
        ContainsSubstring("a 5xx answer is mapped to retry")
    );
    CHECK_THAT(
        checked("  c:\n    execute: { type: command, argv: [sh, -c, 'echo {{ arguments.x }}'] }\n  "
                "  reconcile: { type: manual, reason: a test }\n"),
        ContainsSubstring("inside a shell script")
    );
    // A command finds the key in its environment.
    CHECK(checked("  c:\n    execute: { type: command, argv: [x] }\n"
                  "    reconcile: { type: http, url: 'https://h.example/{{ operation.key }}', "
                  "verdicts: [ { when: { status: 200 }, then: found } ] }\n")
              .empty());
}

TEST_CASE("a look-up that failed cannot be mapped to absent") {
    CHECK_THAT(
        checked(ticket(
            kGoodExecute,
            "query: { r: '{{ operation.key }}' }, verdicts: [ { when: { status: [404, 5xx] }, "
            "then: absent } ]"
        )),
        ContainsSubstring("cannot mean absent")
    );
    CHECK_THAT(
        checked(ticket(kGoodExecute, "items: /t, match: { /ref: '{{ operation.key | optional }}' }")
        ),
        ContainsSubstring("cannot be left out")
    );
}

TEST_CASE("policies") {
    const auto config = configuration(
        "  ticket:\n    description: Opens one.\n    arguments: { type: object, required: [title], "
        "properties: { title: { maxLength: 200 } } }\n"
        "    dedup: { fields: [title] }\n    concurrency: 16\n    rate: 20/s\n    timeout: 3s\n"
        "    key: { encoding: uuid, prefix: o-, window: forever }\n    retry: { max_attempts: 3 }\n"
        "    execute: { type: http, method: POST, url: 'https://h.example/t', headers: { K: '{{ "
        "operation.key }}' } }\n"
        "    reconcile: { type: http, url: 'https://h.example/{{ operation.key }}', verdicts: [ { "
        "when: { status: 404 }, then: absent } ],"
        " settle: 5s, confirmations: 2, after_absent: hold }\n"
        "    compensate:\n      close: { type: http, method: POST, url: 'https://h.example/{{ "
        "original.result.id }}/close', headers: { K: '{{ operation.key }} {{ original.id }}' },"
        " reconcile: { type: manual, reason: a test } }\n"
        "  note: { execute: { type: log } }\n"
    );
    config::Diagnostics diagnostics;
    boost::asio::io_context io;
    outbox::Failpoints failpoints;
    RecordingLog log;
    const auto toolset =
        tools::build_toolset(config, diagnostics, {io.get_executor(), failpoints, log});
    INFO(all_of(diagnostics));
    REQUIRE(toolset != nullptr);
    CHECK(toolset->all().size() == 3);
    const auto& policy = toolset->find("ticket")->policy;
    CHECK(policy.description == "Opens one.");
    CHECK(policy.effect == outbox::Effect::write);
    CHECK(policy.timeout == 3s);
    CHECK(policy.concurrency == 16);
    CHECK(policy.rate_per_second == 20.0);
    CHECK(policy.retry.max_attempts == 3);
    CHECK(policy.reconcile.settle == 5s);
    CHECK(policy.reconcile.confirmations == 2);
    CHECK(policy.reconcile.after_absent == outbox::AfterAbsent::hold);
    CHECK_FALSE(policy.reconcile.manual);
    CHECK(policy.key.encoding == outbox::KeySettings::Encoding::uuid);
    CHECK(policy.key.prefix == "o-");
    CHECK_FALSE(policy.key.window.has_value());
    CHECK(policy.dedup_fields == std::vector<std::string>{"title"});
    CHECK(policy.compensations == std::vector<std::string>{"close"});
    CHECK(
        policy.arguments_schema ==
        R"({"type":"object","required":["title"],"properties":{"title":{"maxLength":200}}})"
    );
    CHECK(policy.request_hash != 0);
    CHECK(policy.revision.size() == 16);
    const auto& close = toolset->find("ticket:close")->policy;
    CHECK(close.reconcile.manual);
    CHECK(close.request_hash != policy.request_hash);
    CHECK_FALSE(policy.compensation);
    CHECK(policy.needs_original.empty());
    CHECK(close.compensation);
    CHECK(close.needs_original == std::vector<std::string>{"result"});
    // Inherited: concurrency, rate, time-out, retry and key.
    CHECK(close.concurrency == 16);
    CHECK(close.rate_per_second == 20.0);
    CHECK(close.timeout == 3s);
    CHECK(close.retry.max_attempts == 3);
    CHECK(close.key.prefix == "o-");
    CHECK(close.compensations.empty());
    CHECK(close.dedup_fields.empty());
    CHECK(close.arguments_schema.empty());

    const auto* note = toolset->find("note");
    CHECK(note->policy.effect == outbox::Effect::read);
    auto outcome =
        run_coroutine(io, note->tool->execute(call_with("{}"), outbox::Deadline::after(1s)), 1s);
    CHECK(outbox::to_text(get<outbox::Succeeded>(outcome).result) == R"({"logged":true})");
    CHECK(log.says("operation_id=op-1"));
    auto verdict =
        run_coroutine(io, note->tool->probe(call_with("{}"), outbox::Deadline::after(1s)), 1s);
    get<outbox::Inconclusive>(verdict);
}

TEST_CASE("what a compensation needs of its original is what its templates name") {
    const auto needs = [](const std::string& execute, const std::string& verdict) {
        const auto config = configuration(
            "  ticket:\n    execute: { type: http, method: POST, url: 'https://h.example/t' }\n"
            "    reconcile: { type: manual, reason: a test }\n    compensate:\n"
            "      close: { type: http, method: POST, url: 'https://h.example/x', json: { a: '" +
            execute + "' }, reconcile: { type: http, url: 'https://h.example/" + verdict +
            "', verdicts: [ { when: { status: 404 }, then: absent } ] } }\n"
        );
        config::Diagnostics diagnostics;
        const auto compiled = tools::compile_tool(config.tools.at(1), config, diagnostics);
        INFO(all_of(diagnostics));
        REQUIRE(compiled);
        std::string text;
        for (const auto& part : compiled->policy.needs_original) text += part + " ";
        return text;
    };
    CHECK(needs("x", "{{ operation.key }}").empty());
    CHECK(needs("{{ original.id }}", "{{ original.id }}").empty());
    CHECK(needs("{{ original.result.id }}", "{{ operation.key }}") == "result ");
    CHECK(needs("{{ operation.key }}", "{{ original.result.links.self }}") == "result ");
    CHECK(needs("{{ original.arguments.title }}", "{{ operation.key }}") == "arguments ");
    CHECK(needs("{{ original.arguments }}", "{{ original.result.id }}") == "arguments result ");
}

TEST_CASE("nothing is built of a broken file") {
    const auto config = configuration(ticket("json: '{{ nope }}'", kGoodReconcile));
    config::Diagnostics diagnostics;
    boost::asio::io_context io;
    outbox::Failpoints failpoints;
    RecordingLog log;
    CHECK(
        tools::build_toolset(config, diagnostics, {io.get_executor(), failpoints, log}) == nullptr
    );
    CHECK(diagnostics.has_errors());
}

TEST_CASE("the request hash follows what is looked for, and nothing else") {
    const auto base = hash_of(ticket(kGoodExecute, kGoodReconcile));
    CHECK(hash_of(ticket(kGoodExecute, kGoodReconcile)) == base);
    // Body, limits and patience are free to change.
    CHECK(hash_of(ticket(kGoodExecute + ", query: { x: 1 }", kGoodReconcile)) == base);
    CHECK(hash_of(ticket(kGoodExecute, kGoodReconcile + ", settle: 30s, interval: 1m")) == base);
    // Target, credential, key and look-up are not.
    const std::string credentials =
        "credentials: { a: { kind: bearer, token: x }, b: { kind: bearer, token: y } }";
    const auto with_a =
        hash_of(ticket(kGoodExecute + ", credential: a", kGoodReconcile), credentials);
    CHECK(with_a != base);
    CHECK(hash_of(ticket(kGoodExecute + ", credential: b", kGoodReconcile), credentials) != with_a);
    CHECK(
        hash_of(
            ticket(kGoodExecute + ", credential: a", kGoodReconcile),
            "credentials: { a: { kind: bearer, token: rotated } }"
        ) == with_a
    );
    CHECK(
        hash_of(ticket(
            kGoodExecute, kGoodReconcile + ", must_equal: { /title: '{{ arguments.title }}' }"
        )) != base
    );
    CHECK(hash_of(ticket(kGoodExecute, kGoodReconcile) + "    key: { encoding: uuid }\n") != base);
}

TEST_CASE("the revision follows what a tool inherits too") {
    const auto of = [](const std::string& rest) {
        const auto config = configuration(ticket(kGoodExecute, kGoodReconcile), rest);
        return tools::revision_of(config.tools[0]);
    };
    const auto plain = of("");
    CHECK(of("") == plain);
    CHECK(of("log: { level: debug }\n") == plain);
    CHECK(of("defaults: { timeout: 7s }\n") != plain);
    CHECK(of("defaults: { retry: { max_attempts: 3 } }\n") != plain);
    CHECK(of("defaults: { reconcile: { settle: 11s } }\n") != plain);
}
