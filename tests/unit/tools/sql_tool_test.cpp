// The sql adapter over a database that is a script: what is sent, and what the ends mean.
#include "tools/sql_tool.hpp"

#include "outbox/failpoint.hpp"
#include "tests/support/recorders.hpp"
#include "tests/unit/tools/tool_fixture.hpp"
#include "tools/toolset.hpp"

using namespace test;
using outbox::SqlFailure;
using outbox::SqlRows;
using When = outbox::SqlFailure::When;
namespace asio = boost::asio;

namespace {

// What the databases of one toolset answer, and what they were asked.
struct Script {
    SqlRows rows;
    std::optional<SqlFailure> failure;
    std::vector<outbox::SqlCall> calls;
    std::vector<std::optional<std::string>> opened;
};

// Judges as the real one does.
class ScriptedDatabase final : public outbox::SqlDatabase {
 public:
    explicit ScriptedDatabase(Script& script) : script_(script) {}

    asio::awaitable<outbox::SqlEnd> perform(
        outbox::SqlCall call, outbox::JudgeRows judge, std::optional<outbox::OwnAttempt> own
    ) override {
        script_.calls.push_back(std::move(call));
        outbox::SqlEnd end;
        end.failure = script_.failure;
        if (end.failure) co_return end;
        end.rows = script_.rows;
        end.outcome = judge(end.rows);
        if (own && std::holds_alternative<outbox::Succeeded>(end.outcome)) {
            end.written = own->decide(end.outcome);
        }
        co_return end;
    }

    asio::awaitable<outbox::SqlEnd> look_up(outbox::SqlCall call) override {
        script_.calls.push_back(std::move(call));
        outbox::SqlEnd end;
        end.failure = script_.failure;
        end.rows = script_.rows;
        co_return end;
    }

 private:
    Script& script_;
};

struct ScriptedDatabases final : outbox::SqlDatabases {
    Script script;
    std::unique_ptr<outbox::SqlDatabase> open(const std::optional<std::string>& dsn) override {
        script.opened.push_back(dsn);
        return std::make_unique<ScriptedDatabase>(script);
    }
};

SqlRows rows_from(int count, const std::string& text) {
    SqlRows rows;
    rows.count = count;
    rows.rows = json(text);
    return rows;
}

// One tool with everything around it, as the daemon builds it.
class SqlToolFixture {
 public:
    explicit SqlToolFixture(const std::string& members) {
        const auto config = configuration("  tool:\n" + members);
        config::Diagnostics diagnostics;
        toolset_ = tools::build_toolset(
            config, diagnostics, {io_.get_executor(), failpoints_, log_, nullptr, &databases}
        );
        INFO(all_of(diagnostics));
        REQUIRE(toolset_ != nullptr);
        entry = toolset_->find("tool");
    }

    outbox::Outcome perform(const std::string& arguments = "{}") {
        return perform(call_with(arguments));
    }
    outbox::Outcome perform(outbox::ToolCall call) {
        return run_coroutine(
            io_, entry->tool->execute(std::move(call), outbox::Deadline::after(5s)), 2s
        );
    }
    outbox::Verdict ask() {
        return run_coroutine(
            io_, entry->tool->probe(call_with("{}"), outbox::Deadline::after(5s)), 2s
        );
    }
    void answer(int count, const std::string& rows) {
        databases.script.failure.reset();
        databases.script.rows = rows_from(count, rows);
    }
    void fail(When when, std::string state = {}) {
        databases.script.failure = SqlFailure{when, std::move(state), "the server's words"};
    }
    [[nodiscard]] const outbox::SqlCall& last() const { return databases.script.calls.back(); }

    ScriptedDatabases databases;
    const outbox::ToolEntry* entry = nullptr;

 private:
    boost::asio::io_context io_;
    outbox::Failpoints failpoints_;
    RecordingLog log_;
    std::unique_ptr<outbox::Toolset> toolset_;
};

const std::string kOwn = R"(
    execute:
      type: sql
      statement: "UPDATE account SET credit = credit + (:amount)::numeric WHERE id = :account RETURNING id, credit"
      parameters: { amount: "{{ arguments.amount }}", account: "{{ arguments.account | optional }}" }
      statement_timeout: 3s
      outcomes:
        - { when: { rows: 0 }, then: rejected, code: no_such_account }
        - { when: { rows: 1, body: { /0/credit: 0 } }, then: retry, retry_after: 2s }
        - { when: { rows: 1 }, then: succeeded, result: { id: /0/id, credit: /0/credit } }
)";

const std::string kElsewhere = R"yaml(
    execute:
      type: sql
      dsn: "host=billing password=hunter22 dbname=b"
      statement: "INSERT INTO credit (ref, amount) VALUES (:ref, :amount)"
      parameters: { ref: "{{ operation.key }}", amount: "{{ arguments.amount }}" }
      outcomes:
        - { when: { rows: 1 }, then: succeeded }
        - { when: { rows: 2 }, then: accepted }
        - { when: { rows: 3 }, then: unknown }
        - { when: { rows: 4 }, then: attention }
    reconcile:
      type: sql
      dsn: "host=billing password=hunter22 dbname=b"
      statement: "SELECT amount FROM credit WHERE ref = :ref"
      parameters: { ref: "{{ operation.key }}" }
      verdicts: [ { when: { rows: 1 }, then: found, result: { amount: /0/amount } }, { when: { rows: 0 }, then: absent } ]
)yaml";

}  // namespace

TEST_CASE("values travel as parameters, each as SQL takes it", "[tools]") {
    SqlToolFixture tool(kOwn);
    tool.answer(1, R"([{"id": 7, "credit": 12.50}])");
    const auto outcome =
        tool.perform(R"({"amount": 12.50, "account": "'; DROP TABLE account; --"})");
    const auto& done = get<outbox::Succeeded>(outcome);
    CHECK(to_text(done.result) == R"({"id":7,"credit":12.50})");
    CHECK(
        tool.last().statement ==
        "UPDATE account SET credit = credit + ($1)::numeric WHERE id = $2 RETURNING id, credit"
    );
    CHECK(tool.last().parameters[0] == "12.50");
    CHECK(tool.last().parameters[1] == "'; DROP TABLE account; --");
    CHECK(tool.last().statement_timeout == 3s);
    CHECK_FALSE(tool.last().read_only);
    REQUIRE(tool.databases.script.opened.size() == 1);
    CHECK_FALSE(tool.databases.script.opened[0]);

    const auto sent = [&](const std::string& arguments) {
        (void)tool.perform(arguments);
        return tool.last().parameters;
    };
    CHECK(sent(R"({"amount": true})")[0] == "true");
    CHECK_FALSE(sent(R"({"amount": null})")[0]);
    CHECK_FALSE(sent(R"({"amount": 1})")[1]);
    CHECK(sent(R"({"amount": {"a": [1, "x"]}})")[0] == R"({"a":[1,"x"]})");
    CHECK(sent(R"({"amount": 9007199254740993.10})")[0] == "9007199254740993.10");
    CHECK(sent(R"({"amount": "{{ operation.key }}"})")[0] == "{{ operation.key }}");
}

TEST_CASE(
    "what Postgres cannot take, and what is missing, is refused before it is sent", "[tools]"
) {
    SqlToolFixture tool(kOwn);
    for (const auto* arguments : {R"({"amount": "a\u0000b"})", "{}"}) {
        const auto outcome = tool.perform(arguments);
        const auto& refused = get<outbox::Rejected>(outcome);
        CHECK_FALSE(refused.sent);
    }
    CHECK(tool.databases.script.calls.empty());
}

TEST_CASE("rules see rows and their values; what none describes is rolled back", "[tools]") {
    SqlToolFixture tool(kOwn);
    tool.answer(0, "[]");
    auto outcome = tool.perform(R"({"amount": 1})");
    CHECK(get<outbox::Rejected>(outcome).error.code == "no_such_account");
    CHECK(get<outbox::Rejected>(outcome).proves_absence);
    tool.answer(1, R"([{"id": 7, "credit": 0}])");
    outcome = tool.perform(R"({"amount": 1})");
    CHECK(get<outbox::RetryLater>(outcome).after == 2000ms);
    CHECK(get<outbox::RetryLater>(outcome).error.code == "rows_1");
    tool.answer(2, R"([{"id": 7}, {"id": 8}])");
    outcome = tool.perform(R"({"amount": 1})");
    CHECK(get<outbox::Rejected>(outcome).error.code == "no_outcome");
    CHECK(get<outbox::Rejected>(outcome).proves_absence);
    // Too many bytes for a rule that looks into them: on the own database rolled back as well.
    tool.answer(1, "[]");
    tool.databases.script.rows.truncated = true;
    outcome = tool.perform(R"({"amount": 1})");
    CHECK(get<outbox::Rejected>(outcome).error.code == "unreadable");
}

TEST_CASE("what a SQLSTATE means after a rollback", "[tools]") {
    SqlToolFixture tool(kOwn);
    for (const auto* state :
         {"40001",
          "40P01",
          "55P03",
          "57014",
          "57P01",
          "25P03",
          "25006",
          "08006",
          "53300",
          "58030",
          "XX000",
          ""}) {
        INFO(state);
        tool.fail(When::rolled_back, state);
        const auto outcome = tool.perform(R"({"amount": 1})");
        CHECK(get<outbox::RetryLater>(outcome).counts);
    }
    for (const auto* state :
         {"22P02", "23505", "23514", "42501", "42P01", "42601", "P0001", "0A000"}) {
        INFO(state);
        tool.fail(When::rolled_back, state);
        const auto outcome = tool.perform(R"({"amount": 1})");
        const auto& rejected = get<outbox::Rejected>(outcome);
        CHECK(rejected.error.code == "sql_" + std::string(state));
        CHECK(rejected.error.message.rfind("the server's words", 0) == 0);
        CHECK(rejected.proves_absence);
        CHECK(
            (rejected.error.message.find("GRANT") != std::string::npos) ==
            (std::string(state) == "42501")
        );
    }
}

TEST_CASE("what was not begun gives the attempt back; a commit in doubt is in doubt", "[tools]") {
    SqlToolFixture own(kOwn);
    SqlToolFixture elsewhere(kElsewhere);
    for (auto* tool : {&own, &elsewhere}) {
        for (const auto when : {When::not_begun, When::fenced}) {
            tool->fail(when);
            const auto outcome = tool->perform(R"({"amount": 1})");
            CHECK_FALSE(get<outbox::RetryLater>(outcome).counts);
        }
    }
    own.fail(When::in_doubt);
    auto outcome = own.perform(R"({"amount": 1})");
    CHECK(get<outbox::RetryLater>(outcome).counts);
    elsewhere.fail(When::in_doubt);
    outcome = elsewhere.perform(R"({"amount": 1})");
    CHECK(get<outbox::Unknown>(outcome).error.code == "commit_in_doubt");
}

TEST_CASE("on another database every end may be said", "[tools]") {
    SqlToolFixture tool(kElsewhere);
    CHECK_FALSE(tool.entry->policy.own_transaction);
    CHECK(tool.databases.script.opened.size() == 2);  // a question does not wait behind an effect
    tool.answer(1, "[]");
    auto outcome = tool.perform(R"({"amount": 1})");
    CHECK(std::holds_alternative<outbox::Succeeded>(outcome));
    tool.answer(2, "[]");
    outcome = tool.perform(R"({"amount": 1})");
    CHECK(std::holds_alternative<outbox::Accepted>(outcome));
    tool.answer(3, "[]");
    outcome = tool.perform(R"({"amount": 1})");
    CHECK(std::holds_alternative<outbox::Unknown>(outcome));
    tool.answer(4, "[]");
    outcome = tool.perform(R"({"amount": 1})");
    CHECK(std::holds_alternative<outbox::Attention>(outcome));
    tool.answer(5, "[]");
    outcome = tool.perform(R"({"amount": 1})");
    CHECK(std::holds_alternative<outbox::Rejected>(outcome));
    CHECK(tool.last().parameters[0] == "key-1");
}

TEST_CASE("a look-up is read-only; what failed or is not described is inconclusive", "[tools]") {
    SqlToolFixture tool(kElsewhere);
    tool.answer(1, R"([{"amount": 5}])");
    auto verdict = tool.ask();
    CHECK(to_text(get<outbox::Found>(verdict).result) == R"({"amount":5})");
    CHECK(tool.last().read_only);
    tool.answer(0, "[]");
    verdict = tool.ask();
    CHECK(std::holds_alternative<outbox::Absent>(verdict));
    tool.answer(2, "[{}, {}]");
    verdict = tool.ask();
    CHECK(get<outbox::Inconclusive>(verdict).error.code == "no_verdict");
    for (const auto* state : {"42P01", "57014", "28P01", ""}) {
        tool.fail(When::rolled_back, state);
        verdict = tool.ask();
        CHECK(std::holds_alternative<outbox::Inconclusive>(verdict));
    }
    tool.fail(When::not_begun);
    verdict = tool.ask();
    CHECK(std::holds_alternative<outbox::Inconclusive>(verdict));
}

TEST_CASE("the own transaction: policy, probe, and a record without secrets", "[tools]") {
    SqlToolFixture tool(kOwn);
    const auto& policy = tool.entry->policy;
    CHECK(policy.own_transaction);
    CHECK(policy.reconcile.settle == 0ms);
    CHECK(policy.reconcile.confirmations == 1);
    CHECK(policy.concurrency == 8);
    CHECK(std::holds_alternative<outbox::Absent>(tool.ask()));
    CHECK(tool.databases.script.calls.empty());

    tool.answer(1, R"([{"id": 7, "credit": 1}])");
    auto call = call_with(R"({"amount": 1})");
    std::optional<outbox::Transition> written;
    call.written = &written;
    call.own = outbox::OwnAttempt{};
    call.own->decide = [](const outbox::Outcome& outcome) {
        outbox::Transition next;
        next.to = outbox::Status::succeeded;
        next.result = std::get<outbox::Succeeded>(outcome).result;
        return next;
    };
    (void)tool.perform(std::move(call));
    REQUIRE(written.has_value());
    CHECK(to_text(written->result) == R"({"id":7,"credit":1})");
}

TEST_CASE("the password of a dsn is masked in what a server says", "[tools]") {
    SqlToolFixture tool(kElsewhere);
    tool.databases.script.failure = SqlFailure{
        When::rolled_back, "23505", "no hunter22 for host=billing password=hunter22 dbname=b"
    };
    const auto outcome = tool.perform(R"({"amount": 1})");
    CHECK(get<outbox::Rejected>(outcome).error.message == "no *** for ***");
}

TEST_CASE("a read on the own database is read-only and recorded by the completer", "[tools]") {
    SqlToolFixture tool(R"(
    effect: read
    execute: { type: sql, statement: "SELECT credit FROM account" }
)");
    CHECK_FALSE(tool.entry->policy.own_transaction);
    tool.answer(1, R"([{"credit": 3}])");
    const auto outcome = tool.perform();
    CHECK(to_text(get<outbox::Succeeded>(outcome).result) == R"([{"credit":3}])");
    CHECK(tool.last().read_only);
}

TEST_CASE("the request hash of an own transaction does not depend on its statement", "[tools]") {
    SqlToolFixture a(kOwn);
    SqlToolFixture b(R"(
    execute: { type: sql, statement: "DELETE FROM account" }
)");
    SqlToolFixture c(kElsewhere);
    CHECK(a.entry->policy.request_hash == b.entry->policy.request_hash);
    CHECK(a.entry->policy.revision != b.entry->policy.revision);
    CHECK(a.entry->policy.request_hash != c.entry->policy.request_hash);
}
