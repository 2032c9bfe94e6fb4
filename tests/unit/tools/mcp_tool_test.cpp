// What becomes of an MCP server's answers, over a scripted server; and real servers over stdio.
#include "tools/mcp_tool.hpp"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/unit/tools/tool_fixture.hpp"
#include "tools/mcp_stdio.hpp"

using namespace test;
using outbox::Absent;
using outbox::Attention;
using outbox::Cause;
using outbox::Conflict;
using outbox::Found;
using outbox::Inconclusive;
using outbox::Rejected;
using outbox::RetryLater;
using outbox::Succeeded;
using outbox::Unknown;

namespace {

class ScriptedServer final : public tools::McpServer {
 public:
    std::deque<tools::McpEnd> answers;
    std::vector<tools::McpCall> calls;

    boost::asio::awaitable<tools::McpEnd> call(
        tools::McpCall call, const tools::Scope&, outbox::Deadline
    ) override {
        calls.push_back(std::move(call));
        REQUIRE_FALSE(answers.empty());
        auto answer = std::move(answers.front());
        answers.pop_front();
        co_return answer;
    }

    ScriptedServer& result(const std::string& body) {
        tools::RpcMessage message;
        message.kind = tools::RpcMessage::Kind::result;
        message.body = json(body);
        return add(tools::to_answer(message));
    }
    ScriptedServer& error(int code, const std::string& text, std::optional<int> status = 200) {
        tools::RpcMessage message;
        message.kind = tools::RpcMessage::Kind::error;
        message.code = code;
        message.body.set("code", Json(code));
        message.body.set("message", Json(text));
        auto answer = tools::to_answer(message);
        answer.status = status;
        return add(std::move(answer));
    }
    ScriptedServer& status(int status) {
        tools::Answer answer;
        answer.status = status;
        return add(std::move(answer));
    }
    ScriptedServer& end(tools::McpEnd end) {
        answers.push_back(std::move(end));
        return *this;
    }

 private:
    ScriptedServer& add(tools::Answer answer) {
        tools::McpEnd one;
        one.what = std::move(answer);
        return end(std::move(one));
    }
};

// One mcp tool of a configuration.
class Fixture {
 public:
    explicit Fixture(const std::string& members, const std::string& rest = {}) {
        const auto config = configuration("  t:\n    effect: write\n" + members, rest);
        config::Diagnostics diagnostics;
        auto compiled = tools::compile_tool(config.tools[0], config, diagnostics);
        INFO(all_of(diagnostics));
        REQUIRE(compiled);
        if (auto* execute = std::get_if<tools::McpExecute>(&compiled->execute)) {
            action_ = std::make_unique<tools::McpAction>(
                std::make_shared<const tools::McpExecute>(std::move(*execute)), server, failpoints_
            );
        }
        if (compiled->lookup) {
            if (auto* lookup = std::get_if<tools::McpLookup>(&*compiled->lookup)) {
                probe_ = std::make_unique<tools::McpProbe>(std::move(*lookup), server, probe_gate);
            }
        }
    }
    outbox::Outcome perform(const std::string& arguments = "{}") {
        return run_coroutine(
            io_, action_->perform(call_with(arguments), outbox::Deadline::after(20s)), 30s
        );
    }
    outbox::Verdict ask(const std::string& arguments = "{}") {
        return run_coroutine(
            io_, probe_->ask(call_with(arguments), outbox::Deadline::after(20s)), 30s
        );
    }
    std::shared_ptr<ScriptedServer> server = std::make_shared<ScriptedServer>();
    std::shared_ptr<outbox::LaneGate> probe_gate = std::make_shared<outbox::LaneGate>();

 private:
    boost::asio::io_context io_;
    outbox::Failpoints failpoints_;
    std::unique_ptr<tools::McpAction> action_;
    std::unique_ptr<tools::McpProbe> probe_;
};

const std::string kManual = "    reconcile: { type: manual, reason: a test }\n";

std::string create(const std::string& outcomes = {}) {
    return "    execute: { type: mcp, url: 'https://m.example/mcp', tool: create, arguments: { "
           "title: "
           "'{{ arguments.title | optional }}', n: 20.0, ref: '{{ operation.key }}' }" +
           outcomes + " }\n";
}

const std::string kDescribed =
    ", outcomes: [ { when: { is_error: false }, then: succeeded, result: { id: "
    "/structuredContent/id } },"
    " { when: { is_error: true, text: { matches: 'no such project' } }, then: rejected, code: "
    "no_project, message: /content/0/text },"
    " { when: { rpc_error: [-32602, -1], text: { contains: 'not found' } }, then: rejected },"
    " { when: { result_type: later }, then: accepted },"
    " { when: { status: 503 }, then: retry, retry_after: 7s } ]";

std::string lookup(const std::string& members) {
    return create() +
           "    reconcile: { type: mcp, url: 'https://m.example/mcp', tool: search, arguments: { "
           "query: '{{ operation.key }}' }, " +
           members + " }\n";
}

// A server that a shell plays; $1 is the folder of the test.
std::string stdio(const std::filesystem::path& script, const std::string& more = {}) {
    return "    execute: { type: mcp, command: [/bin/sh, '" + script.string() +
           "'], tool: create, arguments: { ref: '{{ operation.key }}' }" + more + " }\n" + kManual;
}

}  // namespace

TEST_CASE("the call of an MCP tool, and what it says about the operation") {
    Fixture fixture(
        "    execute: { type: mcp, url: 'https://m.example/mcp', tool: create, arguments: { title: "
        "'{{ arguments.title }}', n: 20.0, gone: '{{ arguments.none | optional }}' }, meta: { "
        "com.example/ref: 'r-{{ operation.id }}' } }\n" +
        kManual
    );
    fixture.server->result(R"({"content":[]})");
    (void)fixture.perform(R"({"title": ["{{ operation.key }}", 9007199254740993]})");
    const auto& call = fixture.server->calls.at(0);
    CHECK(call.tool == "create");
    CHECK(
        outbox::to_text(call.arguments) ==
        R"({"title":["{{ operation.key }}",9007199254740993],"n":20.0})"
    );
    CHECK(call.meta.find("dev.outboxd/idempotency-key")->equals(Json("key-1")));
    CHECK(call.meta.find("dev.outboxd/operation-id")->equals(Json("op-1")));
    CHECK(call.meta.find("com.example/ref")->equals(Json("r-op-1")));
    const auto& request = std::get<tools::HttpRequest>(call.to);
    CHECK(request.method == "POST");
    CHECK(request.target == "/mcp");

    // Nothing is called for what cannot be rendered.
    CHECK_FALSE(get<Rejected>(fixture.perform("{}")).sent);
    CHECK(fixture.server->calls.size() == 1);
}

TEST_CASE("what an answer means without a rule for it") {
    Fixture fixture(create() + kManual);
    auto& server = *fixture.server;

    server.result(R"({"content":[{"type":"text","text":"done"}]})");
    CHECK(outbox::to_text(get<Succeeded>(fixture.perform()).result) == R"({"text":"done"})");
    server.result(R"({"content":[],"structuredContent":{"id":7}})");
    CHECK(outbox::to_text(get<Succeeded>(fixture.perform()).result) == R"({"id":7})");

    server.result(R"({"content":[{"type":"text","text":"upstream failed"}],"isError":true})");
    const auto failed = get<Unknown>(fixture.perform());
    CHECK(failed.cause == Cause::mcp);
    CHECK(failed.error.code == "tool_error");
    CHECK(failed.error.message == "upstream failed");

    server.result(R"({"resultType":"input_required","inputRequests":{}})");
    CHECK(get<Attention>(fixture.perform()).error.code == "result_input_required");
    server.result(R"({"resultType":"task","taskId":"t"})");
    CHECK(get<Unknown>(fixture.perform()).cause == Cause::unreadable);
    server.result(R"({"surprise":1})");
    CHECK(get<Unknown>(fixture.perform()).cause == Cause::unreadable);
}

TEST_CASE("only errors that come before the tool are a definite no effect") {
    struct Row {
        int code;
        std::optional<int> status;
        const char* end;
    };
    const Row rows[] = {
        {-32601, 200, "rejected"},
        {-32601, 404, "rejected"},
        {-32601, std::nullopt, "rejected"},
        {-32020, 400, "rejected"},
        {-32021, 400, "rejected"},
        {-32022, 400, "rejected"},
        // A server's check of its tool's own answer has these codes as well.
        {-32602, 200, "unknown"},
        {-32602, std::nullopt, "unknown"},
        {-32600, 200, "unknown"},
        {-32700, 200, "unknown"},
        {-32603, 200, "unknown"},
        {-32603, 400, "unknown"},
        {-32000, 200, "unknown"},
        {-1, 200, "unknown"},
        {0, 200, "unknown"},
        {-32042, 200, "attention"},
        // The transport refused the message.
        {-32602, 400, "rejected"},
        {-32000, 403, "rejected"},
        {-32001, 404, "rejected"},
        {-32000, 429, "retry"},
        {-32000, 401, "retry"},
        {-32000, 409, "unknown"},
        {-32000, 500, "unknown"},
    };
    Fixture fixture(create() + kManual);
    for (const auto& row : rows) {
        INFO(row.code << " with " << row.status.value_or(0));
        fixture.server->error(row.code, "said", row.status);
        CHECK(outbox::outcome_name(fixture.perform()) == row.end);
    }
    fixture.server->status(302).status(404).status(429).status(503);
    CHECK(outbox::outcome_name(fixture.perform()) == "rejected");
    CHECK(outbox::outcome_name(fixture.perform()) == "rejected");
    CHECK_FALSE(get<RetryLater>(fixture.perform()).counts);
    CHECK(outbox::outcome_name(fixture.perform()) == "unknown");
    fixture.server->error(-32601, "no such method");
    CHECK(get<Rejected>(fixture.perform()).error.code == "rpc_-32601");
}

TEST_CASE("rules of an MCP tool come first, and describe what they describe") {
    Fixture fixture(create(kDescribed) + kManual);
    auto& server = *fixture.server;
    server.result(R"({"content":[],"structuredContent":{"id":7}})");
    CHECK(outbox::to_text(get<Succeeded>(fixture.perform()).result) == R"({"id":7})");
    server.result(R"({"content":[{"type":"text","text":"no such project: x"}],"isError":true})");
    const auto rejected = get<Rejected>(fixture.perform());
    CHECK(rejected.error.code == "no_project");
    CHECK(rejected.error.message == "no such project: x");
    server.result(R"({"content":[{"type":"text","text":"else"}],"isError":true})");
    CHECK(get<Unknown>(fixture.perform()).cause == Cause::mcp);
    server.error(-32602, "Tool create not found");
    CHECK(outbox::outcome_name(fixture.perform()) == "rejected");
    server.error(-32602, "Invalid structured content");
    CHECK(outbox::outcome_name(fixture.perform()) == "unknown");
    server.result(R"({"resultType":"later"})");
    CHECK(outbox::outcome_name(fixture.perform()) == "accepted");
    server.status(503);
    CHECK(get<RetryLater>(fixture.perform()).after == 7s);
    // is_error: false is no statement about a question back.
    server.result(R"({"content":[],"resultType":"input_required"})");
    CHECK(outbox::outcome_name(fixture.perform()) == "attention");
}

TEST_CASE("a call without an answer is known or unknown by its first byte") {
    Fixture fixture(create() + kManual);
    fixture.server->end(tools::not_called("not_sent_mcp", "no greeting"));
    const auto later = get<RetryLater>(fixture.perform());
    CHECK_FALSE(later.counts);
    CHECK(later.error.code == "not_sent_mcp");
    fixture.server->end(tools::lost(Cause::reset, "reset", "gone"));
    CHECK(get<Unknown>(fixture.perform()).cause == Cause::reset);
}

TEST_CASE("a call that something stale refused is made once more, if it had no effect") {
    const auto stale = [](int code, int status) {
        ScriptedServer one;
        auto end = std::move(one.error(code, "gone", status).answers.front());
        end.stale = true;
        return end;
    };
    Fixture fixture(create() + kManual);
    fixture.server->end(stale(-32001, 404)).result(R"({"content":[]})");
    CHECK(outbox::outcome_name(fixture.perform()) == "succeeded");
    CHECK(fixture.server->calls.size() == 2);
    // Not after an end that may have had one, and not for ever.
    fixture.server->end(stale(-32603, 400));
    CHECK(outbox::outcome_name(fixture.perform()) == "unknown");
    CHECK(fixture.server->calls.size() == 3);
    for (int i = 0; i < 3; ++i) fixture.server->end(stale(-32001, 404));
    CHECK(outbox::outcome_name(fixture.perform()) == "rejected");
    CHECK(fixture.server->calls.size() == 6);
}

TEST_CASE("a look-up by an MCP tool reads a listing") {
    Fixture fixture(lookup(
        "items: /structuredContent/items, match: { /ref: '{{ operation.key }}' }, must_equal: { "
        "/title: '{{ arguments.title | optional }}' }, result: { id: /id }"
    ));
    auto& server = *fixture.server;
    server.result(
        R"({"content":[],"structuredContent":{"items":[{"ref":"x"},{"ref":"key-1","id":7}]}})"
    );
    CHECK(outbox::to_text(get<Found>(fixture.ask()).result) == R"({"id":7})");
    CHECK(server.calls[0].tool == "search");
    // The look-up is not for the operation: a server that knows the key would take it for one.
    CHECK(server.calls[0].meta.find("dev.outboxd/idempotency-key") == nullptr);
    server.result(R"({"content":[{"type":"text","text":"{\"items\":[]}"}]})");
    CHECK(std::holds_alternative<Absent>(fixture.ask()));
    server.result(
        R"({"content":[],"structuredContent":{"items":[{"ref":"key-1"},{"ref":"key-1","id":2}]}})"
    );
    CHECK(get<Conflict>(fixture.ask()).error.code == "found_twice");
    server.result(R"({"content":[],"structuredContent":{"items":[{"ref":"key-1","title":"b"}]}})");
    CHECK(get<Conflict>(fixture.ask(R"({"title":"a"})")).error.code == "different");
    // Nothing else is a listing that was read to its end.
    server.result(R"({"content":[],"structuredContent":{"items":{}}})");
    CHECK(std::holds_alternative<Inconclusive>(fixture.ask()));
    server.result(R"({"content":[{"type":"text","text":"[]"}],"isError":true})");
    CHECK(std::holds_alternative<Inconclusive>(fixture.ask()));
    server.result(R"({"resultType":"input_required","structuredContent":{"items":[]}})");
    CHECK(std::holds_alternative<Inconclusive>(fixture.ask()));
    server.error(-32602, "Tool search not found");
    CHECK(get<Inconclusive>(fixture.ask()).error.code == "rpc_-32602");
    server.status(404);
    CHECK(std::holds_alternative<Inconclusive>(fixture.ask()));
    server.end(tools::lost(Cause::timeout, "timeout", "late"));
    CHECK(std::holds_alternative<Inconclusive>(fixture.ask()));
}

TEST_CASE("a look-up by an MCP tool goes through its pages") {
    Fixture fixture(
        lookup("items: /structuredContent/items, match: { /ref: '{{ operation.key }}' }, paginate: "
               "{ from: "
               "'body:/structuredContent/next', to: 'argument:cursor', max_pages: 3 }")
    );
    auto& server = *fixture.server;
    server.result(R"({"content":[],"structuredContent":{"items":[{"ref":"x"}],"next":"b"}})");
    server.result(R"({"content":[],"structuredContent":{"items":[{"ref":"key-1"}]}})");
    CHECK(std::holds_alternative<Found>(fixture.ask()));
    CHECK(server.calls[0].arguments.find("cursor") == nullptr);
    CHECK(server.calls[1].arguments.find("cursor")->equals(Json("b")));
    CHECK(server.calls[1].arguments.find("query")->equals(Json("key-1")));

    server.result(R"({"content":[],"structuredContent":{"items":[{"ref":"x"}],"next":"b"}})");
    server.result(R"({"content":[],"structuredContent":{"items":[{"ref":"x"}],"next":"b"}})");
    CHECK(get<Inconclusive>(fixture.ask()).error.code == "listing_incomplete");
    for (const auto* next : {"b", "c", "d"}) {
        server.result(
            std::string(R"({"content":[],"structuredContent":{"items":[{"ref":"x"}],"next":")") +
            next + "\"}}"
        );
    }
    CHECK(get<Inconclusive>(fixture.ask()).error.code == "page_limit");

    Fixture limited(lookup("items: /structuredContent/items, match: { /ref: '{{ operation.key }}' }"
    ));
    limited.server->result(R"({"content":[],"structuredContent":{"items":[]}})");
    CHECK(std::holds_alternative<Absent>(limited.ask()));
}

TEST_CASE("a look-up by an MCP tool has verdicts") {
    Fixture fixture(lookup(
        "verdicts: [ { when: { is_error: true, text: { matches: 'not found' } }, then: absent },"
        " { when: { is_error: false }, then: found, result: { id: /structuredContent/id } } ],"
        " must_equal: { /structuredContent/title: '{{ arguments.title | optional }}' }"
    ));
    auto& server = *fixture.server;
    server.result(R"({"content":[{"type":"text","text":"issue key-1 not found"}],"isError":true})");
    CHECK(std::holds_alternative<Absent>(fixture.ask()));
    // A tool that is not there cannot say that the issue is not.
    server.result(
        R"({"content":[{"type":"text","text":"MCP error -32602: Tool serch not found"}],"isError":true})"
    );
    CHECK(std::holds_alternative<Inconclusive>(fixture.ask()));
    server.result(R"({"content":[],"structuredContent":{"id":7,"title":"a"}})");
    CHECK(outbox::to_text(get<Found>(fixture.ask()).result) == R"({"id":7})");
    server.result(R"({"content":[],"structuredContent":{"id":7,"title":"a"}})");
    CHECK(get<Conflict>(fixture.ask(R"({"title":"b"})")).error.code == "different");
    server.error(-32603, "not found");
    CHECK(std::holds_alternative<Inconclusive>(fixture.ask()));
}

namespace {

// A folder of its own for the scripts that play servers.
struct Folder {
    Folder() {
        std::string name = (std::filesystem::temp_directory_path() / "mcp-XXXXXX").string();
        REQUIRE(::mkdtemp(name.data()) != nullptr);
        path = name;
    }
    ~Folder() { std::filesystem::remove_all(path); }
    [[nodiscard]] std::filesystem::path script(const std::string& text) const {
        std::ofstream(path / "server") << text;
        return path / "server";
    }
    [[nodiscard]] std::string read(const std::string& name) const {
        std::ifstream in(path / name);
        return {std::istreambuf_iterator<char>(in), {}};
    }
    std::filesystem::path path;
};

outbox::Outcome perform_stdio(
    const std::string& members, std::chrono::milliseconds time = 20s, int times = 1
) {
    const auto config = configuration("  t:\n    effect: write\n" + members);
    config::Diagnostics diagnostics;
    auto compiled = tools::compile_tool(config.tools[0], config, diagnostics);
    INFO(all_of(diagnostics));
    REQUIRE(compiled);
    auto& execute = std::get<tools::McpExecute>(compiled->execute);
    execute.call.output_limit = 64 * 1024;
    outbox::Failpoints failpoints;
    auto server = std::make_shared<tools::McpStdioServer>(
        std::make_shared<tools::McpEras>(), execute.call.identity()
    );
    tools::McpAction action(
        std::make_shared<const tools::McpExecute>(std::move(execute)), server, failpoints
    );
    outbox::Outcome outcome;
    for (int i = 0; i < times; ++i) {
        boost::asio::io_context io;
        outcome =
            run_coroutine(io, action.perform(call_with("{}"), outbox::Deadline::after(time)), 60s);
    }
    return outcome;
}

// Reads a line and keeps it; what follows plays the server.
const std::string kShell =
    "next() { IFS= read -r line || exit 0; printf '%s\\n' \"$line\" >> \"$(dirname \"$0\")/log\"; "
    "}\n"
    "id() { printf '%s' \"$line\" | sed 's/.*\"id\":\\([0-9]*\\).*/\\1/'; }\n"
    "say() { printf '{\"jsonrpc\":\"2.0\",\"id\":%s,%s}\\n' \"$(id)\" \"$1\"; }\n";
const std::string kLegacy =
    "next; say '\"error\":{\"code\":-32602,\"message\":\"initialize first\"}'\n"
    "next; say '\"result\":{\"protocolVersion\":\"2025-06-18\",\"capabilities\":{}}'\n"
    "next\n";
const std::string kModern =
    "next; say '\"result\":{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"]}'\n";
const std::string kDone = "say '\"result\":{\"content\":[],\"structuredContent\":{\"id\":7}}'\n";

}  // namespace

TEST_CASE("a server that is started for the call", "[stdio]") {
    SECTION("of an old revision") {
        const Folder folder;
        const auto script = folder.script(kShell + kLegacy + "next; " + kDone);
        CHECK(
            outbox::to_text(get<Succeeded>(perform_stdio(stdio(script))).result) == R"({"id":7})"
        );
        const auto log = folder.read("log");
        CHECK_THAT(log, ContainsSubstring("server/discover"));
        CHECK_THAT(log, ContainsSubstring("notifications/initialized"));
        CHECK_THAT(log, ContainsSubstring("dev.outboxd/idempotency-key\":\"key-1"));
        CHECK_THAT(log, ContainsSubstring(R"("arguments":{"ref":"key-1"})"));
    }
    SECTION("of the current one") {
        const Folder folder;
        const auto script = folder.script(kShell + kModern + "next; " + kDone);
        CHECK(outbox::outcome_name(perform_stdio(stdio(script))) == "succeeded");
        CHECK(folder.read("log").find("initialize") == std::string::npos);
    }
    SECTION("its revision is found out once") {
        const Folder folder;
        const auto script = folder.script(
            kShell +
            "next\ncase $line in *server/discover*) say "
            "'\"error\":{\"code\":-32601,\"message\":\"?\"}'; "
            "next ;; esac\nsay '\"result\":{\"protocolVersion\":\"2024-11-05\"}'\nnext; next; " +
            kDone
        );
        CHECK(outbox::outcome_name(perform_stdio(stdio(script), 20s, 2)) == "succeeded");
        const auto log = folder.read("log");
        CHECK(log.find("server/discover") == log.rfind("server/discover"));
    }
    SECTION("that asks before it answers, and says much") {
        const Folder folder;
        const auto script = folder.script(
            kShell + kLegacy +
            "next; call=$line\n"
            "i=0; while [ $i -lt 300 ]; do printf "
            "'{\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\","
            "\"params\":{\"data\":\"%0400d\"}}\\n' $i; i=$((i+1)); done\n"
            "echo 'no message at all'\n"
            "echo '{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}'\nnext\n"
            "echo '{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"roots/list\"}'\nnext\n"
            "line=$call; " +
            kDone
        );
        CHECK(outbox::outcome_name(perform_stdio(stdio(script))) == "succeeded");
        const auto log = folder.read("log");
        CHECK_THAT(log, ContainsSubstring(R"({"jsonrpc":"2.0","id":"p","result":{}})"));
        CHECK_THAT(log, ContainsSubstring("outboxd offers no roots/list"));
    }
}

TEST_CASE("what of a started server is known to have had no effect", "[stdio]") {
    const Folder folder;
    const auto not_sent = [&](const std::string& text, std::chrono::milliseconds time = 20s) {
        const auto later = get<RetryLater>(perform_stdio(stdio(folder.script(text)), time));
        CHECK_FALSE(later.counts);
        return later.error;
    };
    CHECK(not_sent("exit 3").code == "not_sent_mcp");
    CHECK_THAT(
        not_sent("echo 'no configuration' >&2; exit 3").message,
        ContainsSubstring("no configuration")
    );
    CHECK(not_sent("exec sleep 60", 1500ms).code == "not_sent_mcp");
    CHECK(not_sent("exec yes", 1500ms).code == "not_sent_mcp");
    CHECK(
        not_sent(
            kShell + "next; say '\"error\":{\"code\":-32601,\"message\":\"?\"}'\n"
                     "next; say '\"result\":{\"protocolVersion\":\"2031-01-01\"}'\nnext\n"
        )
            .code == "not_sent_mcp"
    );
    CHECK(folder.read("log").find("tools/call") == std::string::npos);
    const auto missing =
        "    execute: { type: mcp, command: [/no/such/server], tool: t }\n" + kManual;
    CHECK(get<RetryLater>(perform_stdio(missing)).error.code == "not_sent_start");
}

TEST_CASE("what of a started server is unknown", "[stdio]") {
    const Folder folder;
    const auto unknown = [&](const std::string& text, std::chrono::milliseconds time = 20s) {
        const auto script = folder.script(kShell + kModern + "next; " + text);
        return get<Unknown>(perform_stdio(stdio(script), time));
    };
    CHECK(unknown("exit 0").cause == Cause::killed);
    CHECK(unknown("kill -9 $$").cause == Cause::killed);
    CHECK(unknown("sleep 60", 3s).cause == Cause::timeout);
    // No answer to this call, whatever it looks like.
    const auto wrong = [](const std::string& id) {
        return "echo '{\"jsonrpc\":\"2.0\",\"id\":" + id + ",\"result\":{\"content\":[]}}'; exit 0";
    };
    CHECK(unknown(wrong("99")).cause == Cause::killed);
    CHECK(unknown(wrong("\"2\"")).cause == Cause::killed);
    CHECK(unknown("head -c 200000 /dev/zero | tr '\\0' a; sleep 60").cause == Cause::unreadable);
}

TEST_CASE("a started server and all it started end with the call", "[stdio]") {
    const Folder folder;
    const auto script = folder.script(
        kShell + kModern +
        "next; sleep 300 & echo $! > \"$(dirname \"$0\")/child\"\nsetsid sleep 300 &\n" + kDone +
        "exec sleep 300"
    );
    CHECK(outbox::outcome_name(perform_stdio(stdio(script))) == "succeeded");
    const auto child = folder.read("child");
    REQUIRE_FALSE(child.empty());
    CHECK(::kill(std::stoi(child), 0) != 0);
}

TEST_CASE("a look-up over HTTP tells its gate how the server fares, a process has none to tell") {
    using Health = tools::LaneSignal::Health;
    Fixture fixture(
        lookup("verdicts: [ { when: { is_error: true, text: { contains: none } }, then: absent } ]")
    );
    const auto ask = [&](int status, std::optional<tools::LaneSignal> signal) {
        fixture.server->status(status);
        fixture.server->answers.back().signal = signal;
        (void)get<Inconclusive>(fixture.ask());
        return fixture.probe_gate->wait(outbox::BootClock::now());
    };
    for (int i = 0; i < 5; ++i) (void)ask(500, std::nullopt);
    CHECK_FALSE(fixture.probe_gate->breaker_open());
    const tools::LaneSignal down{.health = Health::down, .status = 500, .pause = std::nullopt};
    for (int i = 0; i < 5; ++i) (void)ask(500, down);
    CHECK(fixture.probe_gate->breaker_open());
    // A 429 that does not say how long is a second; one that does is that long.
    const auto unsaid =
        ask(429, tools::LaneSignal{.health = Health::up, .status = 429, .pause = std::nullopt});
    CHECK_FALSE(fixture.probe_gate->breaker_open());
    CHECK(unsaid > 0s);
    CHECK(unsaid <= 1s);
    CHECK(ask(429, tools::LaneSignal{.health = Health::up, .status = 429, .pause = 30s}) > 25s);
}
