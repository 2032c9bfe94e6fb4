// What comes from an MCP server, piece by piece: events, messages, versions, headers, results.
#include "tools/mcp_protocol.hpp"

#include "tests/unit/tools/tool_fixture.hpp"
#include "tools/event_stream.hpp"
#include "tools/mcp_answer.hpp"

using namespace test;
using Kind = tools::RpcMessage::Kind;
using Next = tools::McpGreeting::Next;

namespace {

tools::RpcMessage message(const std::string& text) {
    auto all = tools::parse_rpc(text);
    REQUIRE(all.size() == 1);
    return all[0];
}

tools::Answer result(const std::string& text) {
    tools::RpcMessage message;
    message.kind = Kind::result;
    message.body = json(text);
    return tools::to_answer(message);
}

tools::McpPeer legacy() {
    return {.version = "2025-06-18", .modern = false, .session = {}};
}

}  // namespace

TEST_CASE("events are the same however their bytes are cut") {
    const std::string text =
        "\xEF\xBB\xBF: keep-alive\r\nevent: message\rdata: {\"a\":\ndata:1}\nid: 7\nretry: 20\n\n"
        "data\n\n: nothing\n\nid: 8\r\n\r\ndata: last, cut off";
    for (std::size_t cut = 0; cut <= text.size(); ++cut) {
        INFO(cut);
        tools::EventStream stream(1000);
        auto rest = text.substr(0, cut);
        auto events = stream.take(rest);
        rest += text.substr(cut);
        for (auto& event : stream.take(rest)) events.push_back(std::move(event));
        REQUIRE(events.size() == 2);
        CHECK(events[0].type == "message");
        CHECK(events[0].data == "{\"a\":\n1}");
        CHECK(events[1].data.empty());
        CHECK(stream.last_id() == "8");
        CHECK(stream.retry() == 20ms);
        CHECK_FALSE(stream.too_long());
    }
}

TEST_CASE("an event without end is given up, and fields that are none are nothing") {
    tools::EventStream stream(100);
    std::string text;
    for (int i = 0; i < 20; ++i) text += "data: 0123456789\n";
    CHECK(stream.take(text).empty());
    CHECK(stream.too_long());
    CHECK(text.empty());

    tools::EventStream other(100);
    text = std::string("id: a\0b\nretry: soon\ndatax: 1\nDATA: 2\n\n", 39);
    CHECK(other.take(text).empty());
    CHECK(other.last_id().empty());
    CHECK_FALSE(other.retry());
}

TEST_CASE("messages are told apart, and what is none is none") {
    struct Row {
        const char* text;
        Kind kind;
    };
    const Row rows[] = {
        {R"({"jsonrpc":"2.0","id":1,"result":{}})", Kind::result},
        {R"({"jsonrpc":"2.0","id":1,"result":{},"error":null})", Kind::result},
        {R"({"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}})", Kind::error},
        {R"({"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}})", Kind::error},
        {R"({"jsonrpc":"2.0","id":"a","method":"ping"})", Kind::request},
        {R"({"jsonrpc":"2.0","method":"notifications/progress","params":{}})", Kind::notification},
        {R"({"jsonrpc":"2.0","id":null,"method":"ping"})", Kind::notification},
        {R"({"jsonrpc":"2.0","id":1,"result":{},"error":{"code":1}})", Kind::none},
        {R"({"jsonrpc":"2.0","id":1,"result":{},"method":"x"})", Kind::none},
        {R"({"jsonrpc":"2.0","id":null,"result":{}})", Kind::none},
        {R"({"jsonrpc":"2.0","id":1,"error":{"code":"x"}})", Kind::none},
        {R"({"jsonrpc":"2.0","id":1,"error":"broken"})", Kind::none},
        {R"({"jsonrpc":"1.0","id":1,"result":{}})", Kind::none},
        {R"({"id":1,"result":{}})", Kind::none},
        {"[1]", Kind::none},
        {"{", Kind::none},
        {"7", Kind::none},
    };
    for (const auto& row : rows) {
        INFO(row.text);
        CHECK(message(row.text).kind == row.kind);
    }
    CHECK(tools::parse_rpc(" \r\n").empty());
    CHECK(tools::parse_rpc("[]").empty());
    CHECK(tools::parse_rpc(R"([{"jsonrpc":"2.0","method":"a"}, 1])").size() == 2);
}

TEST_CASE("only an answer with the very id is the answer") {
    const auto answers = [](const char* id) {
        return message(std::string(R"({"jsonrpc":"2.0","result":{},"id":)") + id + "}").answers(7);
    };
    CHECK(answers("7"));
    CHECK_FALSE(answers("8"));
    CHECK_FALSE(answers("\"7\""));
    CHECK_FALSE(answers("null"));
    CHECK_FALSE(message(R"({"jsonrpc":"2.0","id":7,"method":"ping"})").answers(7));
}

TEST_CASE("a server's questions are answered only where it may ask") {
    const auto asked = tools::parse_rpc(
        R"([{"jsonrpc":"2.0","id":"p","method":"ping"},
            {"jsonrpc":"2.0","id":2,"method":"sampling/createMessage","params":{}},
            {"jsonrpc":"2.0","method":"notifications/message"},
            {"jsonrpc":"2.0","id":9,"result":{"content":[]}}])"
    );
    tools::McpInbox inbox(9, false);
    const auto replies = inbox.take(asked);
    REQUIRE(replies.size() == 2);
    CHECK(replies[0] == R"({"jsonrpc":"2.0","id":"p","result":{}})");
    CHECK(json(replies[1]).at_pointer("/error/code")->equals(Json(-32601)));
    CHECK(inbox.answer());
    CHECK_FALSE(inbox.flooded());

    tools::McpInbox modern(9, true);
    CHECK(modern.take(asked).empty());

    tools::McpInbox flooded(9, false);
    std::size_t all = 0;
    for (int i = 0; i < 1000; ++i) {
        all += flooded.take({message(R"({"jsonrpc":"2.0","id":1,"method":"ping"})")}).size();
    }
    CHECK(all == 100);
    CHECK(flooded.flooded());
}

TEST_CASE("how to go on after server/discover and initialize") {
    const auto discover = [](const std::string& body) {
        return tools::read_discover(message(R"({"jsonrpc":"2.0","id":1,)" + body + "}"));
    };
    CHECK(discover(R"("result":{"supportedVersions":["2026-07-28"]})").next == Next::ready);
    const auto dual = discover(R"("result":{"supportedVersions":["2025-06-18","2024-11-05"]})");
    CHECK(dual.next == Next::initialize);
    CHECK(dual.version == "2025-06-18");
    CHECK(discover(R"("result":{"supportedVersions":["2031-01-01"]})").next == Next::hopeless);
    CHECK(discover(R"("result":{"content":[]})").next == Next::initialize);
    CHECK(discover(R"("error":{"code":-32601,"message":"?"})").next == Next::initialize);
    CHECK(discover(R"("error":{"code":-32602,"message":"?"})").next == Next::initialize);
    const auto unsupported =
        discover(R"("error":{"code":-32022,"message":"?","data":{"supported":["2025-11-25"]}})");
    CHECK(unsupported.next == Next::initialize);
    CHECK(unsupported.version == "2025-11-25");
    CHECK(discover(R"("error":{"code":-32022,"message":"?"})").next == Next::hopeless);
    CHECK(discover(R"("error":{"code":-32020,"message":"?"})").next == Next::hopeless);

    const auto initialize = [](const std::string& body) {
        return tools::read_initialize(message(R"({"jsonrpc":"2.0","id":1,)" + body + "}"));
    };
    CHECK(initialize(R"("result":{"protocolVersion":"2024-11-05"})").version == "2024-11-05");
    CHECK(initialize(R"("result":{"protocolVersion":"2031-01-01"})").next == Next::hopeless);
    CHECK(initialize(R"("result":{})").next == Next::hopeless);
    CHECK(initialize(R"("error":{"code":-32600,"message":"no"})").next == Next::hopeless);
}

TEST_CASE("a value that no header can carry is encoded") {
    CHECK(tools::header_value("us-west1") == "us-west1");
    CHECK(tools::header_value(" padded ") == "=?base64?IHBhZGRlZCA=?=");
    CHECK(tools::header_value("line1\nline2") == "=?base64?bGluZTEKbGluZTI=?=");
    CHECK(tools::header_value("Hello, 世界") == "=?base64?SGVsbG8sIOS4lueVjA==?=");
    CHECK(tools::header_value("=?base64?literal?=") == "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=");
}

TEST_CASE("the parameters that a schema wants mirrored") {
    const auto page = json(
        R"({"tools":[{"name":"other","inputSchema":{}},{"name":"run","inputSchema":{"properties":{
            "region":{"type":"string","x-mcp-header":"Region"},
            "nested":{"properties":{"n":{"type":"integer","x-mcp-header":"Count"}}},
            "plain":{"type":"string"}}}},
            {"name":"odd","inputSchema":{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}},
            {"name":"evil","inputSchema":{"properties":{"a":{"type":"string","x-mcp-header":"A\r\nB"}}}}]})"
    );
    const auto mirrors = tools::read_mirrors(page, "run");
    REQUIRE(mirrors);
    REQUIRE(mirrors->size() == 2);
    const auto arguments = json(R"({"region":"eu","nested":{"n":42},"plain":"x"})");
    CHECK((*mirrors)[0].header == "Mcp-Param-Region");
    CHECK(tools::mirrored((*mirrors)[0], arguments) == "eu");
    CHECK(tools::mirrored((*mirrors)[1], arguments) == "42");
    CHECK_FALSE(tools::mirrored((*mirrors)[1], json(R"({"nested":null})")));
    CHECK(tools::read_mirrors(page, "odd")->empty());
    CHECK(tools::read_mirrors(page, "evil")->empty());
    CHECK_FALSE(tools::read_mirrors(page, "none"));
    CHECK_FALSE(tools::read_mirrors(json("[]"), "run"));
}

TEST_CASE("only the result of a tool has succeeded or failed") {
    struct Row {
        const char* text;
        std::optional<bool> is_error;
    };
    const Row rows[] = {
        {R"({"content":[]})", false},
        {R"({"content":[],"isError":null})", false},
        {R"({"content":[],"isError":true})", true},
        {R"({"structuredContent":{"a":1},"resultType":"complete"})", false},
        {R"({"content":[],"isError":"false"})", std::nullopt},
        {R"({"content":"text"})", std::nullopt},
        {R"({})", std::nullopt},
        {R"({"task":{"taskId":"t","status":"working"}})", std::nullopt},
        {R"({"content":[],"resultType":"input_required"})", std::nullopt},
        {R"({"content":[],"resultType":7})", std::nullopt},
        {R"([])", std::nullopt},
    };
    for (const auto& row : rows) {
        INFO(row.text);
        CHECK(result(row.text).is_error == row.is_error);
    }
}

TEST_CASE("JSON as a tool's only text is its structured content") {
    const auto text = [](const std::string& content) {
        return result(R"({"content":)" + content + "}");
    };
    const auto one = text(R"([{"type":"text","text":"{\"id\": 7}"}])");
    CHECK(one.body->at_pointer("/structuredContent/id")->equals(Json(7)));
    CHECK(one.text == R"({"id": 7})");
    const auto two = text(R"([{"type":"text","text":"{}"},{"type":"text","text":"b"}])");
    CHECK(two.body->find("structuredContent") == nullptr);
    CHECK(two.text == "{}\nb");
    CHECK(text(R"([{"type":"text","text":"7"}])").body->find("structuredContent") == nullptr);
    CHECK(text(R"([{"type":"image","data":""}])").text.empty());
}

TEST_CASE("messages are what their revision wants") {
    tools::McpCall call{.tool = "t", .arguments = json(R"({"a":1})"), .meta = json("{}"), .to = {}};
    CHECK(
        tools::call_message(3, call, legacy()) ==
        R"({"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t","arguments":{"a":1}}})"
    );
    call.meta = json(R"({"x/y":1})");
    const auto modern = json(tools::call_message(3, call, {"2026-07-28", true, {}}));
    const auto& meta = *modern.at_pointer("/params/_meta");
    CHECK(meta.find("x/y") != nullptr);
    CHECK(meta.find("io.modelcontextprotocol/protocolVersion")->equals(Json("2026-07-28")));
    // Nothing is offered but to follow a task.
    CHECK(
        outbox::to_text(*meta.find("io.modelcontextprotocol/clientCapabilities")) ==
        R"({"extensions":{"io.modelcontextprotocol/tasks":{}}})"
    );
    call.meta = json("{}");
    CHECK(
        tools::call_message(3, call, legacy(), true) ==
        R"({"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"t","arguments":{"a":1},"task":{"ttl":86400000}}})"
    );
    CHECK(
        tools::task_message(4, "tasks/get", "t-1", legacy()) ==
        R"({"jsonrpc":"2.0","id":4,"method":"tasks/get","params":{"taskId":"t-1"}})"
    );
    const auto look = json(tools::task_message(4, "tasks/get", "t-1", {"2026-07-28", true, {}}));
    CHECK(look.at_pointer("/params/_meta") != nullptr);
}

TEST_CASE("which servers and tools want calls as tasks") {
    const auto offered = [](const std::string& version, const std::string& tasks) {
        tools::RpcMessage answer;
        answer.kind = tools::RpcMessage::Kind::result;
        answer.body = json(
            R"({"protocolVersion":")" + version + R"(","capabilities":{"tasks":)" + tasks + "}}"
        );
        return tools::read_initialize(answer).tasks;
    };
    CHECK(offered("2025-11-25", R"({"requests":{"tools":{"call":{}}}})"));
    CHECK_FALSE(offered("2025-06-18", R"({"requests":{"tools":{"call":{}}}})"));
    CHECK_FALSE(offered("2025-11-25", R"({"requests":{"tools":{}}})"));
    CHECK_FALSE(offered("2025-11-25", R"({"list":{}})"));
    CHECK_FALSE(offered("2025-11-25", "null"));
    const auto wants = [](const std::string& execution) {
        const auto page = json(R"({"tools":[{"name":"other"},{"name":"t")" + execution + "}]}");
        return tools::read_wants_task(page, "t");
    };
    CHECK(wants(R"(,"execution":{"taskSupport":"required"})") == true);
    CHECK(wants(R"(,"execution":{"taskSupport":"optional"})") == false);
    CHECK(wants(R"(,"execution":{"taskSupport":"forbidden"})") == false);
    CHECK(wants("") == false);
    CHECK_FALSE(tools::read_wants_task(json(R"({"tools":[{"name":"u"}]})"), "t"));
    CHECK_FALSE(tools::read_wants_task(json("[]"), "t"));
}
