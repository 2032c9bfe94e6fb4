// MCP over Streamable HTTP against servers that a script plays: eras, sessions, streams, and what
// is known about the effect when they misbehave.
#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <cstdio>
#include <functional>
#include <set>
#include <utility>

#include "tests/http/tools_world.hpp"

using namespace tests;
using namespace test;
using outbox::Absent;
using outbox::Cause;
using outbox::Inconclusive;
using outbox::Rejected;
using outbox::RetryLater;
using outbox::Succeeded;
using outbox::Unknown;

namespace {

// One request to the server, taken apart.
struct Posted {
    std::string head;
    Json body;

    [[nodiscard]] std::string method() const {
        const auto* method = body.find("method");
        return method == nullptr ? "" : *method->as_string();
    }
    [[nodiscard]] std::string id() const {
        const auto* id = body.find("id");
        return id == nullptr ? "null" : outbox::to_text(*id);
    }
    [[nodiscard]] bool has(const std::string& header) const {
        return head.find(header) != std::string::npos;
    }
};

// What a script answers, and what it does then.
struct Reply {
    std::string bytes;
    enum class Then { keep, close, reset, stall } then = Then::keep;
};

std::string answer(const std::string& body, int status = 200, const std::string& headers = {}) {
    return "HTTP/1.1 " + std::to_string(status) + " X\r\nContent-Type: application/json\r\n" +
           headers + "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}
std::string rpc(const Posted& posted, const std::string& member) {
    return R"({"jsonrpc":"2.0","id":)" + posted.id() + "," + member + "}";
}
std::string error(const Posted& posted, int code, const std::string& more = {}) {
    return rpc(
        posted, R"("error":{"code":)" + std::to_string(code) + R"(,"message":"no")" + more + "}"
    );
}
std::string done(const Posted& posted) {
    return rpc(posted, R"("result":{"content":[],"structuredContent":{"id":7}})");
}
std::string stream(const std::string& events, bool ends = true) {
    std::string out =
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    char size[32];
    std::snprintf(size, sizeof size, "%zx\r\n", events.size());
    out += size + events + "\r\n";
    return ends ? out + "0\r\n\r\n" : out;
}
std::string event(const std::string& data, const std::string& id = {}) {
    return (id.empty() ? "" : "id: " + id + "\n") + "data: " + data + "\n\n";
}

using Script = std::function<Reply(const Posted&)>;

// Plays a server: on every connection, one request after the other.
class McpWorld : public ToolWorld {
 public:
    explicit McpWorld(Script script, const std::string& more = {}, const std::string& rest = {})
        : script_(std::move(script)),
          server_(io.get_executor(), [this](StubConnection& connection) {
              return serve(connection);
          }) {
        build(
            "  create:\n    effect: write\n    execute: { type: mcp, url: '" + url() +
                "', tool: create, arguments: { region: eu, ref: '{{ operation.key }}' }" + more +
                " }\n    reconcile: { type: mcp, url: '" + url() +
                "', tool: search, arguments: { q: '{{ operation.key }}' }, items: "
                "/structuredContent/items, match: { /ref: '{{ operation.key }}' } }\n",
            rest
        );
    }
    [[nodiscard]] std::string url() const {
        return "http://127.0.0.1:" + std::to_string(server_.port()) + "/mcp";
    }
    // How often a method was asked for.
    [[nodiscard]] int count(const std::string& method) const {
        return static_cast<int>(std::count_if(seen.begin(), seen.end(), [&](const Posted& one) {
            return one.method() == method;
        }));
    }
    [[nodiscard]] const Posted& last(const std::string& method) const {
        const auto found = std::find_if(seen.rbegin(), seen.rend(), [&](const Posted& one) {
            return one.method() == method;
        });
        REQUIRE(found != seen.rend());
        return *found;
    }
    std::string run(outbox::Deadline deadline = outbox::Deadline::after(20s)) {
        outcome = execute("create", deadline);
        return std::string(outbox::outcome_name(outcome));
    }

    std::vector<Posted> seen;
    outbox::Outcome outcome;

 private:
    boost::asio::awaitable<void> serve(StubConnection& connection) {
        for (;;) {
            auto reading = connection.read_request();
            const auto text = co_await std::move(reading);
            if (text.empty()) co_return;
            const auto split = text.find("\r\n\r\n") + 4;
            auto parsed = outbox::parse_json(text.substr(split));
            seen.push_back({text.substr(0, split), parsed.value ? *parsed.value : Json{}});
            const auto reply = script_(Posted(seen.back()));
            auto sending = connection.send(reply.bytes);
            co_await std::move(sending);
            if (reply.then == Reply::Then::reset) {
                connection.reset();
                co_return;
            }
            if (reply.then == Reply::Then::close) {
                connection.close();
                co_return;
            }
            if (reply.then == Reply::Then::stall) {
                auto stalling = connection.stall();
                co_await std::move(stalling);
                co_return;
            }
        }
    }

    Script script_;
    StubHttpServer server_;
};

// Answers what goes before a call as a server of the current revision, and the call as it is told.
Script modern(Script call) {
    return [call](const Posted& posted) -> Reply {
        if (posted.method() == "server/discover") {
            return {answer(rpc(posted, R"("result":{"supportedVersions":["2026-07-28"]})"))};
        }
        return call(posted);
    };
}

// As one that wants initialize.
Script legacy(Script call, const std::string& session = "Mcp-Session-Id: s1\r\n") {
    return [=](const Posted& posted) -> Reply {
        if (posted.method() == "server/discover") {
            return {
                answer(R"({"jsonrpc":"2.0","error":{"code":-32000,"message":"?"},"id":null})", 400)
            };
        }
        if (posted.method() == "initialize") {
            return {
                answer(rpc(posted, R"("result":{"protocolVersion":"2025-06-18"})"), 200, session)
            };
        }
        if (posted.method() == "notifications/initialized") return {answer("", 202)};
        return call(posted);
    };
}

Reply just_done(const Posted& posted) {
    return {answer(done(posted))};
}

}  // namespace

TEST_CASE("a server of the current revision is asked once how to speak to it", "[mcp]") {
    McpWorld world(modern(just_done));
    CHECK(world.run() == "succeeded");
    CHECK(outbox::to_text(get<Succeeded>(world.outcome).result) == R"({"id":7})");
    CHECK(world.run() == "succeeded");
    CHECK(world.count("server/discover") == 1);
    CHECK(world.count("tools/call") == 2);
    const auto& call = world.last("tools/call");
    CHECK(call.has("MCP-Protocol-Version: 2026-07-28\r\n"));
    CHECK(call.has("Mcp-Method: tools/call\r\n"));
    CHECK(call.has("Mcp-Name: create\r\n"));
    CHECK(call.has("Accept: application/json, text/event-stream\r\n"));
    const auto& params = *call.body.find("params");
    CHECK(params.at_pointer("/arguments/ref")->equals(Json("key-1")));
    CHECK(params.at_pointer("/_meta/dev.outboxd~1idempotency-key")->equals(Json("key-1")));
    // The ids of one session are all different.
    std::set<std::string> ids;
    for (const auto& one : world.seen) CHECK(ids.insert(one.id()).second);
}

TEST_CASE("an older server gets a session, which the look-up shares", "[mcp]") {
    McpWorld world(legacy([](const Posted& posted) -> Reply {
        const auto* name = posted.body.at_pointer("/params/name");
        if (name->equals(Json("search"))) {
            return {
                answer(rpc(posted, R"("result":{"content":[],"structuredContent":{"items":[]}})"))
            };
        }
        return just_done(posted);
    }));
    CHECK(world.run() == "succeeded");
    CHECK(std::holds_alternative<Absent>(world.probe("create")));
    CHECK(world.count("initialize") == 1);
    CHECK(world.count("notifications/initialized") == 1);
    const auto& call = world.last("tools/call");
    CHECK(call.has("Mcp-Session-Id: s1\r\n"));
    CHECK(call.has("MCP-Protocol-Version: 2025-06-18\r\n"));
    CHECK_FALSE(call.has("Mcp-Method"));
    CHECK(call.body.at_pointer("/params/_meta") == nullptr);  // nothing to say with a look-up
}

TEST_CASE("an answer in a stream that never ends", "[mcp]") {
    McpWorld world(legacy([](const Posted& posted) -> Reply {
        if (posted.method() != "tools/call") return {answer("", 202)};
        return {
            stream(
                ": hello\n\n" + event(R"({"jsonrpc":"2.0","method":"notifications/progress"})") +
                    event(R"({"jsonrpc":"2.0","id":"p1","method":"ping"})") +
                    event(R"({"jsonrpc":"2.0","id":5,"method":"elicitation/create","params":{}})") +
                    event(done(posted)),
                false
            ),
            Reply::Then::stall
        };
    }));
    CHECK(world.run() == "succeeded");
    // What the server asked meanwhile was answered, in its session.
    std::vector<std::string> replies;
    for (const auto& one : world.seen) {
        if (one.method().empty()) {
            replies.push_back(outbox::to_text(one.body));
            CHECK(one.has("Mcp-Session-Id: s1\r\n"));
        }
    }
    REQUIRE(replies.size() == 2);
    CHECK(replies[0] == R"({"jsonrpc":"2.0","id":"p1","result":{}})");
    CHECK_THAT(replies[1], ContainsSubstring("-32601"));
}

TEST_CASE("a server of the current revision may not ask, and is not answered", "[mcp]") {
    McpWorld world(modern([](const Posted& posted) -> Reply {
        return {stream(event(R"({"jsonrpc":"2.0","id":1,"method":"ping"})") + event(done(posted)))};
    }));
    CHECK(world.run() == "succeeded");
    CHECK(world.seen.size() == 2);
}

TEST_CASE(
    "a session that ended is opened anew, and the call that it refused made once more", "[mcp]"
) {
    const int status = GENERATE(404, 400);
    int refused = 0;
    bool lost = false;
    McpWorld world(legacy([&](const Posted& posted) -> Reply {
        if (!std::exchange(lost, false)) return just_done(posted);
        ++refused;
        return {answer(
            R"({"jsonrpc":"2.0","error":{"code":-32001,"message":"gone"},"id":null})", status
        )};
    }));
    CHECK(world.run() == "succeeded");
    lost = true;
    CHECK(world.run() == "succeeded");
    CHECK(refused == 1);
    CHECK(world.count("initialize") == 2);
    CHECK(world.count("tools/call") == 3);
}

TEST_CASE("a call that a fresh session refuses is refused", "[mcp]") {
    McpWorld world(legacy([](const Posted&) -> Reply { return {answer("{}", 404)}; }));
    CHECK(world.run() == "rejected");
    CHECK(world.count("tools/call") == 1);
    CHECK(world.run() == "rejected");
    CHECK(world.count("initialize") == 2);
}

TEST_CASE("a server that an older one replaced is asked anew", "[mcp]") {
    bool old = false;
    const auto before = modern(just_done);
    const auto after = legacy(just_done, "");
    McpWorld world([&](const Posted& posted) -> Reply {
        if (!old) return before(posted);
        if (posted.method() == "tools/call" && posted.has("Mcp-Method")) {
            return {answer("Bad Request", 400)};
        }
        return after(posted);
    });
    CHECK(world.run() == "succeeded");
    old = true;
    CHECK(world.run() == "succeeded");
    CHECK(world.count("initialize") == 1);
    CHECK_FALSE(world.last("tools/call").has("Mcp-Session-Id"));
}

TEST_CASE("a stream that breaks off is asked on where the server numbers its events", "[mcp]") {
    const bool reset = GENERATE(false, true);
    McpWorld world(legacy([&](const Posted& posted) -> Reply {
        static std::string call;
        if (posted.head.starts_with("GET")) {
            CHECK(posted.has("Last-Event-ID: e1\r\n"));
            CHECK(posted.has("Mcp-Session-Id: s1\r\n"));
            return {stream(event(call, "e2"))};
        }
        call = done(posted);
        const auto begun = stream("retry: 5\nid: e1\ndata:\n\n", false);
        return {
            reset ? begun : begun + "0\r\n\r\n", reset ? Reply::Then::reset : Reply::Then::keep
        };
    }));
    CHECK(world.run() == "succeeded");
    CHECK(world.count("tools/call") == 1);
}

TEST_CASE("a stream without an answer is unknown", "[mcp]") {
    SECTION("and cannot be asked on") {
        McpWorld world(legacy([](const Posted& posted) -> Reply {
            if (posted.head.starts_with("GET")) return {answer("", 405)};
            return {stream(event("{}", "e1"))};
        }));
        CHECK(world.run() == "unknown");
        CHECK(get<Unknown>(world.outcome).cause == Cause::reset);
    }
    SECTION("of the current revision, where no event is sent twice") {
        McpWorld world(modern([](const Posted&) -> Reply { return {stream(event("{}", "e1"))}; }));
        CHECK(world.run() == "unknown");
        CHECK(world.seen.size() == 2);
    }
    SECTION("that goes on for ever") {
        McpWorld world(modern([](const Posted&) -> Reply {
            return {stream(event(R"({"jsonrpc":"2.0","method":"x"})"), false), Reply::Then::stall};
        }));
        CHECK(world.run(outbox::Deadline::after(1s)) == "unknown");
        CHECK(get<Unknown>(world.outcome).cause == Cause::timeout);
    }
    SECTION("that is reset") {
        McpWorld world(modern([](const Posted&) -> Reply {
            return {stream(event("{}"), false), Reply::Then::reset};
        }));
        CHECK(world.run() == "unknown");
        CHECK(get<Unknown>(world.outcome).cause == Cause::reset);
    }
}

TEST_CASE("only what answers this very call counts", "[mcp]") {
    struct Row {
        std::function<std::string(const Posted&)> bytes;
        std::string end;
    };
    const std::string result = R"("result":{"content":[]})";
    const auto with_id = [&](const std::string& id) {
        return R"({"jsonrpc":"2.0","id":)" + id + "," + result + "}";
    };
    const std::vector<Row> rows = {
        {[&](const Posted&) { return answer(with_id("4711")); }, "unknown"},
        {[&](const Posted& p) { return answer(with_id("\"" + p.id() + "\"")); }, "unknown"},
        {[&](const Posted&) { return answer(with_id("null")); }, "unknown"},
        {[&](const Posted&) { return answer(""); }, "unknown"},
        {[&](const Posted&) { return answer("", 202); }, "unknown"},
        {[&](const Posted&) { return answer("<html>"); }, "unknown"},
        {[&](const Posted& p) { return answer(rpc(p, R"("result":{"content":"x"})")); }, "unknown"},
        {[&](const Posted& p) { return answer(rpc(p, R"("result":[])")); }, "unknown"},
        {[&](const Posted& p) {
             return answer(rpc(p, result + R"(,"error":{"code":1,"message":""})"));
         },
         "unknown"},
        {[&](const Posted& p) { return stream(event(with_id("4711")) + event(done(p))); },
         "succeeded"},
        {[&](const Posted& p) { return answer("[" + with_id("4711") + "," + done(p) + "]"); },
         "succeeded"},
        {[&](const Posted& p) { return stream(event(error(p, -32601))); }, "rejected"},
        {[&](const Posted& p) { return stream(event(error(p, -32603))); }, "unknown"},
        {[&](const Posted& p) { return answer(error(p, -32602)); }, "unknown"},
        {[&](const Posted& p) { return answer(error(p, -32601), 404); }, "rejected"},
        {[&](const Posted&) { return answer("{}", 500); }, "unknown"},
        {[&](const Posted&) { return answer("{}", 429); }, "retry"},
        {[&](const Posted&) { return answer("{}", 401); }, "retry"},
        {[&](const Posted&) { return answer("{}", 409); }, "unknown"},
    };
    for (std::size_t i = 0; i < rows.size(); ++i) {
        INFO(i);
        McpWorld world(modern([&](const Posted& posted) -> Reply {
            return {rows[i].bytes(posted)};
        }));
        CHECK(world.run() == rows[i].end);
        CHECK(world.count("tools/call") >= 1);
    }
}

TEST_CASE("the size of an answer is limited, the length of a stream is not", "[mcp]") {
    const std::string limits = "limits: { response: 64KiB }\n";
    SECTION("a document") {
        McpWorld world(
            modern([](const Posted& posted) -> Reply {
                return {answer(
                    rpc(posted,
                        R"("result":{"content":[{"type":"text","text":")" +
                            std::string(100'000, 'a') + R"("}]})")
                )};
            }),
            {},
            limits
        );
        CHECK(world.run() == "unknown");
        CHECK(get<Unknown>(world.outcome).cause == Cause::unreadable);
    }
    SECTION("one event, in one line or in many") {
        const bool one = GENERATE(true, false);
        McpWorld world(
            modern([one](const Posted&) -> Reply {
                std::string text;
                for (int i = 0; i < 2000; ++i)
                    text += std::string(one ? "" : "\ndata: ") + std::string(60, 'a');
                return {stream("data: " + text, false), Reply::Then::stall};
            }),
            {},
            limits
        );
        CHECK(world.run() == "unknown");
        CHECK(get<Unknown>(world.outcome).cause == Cause::unreadable);
    }
    SECTION("many events") {
        McpWorld world(
            modern([](const Posted& posted) -> Reply {
                std::string events;
                const auto filler =
                    R"({"jsonrpc":"2.0","method":"notifications/message","params":{"data":")" +
                    std::string(1000, 'a') + "\"}}";
                for (int i = 0; i < 1000; ++i) events += event(filler);
                return {stream(events + event(done(posted)))};
            }),
            {},
            limits
        );
        CHECK(world.run() == "succeeded");
    }
}

TEST_CASE("what fails before the call is no attempt", "[mcp]") {
    const auto not_sent = [](McpWorld& world) {
        CHECK(world.run() == "retry");
        CHECK_FALSE(get<RetryLater>(world.outcome).counts);
        CHECK(world.count("tools/call") == 0);
        return get<RetryLater>(world.outcome).error;
    };
    SECTION("the server is down, or fails") {
        const int status = GENERATE(401, 403, 429, 503);
        McpWorld world([status](const Posted&) -> Reply { return {answer("{}", status)}; });
        CHECK(not_sent(world).code == "not_sent_mcp");
        CHECK(world.count("initialize") == 0);
    }
    SECTION("nobody is there") {
        McpWorld world([](const Posted&) -> Reply { return {{}, Reply::Then::reset}; });
        CHECK(not_sent(world).code == "not_sent_mcp");
    }
    SECTION("it does not answer initialize") {
        McpWorld world([](const Posted& posted) -> Reply {
            return {answer("{}", posted.method() == "initialize" ? 500 : 404)};
        });
        CHECK(not_sent(world).code == "not_sent_mcp");
        CHECK(world.count("initialize") == 1);
    }
    SECTION("no revision in common") {
        McpWorld world([](const Posted& posted) -> Reply {
            if (posted.method() == "initialize") {
                return {answer(rpc(posted, R"("result":{"protocolVersion":"2031-01-01"})"))};
            }
            return {answer("", 405)};
        });
        CHECK_THAT(not_sent(world).message, ContainsSubstring("2031-01-01"));
    }
    SECTION("a session id that is none") {
        McpWorld world(legacy(just_done, "Mcp-Session-Id: a b\r\n"));
        CHECK(not_sent(world).code == "not_sent_mcp");
    }
    SECTION("the deadline") {
        McpWorld world([](const Posted&) -> Reply { return {{}, Reply::Then::stall}; });
        CHECK(world.run(outbox::Deadline::after(300ms)) == "retry");
        CHECK(world.count("tools/call") == 0);
    }
}

TEST_CASE("calls that begin together ask once how to speak to the server", "[mcp]") {
    McpWorld world(legacy(just_done));
    constexpr int kCalls = 8;
    int succeeded = 0;
    for (int i = 0; i < kCalls; ++i) {
        boost::asio::co_spawn(
            world.io,
            world.tools->find("create")->tool->execute(
                call_with("{}"), outbox::Deadline::after(20s)
            ),
            [&](std::exception_ptr error, outbox::Outcome outcome) {
                CHECK_FALSE(error);
                succeeded += std::holds_alternative<Succeeded>(outcome) ? 1 : 0;
            }
        );
    }
    for (int i = 0; i < 3000 && succeeded < kCalls; ++i) world.io.run_for(10ms);
    CHECK(succeeded == kCalls);
    CHECK(world.count("initialize") == 1);
    CHECK(world.count("tools/call") == kCalls);
}

TEST_CASE("headers that the tool's schema wants are learned when they are missed", "[mcp]") {
    McpWorld world(modern([](const Posted& posted) -> Reply {
        if (posted.method() == "tools/list") {
            const bool second = posted.body.at_pointer("/params/cursor") != nullptr;
            return {answer(rpc(
                posted,
                second
                    ? R"("result":{"tools":[{"name":"create","inputSchema":{"properties":{"region":
                            {"type":"string","x-mcp-header":"Region"}}}}]})"
                    : R"("result":{"tools":[],"nextCursor":"b"})"
            ))};
        }
        if (!posted.has("Mcp-Param-Region: eu\r\n")) return {answer(error(posted, -32020), 400)};
        return just_done(posted);
    }));
    CHECK(world.run() == "succeeded");
    CHECK(world.count("tools/call") == 2);
    CHECK(world.run() == "succeeded");
    CHECK(world.count("tools/call") == 3);
    CHECK(world.count("tools/list") == 2);
}

TEST_CASE("a server that misses headers for no reason is not asked for ever", "[mcp]") {
    McpWorld world(modern([](const Posted& posted) -> Reply {
        if (posted.method() == "tools/list") {
            return {answer(rpc(posted, R"("result":{"tools":[{"name":"create","inputSchema":{}}]})")
            )};
        }
        return {answer(error(posted, -32020), 400)};
    }));
    CHECK(world.run() == "rejected");
    CHECK(world.count("tools/call") == 1);
}

TEST_CASE("a server that speaks only older revisions says so", "[mcp]") {
    McpWorld world([](const Posted& posted) -> Reply {
        if (posted.method() == "server/discover") {
            return {answer(error(posted, -32022, R"(,"data":{"supported":["2025-03-26"]})"), 400)};
        }
        if (posted.method() == "initialize") {
            return {answer(rpc(posted, R"("result":{"protocolVersion":"2025-03-26"})"))};
        }
        if (posted.method() == "notifications/initialized") return {answer("", 202)};
        return just_done(posted);
    });
    CHECK(world.run() == "succeeded");
    CHECK(world.last("initialize")
              .body.at_pointer("/params/protocolVersion")
              ->equals(Json("2025-03-26")));
    CHECK_FALSE(world.last("tools/call").has("MCP-Protocol-Version"));
}

TEST_CASE("a server that asks for patience closes the lane of its tool", "[mcp]") {
    McpWorld world(modern([](const Posted&) -> Reply {
        return {answer("{}", 429, "Retry-After: 30\r\n")};
    }));
    CHECK(world.run() == "retry");
    CHECK(get<RetryLater>(world.outcome).after == 30s);
    const auto* create = world.tools->find("create");
    REQUIRE(create->gate);
    CHECK(create->gate->allowance(outbox::BootClock::now()) == 0);
    // Its look-up asks the same host.
    REQUIRE(create->probe_gate);
    CHECK(create->probe_gate != create->gate);
    CHECK(create->probe_gate->allowance(outbox::BootClock::now()) == 0);
}

namespace {

// A server of 2025-11-25 that runs its tool as a task, whose state the test sets.
struct TaskServer {
    std::string state = "working";
    std::string result = R"("result":{"content":[],"structuredContent":{"id":7}})";
    bool listed = true;
    int not_found = 0;  // so many looks are answered as if the session were gone

    Reply operator()(const Posted& posted) {
        const auto method = posted.method();
        if (method == "server/discover") {
            return {answer(error(posted, -32601), 404)};
        }
        if (method == "initialize") {
            const auto* offers =
                R"("result":{"protocolVersion":"2025-11-25","capabilities":{"tasks":{"requests":{"tools":{"call":{}}}}}})";
            return {answer(rpc(posted, offers), 200, "Mcp-Session-Id: s1\r\n")};
        }
        if (method == "notifications/initialized") return {answer("", 202)};
        if (method == "tools/list") {
            if (!listed) return {answer(error(posted, -32603))};
            return {answer(rpc(
                posted,
                R"("result":{"tools":[{"name":"create","execution":{"taskSupport":"required"}},{"name":"search"}]})"
            ))};
        }
        const std::string task = R"("taskId":"t-1","pollInterval":1,"status":")" + state + "\"";
        if (method == "tools/call" && posted.body.at_pointer("/params/task") != nullptr) {
            return {answer(rpc(
                posted, R"("result":{"task":{"taskId":"t-1","pollInterval":1,"status":"working"}})"
            ))};
        }
        if (method == "tasks/get") {
            if (not_found-- > 0) return {answer("", 404)};
            return {answer(rpc(posted, R"("result":{)" + task + "}"))};
        }
        if (method == "tasks/result") return {answer(rpc(posted, result))};
        return {answer(rpc(
            posted, R"("result":{"isError":true,"content":[{"type":"text","text":"needs a task"}]})"
        ))};
    }
};

}  // namespace

TEST_CASE("a tool that must run as a task is called as one, and followed", "[mcp]") {
    const auto server = std::make_shared<TaskServer>();
    server->state = "completed";
    McpWorld world([server](const Posted& posted) { return (*server)(posted); });
    CHECK(world.run() == "succeeded");
    CHECK(outbox::to_text(get<Succeeded>(world.outcome).result) == R"({"id":7})");
    CHECK(world.run() == "succeeded");
    CHECK(world.count("tools/list") == 1);
    CHECK(world.count("tools/call") == 2);
    CHECK(world.count("tasks/get") == 2);
    CHECK(world.last("tasks/get").body.at_pointer("/params/taskId")->equals(Json("t-1")));
    CHECK(world.last("tasks/get").has("Mcp-Session-Id: s1\r\n"));
    // A session that ended meanwhile: asked again under a new one, the call is not made again.
    server->not_found = 1;
    CHECK(world.run() == "succeeded");
    CHECK(world.count("initialize") == 2);
    CHECK(world.count("tools/call") == 3);
}

TEST_CASE("a task that does not end in time was taken, and is not called again", "[mcp]") {
    const auto server = std::make_shared<TaskServer>();
    McpWorld world([server](const Posted& posted) { return (*server)(posted); });
    CHECK(world.run(outbox::Deadline::after(1s)) == "accepted");
    server->state = "input_required";
    CHECK(world.run() == "attention");
    server->state = "failed";
    server->result = R"("error":{"code":-32601,"message":"no such upstream"})";
    CHECK(world.run() == "unknown");
    CHECK(world.count("tools/call") == 3);
}

TEST_CASE("a server that cannot list its tools is called plainly", "[mcp]") {
    const auto server = std::make_shared<TaskServer>();
    server->listed = false;
    McpWorld world([server](const Posted& posted) { return (*server)(posted); });
    CHECK(world.run() == "unknown");  // its tool refused, in a form that may come after an effect
    CHECK(world.count("tools/call") == 1);
}

TEST_CASE("a modern server's task is followed by its own headers", "[mcp]") {
    McpWorld world(modern([](const Posted& posted) -> Reply {
        if (posted.method() == "tasks/get") {
            return {answer(rpc(
                posted,
                R"("result":{"resultType":"complete","taskId":"t-1","status":"completed","result":{"content":[],"structuredContent":{"id":7}}})"
            ))};
        }
        return {answer(rpc(
            posted,
            R"("result":{"resultType":"task","taskId":"t-1","status":"working","pollIntervalMs":1})"
        ))};
    }));
    CHECK(world.run() == "succeeded");
    CHECK(world.last("tasks/get").has("Mcp-Method: tasks/get\r\n"));
    CHECK(world.last("tasks/get").has("Mcp-Name: t-1\r\n"));
    CHECK(world.count("tasks/result") == 0);
}

TEST_CASE("a server of the old transport is told how it can be reached", "[mcp]") {
    for (const int status : {404, 405}) {
        McpWorld world([status](const Posted&) -> Reply { return {answer("", status)}; });
        CHECK(world.run() == "retry");
        CHECK(get<RetryLater>(world.outcome).error.message.find("/sse") != std::string::npos);
        CHECK_FALSE(get<RetryLater>(world.outcome).counts);
    }
}
