// The MCP face without a transport and without a database: messages, the offer, answers, and how a
// call goes while the ledger fails.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/io_context.hpp>
#include <csignal>
#include <deque>
#include <thread>

#include "daemon/http_server.hpp"
#include "daemon/mcp/answer.hpp"
#include "daemon/mcp/face.hpp"
#include "daemon/mcp/http.hpp"
#include "daemon/mcp/lines.hpp"
#include "outbox/operation_key.hpp"
#include "outbox/pg/pg_error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/run_coroutine.hpp"

using namespace outboxd;
using namespace std::chrono_literals;
using outbox::Json;
using outbox::StoreError;

namespace {

Json json(const std::string& text) {
    return *outbox::parse_json(text).value;
}

std::string at(const Json& value, std::string_view pointer) {
    const auto* found = value.at_pointer(pointer);
    if (found == nullptr) return "(missing)";
    return found->as_string() != nullptr ? *found->as_string() : outbox::to_text(*found);
}

config::Tool tool_of(std::string name) {
    config::Tool tool;
    tool.name = std::move(name);
    tool.description = "Opens one.";
    tool.expose = true;
    tool.execute = config::LogAction{};
    return tool;
}

config::Config config_of(std::vector<config::Tool> tools) {
    config::Config config;
    config.tools = std::move(tools);
    return config;
}

class Quiet final : public outbox::Log {
 public:
    void write(outbox::LogLevel, std::string_view, std::initializer_list<outbox::LogField>)
        override {}
};

// Says what a test wants to be said; an empty text throws unavailable, "?" in_doubt.
class FakeLedger final : public mcp::Ledger {
 public:
    std::deque<std::string> enqueues;
    std::deque<std::string> gets;
    std::vector<outbox::pg::EnqueueCall> calls;

    asio::awaitable<std::string> enqueue(outbox::pg::EnqueueCall call) override {
        calls.push_back(call);
        co_return next(enqueues);
    }
    asio::awaitable<std::string> compensate(outbox::pg::CompensateCall) override {
        co_return next(enqueues);
    }
    asio::awaitable<std::string> get(std::string) override { co_return next(gets); }
    std::shared_ptr<void> watch(const std::string&, outbox::Bell&) override { return nullptr; }
    std::chrono::milliseconds poll_interval() const override { return 5ms; }

 private:
    static std::string next(std::deque<std::string>& from) {
        if (from.empty()) throw StoreError(StoreError::Kind::unavailable, "down");
        auto text = from.front();
        if (from.size() > 1) from.pop_front();
        if (text == "?") throw StoreError(StoreError::Kind::in_doubt, "lost");
        if (text.empty()) throw StoreError(StoreError::Kind::unavailable, "down");
        if (text.starts_with("OB")) {
            throw outbox::pg::SqlError(
                StoreError::Kind::data, text, "no", "Because of that", "Do this"
            );
        }
        return text;
    }
};

std::string row(std::string_view status, bool replayed = false) {
    Json out;
    out.set("operation_id", "op-1");
    out.set("status", status);
    out.set("replayed", replayed);
    out.set("result", Json());
    out.set("error", Json());
    out.set("message", "This action was performed.");
    out.set("tool", "open");
    return outbox::to_text(out);
}

struct World {
    explicit World(std::chrono::milliseconds wait = 50ms)
        : offer(std::move(mcp::Offer::make(config_of({tool_of("open")}), {}).offer)),
          face(ledger, log, offer, wait) {}

    Json ask(const std::string& text, const std::string& run = "r") {
        mcp::Exchange exchange(io.get_executor());
        if (!run.empty()) exchange.run.run_id = run;
        auto handling = face.handle(mcp::read_message(text), exchange);
        auto reply = test::run_coroutine(io, std::move(handling), 60s);
        status = reply.http_status;
        return reply.text.empty() ? Json() : json(reply.text);
    }
    Json call(const std::string& run = "r") {
        return ask(
            R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"open","arguments":{"b":1,"a":1e2}}})",
            run
        );
    }

    asio::io_context io;
    Quiet log;
    FakeLedger ledger;
    std::shared_ptr<const mcp::Offer> offer;
    mcp::Face face;
    int status = 0;
};

}  // namespace

TEST_CASE("a message is a request, a notification, a response, or says why not", "[mcp]") {
    using Kind = mcp::Message::Kind;
    CHECK(mcp::read_message(R"({"jsonrpc":"2.0","id":"a","method":"m"})").kind == Kind::request);
    CHECK(mcp::read_message(R"({"jsonrpc":"2.0","method":"m"})").kind == Kind::notification);
    CHECK(mcp::read_message(R"({"jsonrpc":"2.0","id":1,"error":{}})").kind == Kind::response);
    const std::pair<const char*, int> faults[] = {
        {"", mcp::kParseError},
        {"{", mcp::kParseError},
        {"[]", mcp::kInvalidRequest},
        {R"([{"jsonrpc":"2.0","id":1,"method":"m"}])", mcp::kInvalidRequest},
        {"null", mcp::kInvalidRequest},
        {R"({"jsonrpc":"2","id":1,"method":"m"})", mcp::kInvalidRequest},
        {R"({"jsonrpc":"2.0","id":{},"method":"m"})", mcp::kInvalidRequest},
        {R"({"jsonrpc":"2.0","id":1e2,"method":"m"})", mcp::kInvalidRequest},
        {R"({"jsonrpc":"2.0","id":1,"method":"m","params":7})", mcp::kInvalidParams},
        {R"({"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":[]}})", mcp::kInvalidParams},
    };
    for (const auto& [text, code] : faults) {
        const auto message = mcp::read_message(text);
        INFO(text);
        CHECK(message.kind == Kind::fault);
        CHECK(message.fault.code == code);
        // The parse error names the place, never the text.
        CHECK(message.fault.http_status == 400);
    }
}

TEST_CASE("half a character costs no client its answer", "[mcp]") {
    const std::string half[] = {
        R"(\ud83d)", R"(\ude00)", R"(\ud83d\ud83d)", "\xff", "\xc3", "\xed\xa0\xbd"
    };
    for (const auto& text : half) {
        INFO(text);
        const auto with = [&](const std::string& id) {
            auto message = mcp::read_message(
                R"({"jsonrpc":"2.0","method":"m","params":{"t":")" + text + R"("},"id":)" + id + "}"
            );
            CHECK(message.kind == mcp::Message::Kind::fault);
            CHECK(message.fault.code == mcp::kParseError);
            return outbox::to_text(message.id);
        };
        CHECK(with("7") == "7");
        CHECK(with(R"("a")") == R"("a")");
        CHECK(with("null") == "null");
        CHECK(with("1.5") == "null");
        CHECK(with("\"" + text + "\"") == "null");  // the id is broken itself
    }
    CHECK(mcp::read_message(R"({"id":7,"jsonrpc":)").id.is_null());
}

TEST_CASE(
    "a run id that nobody filled in is refused, in whatever language it was forgotten", "[mcp]"
) {
    World world;
    world.ledger.enqueues = {row("succeeded")};
    for (const auto* run :
         {" ",
          "   ",
          "${RUN}",
          "desk-${RUN_ID}",
          "$RUN_ID",
          " $RUN_ID ",
          "%RUN_ID%",
          "{{run}}",
          "{{ run.id }}",
          "$(date)",
          "<run-id>",
          "undefined",
          "null",
          "None",
          "nil",
          "NaN",
          "[object Object]",
          "caf\xe9",
          "\xed\xa0\xbd"}) {
        INFO(run);
        const auto answer = world.call(run);
        CHECK(at(answer, "/result/structuredContent/status") == "refused");
        CHECK_THAT(at(answer, "/result/structuredContent/message"), ContainsSubstring("run id"));
    }
    CHECK(world.ledger.calls.empty());
    for (const auto* run :
         {"r",
          "a b",
          "50%",
          "100% of %",
          "US$5",
          "$5",
          "a<b>c",
          "nullable",
          "run-null",
          "{x}",
          "caf\xc3\xa9"}) {
        INFO(run);
        CHECK(at(world.call(run), "/result/structuredContent/truth") == "succeeded");
    }
}

TEST_CASE("what is not seen is not said to have not happened", "[mcp]") {
    World world;
    const auto ask = [&](const std::string& name, const std::string& id) {
        return world.ask(
            R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":")" + name +
            R"(","arguments":{"operation_id":")" + id + "\"}}}"
        );
    };
    auto foreign = json(row("succeeded"));
    foreign.set("tool", "removed");
    // No such row, and a row of a tool that is not offered: told apart by nobody.
    for (const auto& found : {std::string("{}"), outbox::to_text(foreign)}) {
        world.ledger.gets = {found};
        const auto seen = ask("outbox_status", "op-1");
        CHECK(at(seen, "/result/structuredContent/truth") == "unknown");
        CHECK(at(seen, "/result/structuredContent/operation_id") == "op-1");
        CHECK(at(seen, "/result/isError") == "false");
        CHECK_THAT(outbox::to_text(seen), !ContainsSubstring("performed"));
    }
    // A character that no database keeps is the caller's fault, not the database's.
    const auto odd = ask("outbox_status", R"(a\u0000b)");
    CHECK(at(odd, "/result/structuredContent/status") == "refused");
    CHECK_THAT(at(odd, "/result/structuredContent/message"), ContainsSubstring("U+0000"));
}

TEST_CASE("a request of the current revision says so, and what its client can do", "[mcp]") {
    const auto with = [](const std::string& meta) {
        return mcp::read_message(
            R"({"jsonrpc":"2.0","id":1,"method":"m","params":{"_meta":{)" + meta + "}}}"
        );
    };
    const std::string revision = R"("io.modelcontextprotocol/protocolVersion":)";
    const std::string capable = R"(,"io.modelcontextprotocol/clientCapabilities":{})";
    CHECK(with(revision + "\"2026-07-28\"" + capable).modern);
    CHECK(with(revision + "\"2026-07-28\"").fault.code == mcp::kInvalidParams);
    CHECK(with(revision + "7").fault.code == mcp::kInvalidParams);
    CHECK(with(revision + "\"2030-01-01\"" + capable).fault.code == mcp::kUnsupportedRevision);
    CHECK_FALSE(with(revision + "\"2025-06-18\"").modern);
    CHECK(mcp::negotiated("2025-06-18") == "2025-06-18");
    CHECK(mcp::negotiated("2026-07-28") == "2025-11-25");  // not by initialize
}

TEST_CASE("tools are listed in pages of a hundred, in the order of their names", "[mcp]") {
    std::vector<config::Tool> tools;
    for (int i = 0; i < 250; ++i) tools.push_back(tool_of("t" + std::to_string(1000 - i)));
    tools.push_back(tool_of("hidden"));
    tools.back().expose = false;
    const auto offer = std::move(mcp::Offer::make(config_of(tools), {}).offer);
    std::vector<std::string> names;
    Json cursor;
    int pages = 0;
    for (bool more = true; more; ++pages) {
        const auto page = offer->page(cursor.is_null() ? nullptr : &cursor);
        REQUIRE(page);
        for (const auto& tool : *page->find("tools")->as_array())
            names.push_back(at(tool, "/name"));
        more = page->find("nextCursor") != nullptr;
        if (more) cursor = *page->find("nextCursor");
    }
    // A title is there when the file has one; our own tools have theirs.
    tools.front().title = "Open a ticket";
    const auto titled = std::move(mcp::Offer::make(config_of(tools), {}).offer);
    CHECK(at(titled->find(tools.front().name)->listing, "/title") == "Open a ticket");
    CHECK(at(titled->find(tools[1].name)->listing, "/title") == "(missing)");
    CHECK(at(titled->find("outbox_status")->listing, "/title") == "What became of an action");
    CHECK(pages == 3);
    CHECK(names.size() == 251);  // and outbox_status
    CHECK(std::is_sorted(names.begin(), names.end()));
    const Json nonsense("7");
    CHECK_FALSE(offer->page(&nonsense));
}

TEST_CASE("names on the command line are offered instead, and must be tools", "[mcp]") {
    auto close = tool_of("open:close");
    close.expose = false;
    close.compensates_tool = "open";
    auto open = tool_of("open");
    open.expose = false;
    const auto config = config_of({open, close, tool_of("other")});
    const auto made = mcp::Offer::make(config, {"open"});
    REQUIRE(made.offer);
    CHECK(made.offer->find("open") != nullptr);
    CHECK(made.offer->find("other") == nullptr);
    CHECK(made.offer->covers("open:close"));
    CHECK_FALSE(made.offer->covers("other"));
    CHECK_FALSE(made.offer->covers("outbox_status"));
    CHECK_FALSE(made.offer->covers(""));
    CHECK_THAT(mcp::Offer::make(config, {"opne"}).problem, ContainsSubstring("open"));
    CHECK_THAT(mcp::Offer::make(config, {"open:close"}).problem, ContainsSubstring("compensation"));
}

TEST_CASE("a schema is listed as the file has it, without secrets and mirrors", "[mcp]") {
    auto tool = tool_of("open");
    config::Value secret;
    secret.kind = config::Value::Kind::string;
    secret.text = "hunter2";
    secret.source = "${cred:x}";
    secret.from_secret = true;
    config::Value mirror;
    mirror.kind = config::Value::Kind::string;
    mirror.text = "Region";
    config::Value schema;
    schema.kind = config::Value::Kind::mapping;
    schema.members.push_back({"default", {}, secret});
    schema.members.push_back({"x-mcp-header", {}, mirror});
    tool.arguments = schema;
    tool.source.kind = config::Value::Kind::mapping;
    tool.source.members.push_back({"description", {}, secret});
    tool.source.members.push_back({"title", {}, secret});
    tool.description = tool.title = secret.text;
    const auto made = mcp::Offer::make(config_of({tool}), {});
    const auto listed = made.offer->find("open")->listing;
    CHECK(at(listed, "/inputSchema") == R"({"default":"${cred:x}","type":"object"})");
    CHECK(at(listed, "/description") == "${cred:x}");
    CHECK(at(listed, "/title") == "${cred:x}");
    CHECK_THAT(outbox::to_text(listed), !ContainsSubstring("hunter2"));
}

TEST_CASE("the id of a call is what enqueue derives", "[mcp]") {
    World world;
    world.ledger.enqueues = {row("succeeded")};
    (void)world.call("run-7");
    REQUIRE(world.ledger.calls.size() == 1);
    const auto& call = world.ledger.calls[0];
    CHECK(call.run_id == "run-7");
    CHECK_FALSE(call.operation_id);
    CHECK(call.arguments == R"({"b":1,"a":1e2})");  // digits as they came
    CHECK_FALSE(call.retry_failed);

    auto tool = tool_of("open");
    tool.dedup_fields = {{.value = "a", .mark = {}}};
    const auto offer = std::move(mcp::Offer::make(config_of({tool}), {}).offer);
    const auto message = mcp::read_message(
        R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"open","arguments":{"b":2,"a":" x "},"_meta":{"dev.outboxd/occurrence":2}}})"
    );
    const auto plan = mcp::plan_call(message, *offer, {.run_id = "r", .hint = ""}, "fresh");
    const auto& enqueue = std::get<mcp::EnqueuePlan>(plan);
    CHECK(enqueue.operation_id == outbox::operation_key("open", json(R"({"a":"x"})"), "r", 2).key);
}

TEST_CASE("whatever goes wrong, an answer says whether something may happen", "[mcp]") {
    World world(20ms);
    SECTION("the database is away: nothing was recorded") {
        world.ledger.enqueues = {""};
        const auto answer = world.call();
        CHECK(at(answer, "/result/structuredContent/status") == "refused");
        CHECK(at(answer, "/result/isError") == "true");
        CHECK_THAT(at(answer, "/result/content/0/text"), ContainsSubstring("was not recorded"));
    }
    SECTION("it comes back while we try") {
        world.ledger.enqueues = {"", "", row("pending")};
        world.ledger.gets = {row("succeeded")};
        CHECK(at(world.call(), "/result/structuredContent/truth") == "succeeded");
    }
    SECTION("a commit in doubt, and it stays away") {
        world.ledger.enqueues = {"?", ""};
        const auto answer = world.call();
        CHECK(at(answer, "/result/structuredContent/truth") == "unknown");
        CHECK(at(answer, "/result/structuredContent/operation_id").size() == 64);
        CHECK(at(answer, "/result/isError") == "false");
    }
    SECTION("a commit in doubt that the next try finds") {
        world.ledger.enqueues = {"?", row("succeeded", true)};
        CHECK(at(world.call(), "/result/structuredContent/truth") == "succeeded");
        CHECK(world.ledger.calls.size() == 2);
    }
    SECTION("refused: with the reason and the way out") {
        world.ledger.enqueues = {"OB404"};
        const auto text = at(world.call(), "/result/content/0/text");
        CHECK(text == "Nothing was done: no. Because of that Do this");
        CHECK(world.ledger.calls.size() == 1);
    }
    SECTION("recorded, and then nobody can look: it is in progress") {
        world.ledger.enqueues = {row("pending")};
        world.ledger.gets = {""};
        CHECK(at(world.call(), "/result/structuredContent/truth") == "pending");
    }
    SECTION("no run") {
        CHECK_THAT(
            at(world.call(""), "/result/content/0/text"),
            ContainsSubstring("to which run it belongs")
        );
        CHECK(world.ledger.calls.empty());
    }
}

TEST_CASE("every truth fits the output schema's words, and only rejected is an error", "[mcp]") {
    const std::tuple<const char*, const char*, bool> rows[] = {
        {"succeeded", "succeeded", false},
        {"failed", "rejected", true},
        {"cancelled", "rejected", true},
        {"pending", "pending", false},
        {"scheduled", "pending", false},
        {"attempting", "pending", false},
        {"unknown", "unknown", false},
    };
    for (const auto& [status, truth, error] : rows) {
        INFO(status);
        const auto answer = mcp::answer_of(json(row(status)));
        CHECK(at(answer, "/structuredContent/truth") == truth);
        CHECK(at(answer, "/isError") == (error ? "true" : "false"));
    }
    auto asked = json(row("unknown"));
    asked.set("attention", "manual");
    CHECK(mcp::truth_of(asked) == "needs_attention");
    const auto again = mcp::answer_of(json(row("succeeded", true)));
    CHECK_THAT(at(again, "/content/0/text"), ContainsSubstring("Nothing was executed again."));
}

TEST_CASE("headers of the current revision say what the body says", "[mcp]") {
    const auto message = mcp::read_message(
        R"({"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"open","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}})"
    );
    ServerRequest request;
    request.headers = {
        {"mcp-protocol-version", "2026-07-28"}, {"Mcp-Method", "tools/call"}, {"Mcp-Name", "open"}
    };
    CHECK_FALSE(mcp::check_headers(request, message));
    request.headers[2].second = "=?base64?b3Blbg==?=";
    CHECK_FALSE(mcp::check_headers(request, message));
    request.headers[2].second = "Open";
    CHECK(mcp::check_headers(request, message)->code == mcp::kHeaderMismatch);
    request.headers[2].second = "open";
    request.headers.emplace_back("Mcp-Name", "open");
    CHECK(mcp::check_headers(request, message)->code == mcp::kHeaderMismatch);
}

TEST_CASE("lines come whole, however they are cut, and too long ones are told", "[mcp]") {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const std::string text = "one\n\n \ntwo\r\n" + std::string(100, 'x') + "\nthree";
    for (const char c : text) REQUIRE(write(ends[1], &c, 1) == 1);
    close(ends[1]);
    mcp::LineReader reader(ends[0], 10);
    std::vector<std::string> lines;
    reader.run([&](mcp::LineReader::Line line) {
        lines.push_back(line.too_long ? "(too long)" : line.text);
    });
    close(ends[0]);
    CHECK(lines == std::vector<std::string>{"one", "two\r", "(too long)", "three"});
}

TEST_CASE(
    "a reader that takes nothing is waited for until the end, and then not for long", "[mcp]"
) {
    std::signal(SIGPIPE, SIG_IGN);  // as in main
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    std::atomic<bool> ending = false;
    const std::string text(1024 * 1024, 'x');
    // Slow, but reading: it gets everything, also after the end.
    std::size_t got = 0;
    std::thread reader([&] {
        std::string chunk(4096, ' ');
        while (got < text.size()) {
            const auto bytes = read(ends[0], chunk.data(), chunk.size());
            if (bytes <= 0) break;
            got += static_cast<std::size_t>(bytes);
            if (got > text.size() / 2) ending = true;
        }
    });
    CHECK(mcp::write_all(ends[1], text, ending, 30s));
    reader.join();
    CHECK(got == text.size());
    ending = false;
    std::thread ender([&] {
        std::this_thread::sleep_for(300ms);
        ending = true;
    });
    CHECK_FALSE(mcp::write_all(ends[1], text, ending, 200ms));
    ender.join();
    close(ends[0]);
    CHECK_FALSE(mcp::write_all(ends[1], text, ending, 30s));  // nobody is there any more
    close(ends[1]);
}
