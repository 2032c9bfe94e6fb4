#include "tools/command_tool.hpp"

#include "tests/unit/tools/tool_fixture.hpp"

using namespace test;
using outbox::Cause;

namespace {

// One command tool; real processes, short deadlines.
class CommandFixture {
 public:
    CommandFixture(
        const std::string& execute, const std::string& reconcile = "type: manual, reason: a test"
    ) {
        const auto config = configuration(
            "  tool:\n    execute: { type: command, " + execute + " }\n    reconcile: { " +
            reconcile + " }\n"
        );
        config::Diagnostics diagnostics;
        compiled_ = tools::compile_tool(config.tools[0], config, diagnostics);
        INFO(all_of(diagnostics));
        REQUIRE_FALSE(diagnostics.has_errors());
    }
    outbox::Outcome perform(
        const std::string& arguments = "{}", std::chrono::milliseconds deadline = 5s
    ) {
        tools::CommandAction action(
            std::move(std::get<tools::CommandExecute>(compiled_->execute)), 100'000, failpoints_
        );
        return run_coroutine(
            io_, action.perform(call_with(arguments), outbox::Deadline::after(deadline)), 8s
        );
    }
    outbox::Verdict ask(std::chrono::milliseconds deadline = 5s) {
        tools::CommandProbe probe(
            std::move(std::get<tools::CommandLookup>(*compiled_->lookup)), 100'000
        );
        return run_coroutine(
            io_, probe.ask(call_with("{}"), outbox::Deadline::after(deadline)), 8s
        );
    }

 private:
    boost::asio::io_context io_;
    outbox::Failpoints failpoints_;
    std::optional<tools::CompiledTool> compiled_;
};

outbox::Outcome perform(const std::string& execute, const std::string& arguments = "{}") {
    return CommandFixture(execute).perform(arguments);
}

}  // namespace

TEST_CASE("the exit code decides") {
    const std::string codes =
        ", exit_codes: { 0: succeeded, 75: retry, 65: rejected, 3: accepted, 4: attention, "
        "default: unknown }";
    get<outbox::Succeeded>(perform("argv: [sh, -c, 'exit 0']" + codes));
    const auto retry = perform("argv: [sh, -c, 'echo busy >&2; exit 75']" + codes);
    CHECK(get<outbox::RetryLater>(retry).counts);
    CHECK(get<outbox::RetryLater>(retry).error.code == "exit_75");
    CHECK(get<outbox::RetryLater>(retry).error.message == "busy");
    get<outbox::Rejected>(perform("argv: [sh, -c, 'exit 65']" + codes));
    get<outbox::Accepted>(perform("argv: [sh, -c, 'exit 3']" + codes));
    get<outbox::Attention>(perform("argv: [sh, -c, 'exit 4']" + codes));
    CHECK(
        get<outbox::Unknown>(perform("argv: [sh, -c, 'exit 1']" + codes)).cause == Cause::exit_code
    );
    // Nothing said: only 0 is known.
    get<outbox::Succeeded>(perform("argv: ['true']"));
    CHECK(get<outbox::Unknown>(perform("argv: ['false']")).cause == Cause::exit_code);
}

TEST_CASE("standard output is the result") {
    const auto result = [](const std::string& execute) {
        return outbox::to_text(get<outbox::Succeeded>(perform(execute)).result);
    };
    CHECK(
        result(R"(argv: [printf, '{"id": 9007199254740993, "x": 1}'])") ==
        R"({"id":9007199254740993,"x":1})"
    );
    CHECK(result(R"(argv: [printf, '{"id": 7, "x": 1}'], result: { id: /id })") == R"({"id":7})");
    CHECK(result("argv: [printf, 'not json']") == R"({"text":"not json"})");
    CHECK(result(R"(argv: [printf, '{"id": 7}'], stdout: text)") == R"({"text":"{\"id\": 7}"})");
    CHECK(result("argv: ['true']") == "null");
    CHECK(result("argv: [printf, '\\377']") == "{\"text\":\"\xEF\xBF\xBD\"}");
    const auto note = get<outbox::Succeeded>(perform("argv: [printf, '{}'], result: { id: /id }"));
    CHECK_THAT(note.note, ContainsSubstring("/id"));
    const auto cut = perform("argv: [sh, -c, 'head -c 200000 /dev/zero | tr \"\\0\" x']");
    CHECK(*get<outbox::Succeeded>(cut).result.find("truncated")->as_bool());
}

TEST_CASE("outcomes come before exit codes") {
    const std::string rules =
        ", outcomes: [ { when: { exit_code: 1, body: { /code: exists } }, then: attention, code: "
        "/code },"
        " { when: { exit_code: [1, 2], text: { contains: nope } }, then: rejected, message: gone } "
        "], exit_codes: { 0: succeeded }";
    const auto attention =
        perform(R"(argv: [sh, -c, 'printf "{\"code\": \"exists\"}"; exit 1'])" + rules);
    CHECK(get<outbox::Attention>(attention).error.code == "exists");
    CHECK(
        get<outbox::Rejected>(perform("argv: [sh, -c, 'echo nope; exit 2']" + rules))
            .error.message == "gone"
    );
    get<outbox::Succeeded>(perform("argv: ['true']" + rules));
    get<outbox::Unknown>(perform("argv: [sh, -c, 'exit 2']" + rules));
}

TEST_CASE("killed, timed out, not started") {
    CHECK(get<outbox::Unknown>(perform("argv: [sh, -c, 'kill -9 $$']")).cause == Cause::killed);
    CommandFixture slow("argv: [sleep, '30']");
    CHECK(get<outbox::Unknown>(slow.perform("{}", 200ms)).cause == Cause::timeout);
    const auto missing = perform("argv: [/no/such/program]");
    CHECK_FALSE(get<outbox::RetryLater>(missing).counts);
    CHECK(get<outbox::RetryLater>(missing).error.code == "not_sent_start");
    CHECK_THAT(
        get<outbox::RetryLater>(missing).error.message, ContainsSubstring("/no/such/program")
    );
    CommandFixture late("argv: ['true']");
    CHECK(get<outbox::RetryLater>(late.perform("{}", -1ms)).error.code == "not_sent_deadline");
    const Json big(Json::Object{{"x", Json(std::string(500'000, 'x'))}});
    CHECK(
        get<outbox::Rejected>(perform("argv: ['true', '{{ arguments.x }}']", outbox::to_text(big)))
            .error.code == "not_sent_start"
    );
}

TEST_CASE("arguments are no shell text, and the environment names the operation") {
    const auto echoed = perform(
        R"(argv: [sh, -c, 'printf "%s|%s|%s|%s|%s" "$1" "$OUTBOX_OPERATION_ID" "$OUTBOX_KEY" "$OUTBOX_ATTEMPT" "$MINE"', sh, '{{ arguments.x }}'], env: { MINE: 'm{{ arguments.x }}' }, stdout: text)",
        R"({"x": "$(id); `id` \"'"})"
    );
    CHECK(
        *get<outbox::Succeeded>(echoed).result.find("text")->as_string() ==
        "$(id); `id` \"'|op-1|key-1|2|m$(id); `id` \"'"
    );
    const auto refused =
        perform("argv: [touch, '{{ arguments.x }}']", R"({"x": "--reference=/etc/passwd"})");
    CHECK(get<outbox::Rejected>(refused).error.code == "invalid_argument");
    const auto missing = perform("argv: [touch, '{{ arguments.x }}']");
    CHECK(get<outbox::Rejected>(missing).error.code == "missing_argument");
    const auto input = perform("argv: [cat], stdin: '{{ arguments | json }}'", R"({"n": 20.0})");
    CHECK(outbox::to_text(get<outbox::Succeeded>(input).result) == R"({"n":20.0})");
}

TEST_CASE("reconcile by command") {
    const auto ask = [](const std::string& script, std::chrono::milliseconds deadline = 5s) {
        CommandFixture fixture(
            "argv: ['true']",
            "type: command, argv: [sh, -c, '" + script +
                "'], exit_codes: { 0: found, 1: absent, 2: pending, 3: conflict, default: "
                "inconclusive }"
        );
        return fixture.ask(deadline);
    };
    const auto found = ask("printf \"{\\\"key\\\": \\\"$OUTBOX_KEY\\\"}\"");
    CHECK(outbox::to_text(get<outbox::Found>(found).result) == R"({"key":"key-1"})");
    get<outbox::Absent>(ask("exit 1"));
    get<outbox::Pending>(ask("exit 2"));
    get<outbox::Conflict>(ask("exit 3"));
    get<outbox::Inconclusive>(ask("exit 127"));
    CHECK(get<outbox::Inconclusive>(ask("kill -9 $$")).error.code == "killed");
    CHECK(get<outbox::Inconclusive>(ask("sleep 30", 200ms)).error.code == "timeout");
    CommandFixture missing(
        "argv: ['true']", "type: command, argv: [/no/such], exit_codes: { 1: absent }"
    );
    CHECK(get<outbox::Inconclusive>(missing.ask()).error.code == "not_sent_start");
    CommandFixture unlisted(
        "argv: ['true']",
        "type: command, argv: [sh, -c, 'exit 9'], exit_codes: { 0: found, 1: absent }"
    );
    get<outbox::Inconclusive>(unlisted.ask());
}
