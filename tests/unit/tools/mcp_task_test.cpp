// A call that was answered with a task: followed, kept, looked at later, and what its ends mean.
#include "tools/mcp_task.hpp"

#include "tests/unit/tools/tool_fixture.hpp"
#include "tools/mcp_task_probe.hpp"

using namespace test;
using outbox::Absent;
using outbox::Accepted;
using outbox::Attention;
using outbox::Cause;
using outbox::Conflict;
using outbox::Found;
using outbox::Inconclusive;
using outbox::Pending;
using outbox::Rejected;
using outbox::Succeeded;
using outbox::Unknown;
using tools::McpTask;
using tools::McpTaskEnd;

namespace {

tools::RpcMessage result(const std::string& body) {
    tools::RpcMessage message;
    message.kind = tools::RpcMessage::Kind::result;
    message.body = json(body);
    return message;
}

tools::RpcMessage error(int code, const std::string& text) {
    tools::RpcMessage message;
    message.kind = tools::RpcMessage::Kind::error;
    message.code = code;
    message.body.set("code", Json(code));
    message.body.set("message", Json(text));
    return message;
}

std::string task(const std::string& state, const std::string& more = {}) {
    return R"({"taskId":"t-1","status":")" + state + R"(","pollInterval":1)" + more + "}";
}

// A server's answers about a task, in order; what is asked beyond them is a fault of the test.
class Script final : public tools::McpTaskLine {
 public:
    std::deque<Asked> answers;
    std::vector<std::string> asked;
    int waits = 0;
    bool stopping = false;

    Script& say(tools::RpcMessage message) {
        Asked one;
        one.answer = std::move(message);
        answers.push_back(std::move(one));
        return *this;
    }
    Script& fail(bool hopeless = false) {
        Asked one;
        one.failure = tools::not_called("not_sent_connect", "refused");
        one.hopeless = hopeless;
        answers.push_back(std::move(one));
        return *this;
    }
    boost::asio::awaitable<Asked> ask(std::string_view method, std::string id) override {
        asked.push_back(std::string(method) + " " + id);
        REQUIRE_FALSE(answers.empty());
        auto one = std::move(answers.front());
        answers.pop_front();
        co_return one;
    }
    boost::asio::awaitable<bool> wait(std::chrono::nanoseconds) override {
        ++waits;
        co_return !stopping;
    }
};

boost::asio::awaitable<bool> note(std::vector<std::string>* kept, int* refusals, std::string id) {
    if (*refusals > 0) {
        --*refusals;
        co_return false;
    }
    kept->push_back(std::move(id));
    co_return true;
}

struct Following {
    Script line;
    std::vector<std::string> kept;
    int refusals = 0;

    tools::McpEnd follow(const std::string& created, std::chrono::nanoseconds time = 20s) {
        auto made = tools::read_created_task(result(created));
        REQUIRE(made);
        const auto keep = [this](std::string id) { return note(&kept, &refusals, std::move(id)); };
        return run_coroutine(
            io_,
            tools::follow_task(line, std::move(*made), keep, outbox::Deadline::after(time)),
            30s
        );
    }
    tools::McpEnd look() { return run_coroutine(io_, tools::look_at_task(line, "t-1"), 30s); }

 private:
    boost::asio::io_context io_;
};

const std::string kModern = R"({"resultType":"task","taskId":"t-1","status":"working"})";
const std::string kLegacy = R"({"task":{"taskId":"t-1","status":"working","pollInterval":1}})";

McpTaskEnd::How how(const tools::McpEnd& end) {
    const auto* task = std::get_if<McpTaskEnd>(&end.what);
    REQUIRE(task != nullptr);
    return task->how;
}

}  // namespace

TEST_CASE("what is a task, and what is a result") {
    CHECK(tools::read_created_task(result(kModern))->id == "t-1");
    CHECK(tools::read_created_task(result(kLegacy))->id == "t-1");
    for (const auto* none : {
             R"({"content":[],"task":{"taskId":"t","status":"working"}})",
             R"({"structuredContent":{},"task":{"taskId":"t","status":"working"}})",
             R"({"resultType":"complete","taskId":"t","status":"working"})",
             R"({"resultType":"task","status":"working"})",
             R"({"resultType":"task","taskId":7,"status":"working"})",
             R"({"resultType":"task","taskId":"t","status":"asleep"})",
             R"({"task":"t"})",
             R"({})",
         }) {
        INFO(none);
        CHECK_FALSE(tools::read_created_task(result(none)));
    }
    CHECK_FALSE(tools::read_created_task(error(-1, "x")));
    // An id that nothing could be asked by.
    CHECK(
        tools::read_created_task(result(R"({"task":{"taskId":"","status":"working"}})"))->id.empty()
    );
    CHECK(tools::read_created_task(result(R"({"task":{"taskId":"a\u0000","status":"working"}})"))
              ->id.empty());
    const auto endless =
        R"({"task":{"taskId":")" + std::string(2000, 'x') + R"(","status":"working"}})";
    CHECK(tools::read_created_task(result(endless))->id.empty());
}

TEST_CASE("how soon a task is looked at again is the server's word, within reason") {
    const auto poll = [](const std::string& member) {
        return tools::read_task(result(R"({"taskId":"t","status":"working")" + member + "}"))->poll;
    };
    CHECK(poll("") == 1s);
    CHECK(poll(R"(,"pollInterval":5000)") == 5s);
    CHECK(poll(R"(,"pollIntervalMs":700)") == 700ms);
    CHECK(poll(R"(,"pollInterval":0)") == 50ms);
    CHECK(poll(R"(,"pollInterval":-7)") == 50ms);
    CHECK(poll(R"(,"pollInterval":999999999999)") == 30s);
    CHECK(poll(R"(,"pollInterval":"5")") == 1s);
    CHECK(poll(R"(,"pollInterval":99999999999999999999999)") == 1s);
}

TEST_CASE("a task is followed to its end, and kept before it is looked at") {
    SECTION("its result is fetched (2025-11-25)") {
        Following f;
        f.line.say(result(task("working"))).say(result(task("completed")));
        f.line.say(result(R"({"content":[],"isError":false})"));
        const auto end = f.follow(kLegacy);
        CHECK(std::get<tools::Answer>(end.what).is_error == false);
        CHECK(end.of_task);
        CHECK(f.kept == std::vector<std::string>{"t-1"});
        CHECK(
            f.line.asked ==
            std::vector<std::string>{"tasks/get t-1", "tasks/get t-1", "tasks/result t-1"}
        );
    }
    SECTION("its result comes along (2026-07-28)") {
        Following f;
        f.line.say(result(task("completed", R"(,"result":{"content":[]})")));
        CHECK(std::get<tools::Answer>(f.follow(kModern).what).is_error == false);
        CHECK(f.line.asked.size() == 1);
    }
    SECTION("its error comes along, or is fetched") {
        Following f;
        f.line.say(result(task("failed", R"(,"error":{"code":-32050,"message":"no"})")));
        CHECK(std::get<tools::Answer>(f.follow(kModern).what).rpc_error == -32050);
        f.line.say(result(task("failed"))).say(error(-32603, "broke"));
        CHECK(std::get<tools::Answer>(f.follow(kLegacy).what).rpc_error == -32603);
    }
    SECTION("it had ended when it was told of") {
        Following f;
        f.line.say(result(task("completed"))).say(result(R"({"content":[]})"));
        const auto end = f.follow(R"({"task":{"taskId":"t-1","status":"completed"}})");
        CHECK(std::get<tools::Answer>(end.what).is_error == false);
        CHECK(f.line.waits == 0);
    }
    SECTION("ends that tell nothing of the call") {
        for (const auto& [state, expected] :
             {std::pair{"cancelled", McpTaskEnd::How::cancelled},
              std::pair{"input_required", McpTaskEnd::How::input_required}}) {
            Following f;
            f.line.say(result(task(state, R"(,"statusMessage":"why")")));
            const auto end = f.follow(kLegacy);
            CHECK(how(end) == expected);
            CHECK(std::get<McpTaskEnd>(end.what).message == "why");
        }
        Following f;
        f.line.say(error(-32602, "Task not found"));
        CHECK(how(f.follow(kLegacy)) == McpTaskEnd::How::forgotten);
    }
    SECTION("what cannot be kept now is kept later, and a look that fails is made again") {
        Following f;
        f.refusals = 2;
        f.line.fail().say(error(-32603, "busy")).say(result(R"({"no":"task"})"));
        f.line.say(result(R"({"taskId":"t-2","status":"completed","result":{"content":[]}})"));
        f.line.say(result(task("completed", R"(,"result":{"content":[]})")));
        CHECK(std::get<tools::Answer>(f.follow(kLegacy).what).is_error == false);
        CHECK(f.kept.size() == 1);
        CHECK(f.line.asked.size() == 5);
    }
    SECTION("what completed and has no result to be fetched meets no rule") {
        Following f;
        f.line.say(result(task("completed"))).say(error(-32602, "expired"));
        CHECK(std::get<tools::McpFailure>(f.follow(kLegacy).what).sent);
    }
    SECTION("the time is up while it works, or while nobody answers") {
        Following f;
        CHECK(how(f.follow(kLegacy, 100ms)) == McpTaskEnd::How::working);
        CHECK(f.kept.size() == 1);
        f.line.fail(true);
        // The call was sent, whatever became of the look.
        CHECK(std::get<tools::McpFailure>(f.follow(kLegacy).what).sent);
        f.line.stopping = true;
        CHECK(std::get<tools::McpFailure>(f.follow(kLegacy).what).error.code == "cancelled");
    }
    SECTION("an id that is none") {
        Following f;
        CHECK(std::get<tools::McpFailure>(
                  f.follow(R"({"task":{"taskId":"","status":"working"}})").what
        )
                  .sent);
        CHECK(f.kept.empty());
    }
}

TEST_CASE("one look at a task of an earlier attempt") {
    Following f;
    f.line.say(result(task("working")));
    CHECK(how(f.look()) == McpTaskEnd::How::working);
    f.line.fail();
    CHECK(std::get<tools::McpFailure>(f.look().what).sent);
    CHECK(f.line.waits == 0);
}

namespace {

class OneAnswer final : public tools::McpServer {
 public:
    tools::McpEnd end;
    std::vector<std::string> tasks;
    boost::asio::awaitable<tools::McpEnd> call(
        tools::McpCall call, const tools::Scope&, outbox::Deadline
    ) override {
        tasks.push_back(call.task.value_or("a call"));
        co_return end;
    }
};

class Otherwise final : public tools::Probe {
 public:
    Otherwise(outbox::Verdict verdict, int* asked) : verdict_(std::move(verdict)), asked_(asked) {}
    boost::asio::awaitable<outbox::Verdict> ask(outbox::ToolCall, outbox::Deadline) override {
        ++*asked_;
        co_return verdict_;
    }

 private:
    outbox::Verdict verdict_;
    int* asked_;
};

std::shared_ptr<const tools::McpExecute> execute(const std::string& outcomes) {
    const auto config = configuration(
        "  t:\n    effect: write\n    execute: { type: mcp, url: 'https://m.example/mcp', tool: "
        "create, arguments: { ref: '{{ operation.key }}' }" +
        outcomes + " }\n    reconcile: { type: manual, reason: a test }\n"
    );
    config::Diagnostics diagnostics;
    auto compiled = tools::compile_tool(config.tools[0], config, diagnostics);
    INFO(all_of(diagnostics));
    REQUIRE(compiled);
    return std::make_shared<const tools::McpExecute>(
        std::move(std::get<tools::McpExecute>(compiled->execute))
    );
}

tools::McpEnd of_task(McpTaskEnd::How how) {
    tools::McpEnd end;
    end.what = McpTaskEnd{how, "t-1", "said"};
    return end;
}

tools::McpEnd of_task(const tools::RpcMessage& message) {
    tools::McpEnd end;
    end.what = tools::to_answer(message);
    end.of_task = true;
    return end;
}

const std::string kRules =
    ", outcomes: [ { when: { is_error: false }, then: succeeded }, { when: { is_error: true, text: "
    "no }, then: rejected }, { when: { rpc_error: -32050 }, then: rejected } ]";

}  // namespace

TEST_CASE("what the end of a task means for its attempt, and for a look-up later") {
    const auto rules = execute(kRules);
    const auto call = call_with("{}");
    const tools::Scope scope{call};
    struct Row {
        const char* name;
        tools::McpEnd end;
        const char* outcome;
        const char* verdict;  // empty: the look-up decides, whose "absent" counts
    };
    const Row rows[] = {
        {"success", of_task(result(R"({"content":[]})")), "succeeded", "found"},
        {"a refusal by the rules",
         of_task(result(R"({"isError":true,"content":[{"type":"text","text":"no"}]})")),
         "rejected",
         "absent"},
        {"an error by the rules", of_task(error(-32050, "x")), "rejected", "absent"},
        {"another error of the tool",
         of_task(result(R"({"isError":true,"content":[{"type":"text","text":"?"}]})")),
         "unknown",
         ""},
        // Before a call it would mean that there is no such method; a task was at work.
        {"an error that comes before a call", of_task(error(-32601, "x")), "unknown", ""},
        {"at work", of_task(McpTaskEnd::How::working), "accepted", "pending"},
        {"a question", of_task(McpTaskEnd::How::input_required), "attention", "conflict"},
        {"cancelled", of_task(McpTaskEnd::How::cancelled), "unknown", ""},
        {"forgotten", of_task(McpTaskEnd::How::forgotten), "unknown", ""},
    };
    boost::asio::io_context io;
    for (const auto& row : rows) {
        INFO(row.name);
        CHECK(outbox::outcome_name(tools::judge(*rules, row.end, scope)) == row.outcome);
        const auto server = std::make_shared<OneAnswer>();
        server->end = row.end;
        int asked = 0;
        tools::McpTaskProbe probe(rules, server, std::make_unique<Otherwise>(Absent{}, &asked));
        auto known = call;
        known.handle = "t-1";
        const auto verdict = run_coroutine(io, probe.ask(known, outbox::Deadline::after(20s)), 30s);
        const std::string expected(row.verdict);
        CHECK(outbox::verdict_name(verdict) == (expected.empty() ? "absent" : expected));
        CHECK(asked == (expected.empty() ? 1 : 0));
        CHECK(server->tasks == std::vector<std::string>{"t-1"});
    }
}

TEST_CASE("a task that nobody could ask about makes no absence") {
    const auto rules = execute({});
    boost::asio::io_context io;
    for (const bool known : {true, false}) {
        for (const bool found : {true, false}) {
            const auto server = std::make_shared<OneAnswer>();
            server->end = tools::lost(Cause::reset, "reset", "gone");
            int asked = 0;
            const outbox::Verdict other = found ? outbox::Verdict(Found{}) : Absent{};
            tools::McpTaskProbe probe(rules, server, std::make_unique<Otherwise>(other, &asked));
            auto call = call_with("{}");
            if (known) call.handle = "t-1";
            const auto verdict =
                run_coroutine(io, probe.ask(call, outbox::Deadline::after(20s)), 30s);
            CHECK(asked == 1);
            CHECK(server->tasks.size() == (known ? 1 : 0));
            CHECK(
                outbox::verdict_name(verdict) == (found   ? "found"
                                                  : known ? "inconclusive"
                                                          : "absent")
            );
        }
    }
}
