#include "tests/support/catch.hpp"
#include "tests/support/database.hpp"
#include "tests/support/operation_states.hpp"
#include "tests/support/refusal.hpp"

using tests::bring_to;
using tests::Database;
using tests::refusal;
using tests::Row;
using tests::Rows;
using tests::Session;

namespace {

// status, replayed, result, error, compensated_by, result_expired, message
Row enqueue(Session& session, const std::string& id, const std::string& more = "") {
    return session.query(
        "SELECT status, replayed, result, error, compensated_by, result_expired, message "
        "FROM outbox.enqueue('create_ticket', '{\"title\": \"disk full\"}', '" +
        id + "'" + more + ")"
    )[0];
}

std::vector<std::string> events(Session& session, const std::string& id) {
    std::vector<std::string> kinds;
    for (const auto& row :
         session.query("SELECT kind FROM outbox.event WHERE operation_id = $1 ORDER BY id", {id})) {
        kinds.push_back(*row[0]);
    }
    return kinds;
}

}  // namespace

TEST_CASE("a new operation is recorded") {
    Database database;
    auto session = database.connect();
    auto row = enqueue(session, "op-1");
    CHECK(Row(row.begin(), row.begin() + 6) == Row{"pending", "f", {}, {}, {}, "f"});
    CHECK_FALSE(row[6]->empty());
    CHECK(events(session, "op-1").empty());

    row = enqueue(session, "op-2", ", run_at => now() + interval '1 hour'");
    CHECK(row[0] == "scheduled");
    CHECK(enqueue(session, "op-3", ", run_at => now() - interval '1 hour'")[0] == "pending");
    CHECK(
        session.text("SELECT created_at = now() FROM outbox.enqueue('t', operation_id => 'op-4')"
        ) == "t"
    );
}

TEST_CASE("a known operation replays what is recorded, in words of its own per status") {
    Database database;
    auto session = database.connect();
    std::vector<std::string> messages;
    for (std::string status :
         {"pending", "scheduled", "attempting", "unknown", "succeeded", "failed", "cancelled"}) {
        INFO(status);
        enqueue(session, status);
        bring_to(session, status, status);
        auto before = session.query("SELECT * FROM outbox.queue ORDER BY seq");
        auto row = enqueue(session, status);
        CHECK(row[0] == status);
        CHECK(row[1] == "t");
        CHECK(row[2].has_value() == (status == "succeeded"));
        CHECK(row[3].has_value() == (status == "failed"));
        CHECK_THAT(*row[6], ContainsSubstring("Nothing was executed again."));
        CHECK(events(session, status) == std::vector<std::string>{"replayed"});
        CHECK(session.query("SELECT * FROM outbox.queue ORDER BY seq") == before);
        messages.push_back(*row[6]);
    }
    auto sorted = messages;
    std::sort(sorted.begin(), sorted.end());
    CHECK(std::unique(sorted.begin(), sorted.end()) == sorted.end());
    for (std::size_t open : {0U, 1U, 2U}) {
        CHECK_THAT(messages[open], ContainsSubstring("in progress"));
        CHECK_THAT(messages[open], ContainsSubstring("Do not send it again"));
        CHECK_THAT(messages[open], ContainsSubstring("do not assume failure"));
    }
    CHECK_THAT(messages[3], ContainsSubstring("asking the other side"));
    CHECK_THAT(messages[3], ContainsSubstring("do not report failure"));
    CHECK_THAT(messages[4], ContainsSubstring("already performed"));
    CHECK_THAT(messages[5], ContainsSubstring("title is too long"));
    CHECK_THAT(messages[5], ContainsSubstring("no effect"));
    CHECK(enqueue(session, "succeeded")[2] == R"({"id": "T-1"})");
}

TEST_CASE("the message of a derived replay is the contract's example") {
    Database database;
    auto session = database.connect();
    auto call = "SELECT message, operation_id FROM outbox.enqueue('t', run_id => 'r')";
    auto id = *session.query(call)[0][1];
    bring_to(session, id, "succeeded");
    CHECK(
        session.query(call)[0][0] ==
        "This action was already performed in this run; returning the earlier result. "
        "Nothing was executed again."
    );
    session.run("UPDATE outbox.outcome SET result = NULL, result_expired = true");
    auto row =
        session.query("SELECT result_expired, message FROM outbox.enqueue('t', run_id => 'r')")[0];
    CHECK(row[0] == "t");
    CHECK_THAT(*row[1], ContainsSubstring("no longer kept"));
}

TEST_CASE("an operation that a person must look at says so") {
    Database database;
    auto session = database.connect();
    enqueue(session, "op-1");
    bring_to(session, "op-1", "unknown");
    session.run("UPDATE outbox.queue SET attention = 'conflict', due_at = 'infinity'");
    CHECK_THAT(*enqueue(session, "op-1")[6], ContainsSubstring("a person has been asked"));
}

TEST_CASE("retry_failed arms a failed operation again, and nothing else") {
    Database database;
    auto session = database.connect();
    enqueue(session, "op-1", ", expires_at => now() - interval '1 s'");
    session.run("UPDATE outbox.queue SET ambiguous = true");
    bring_to(session, "op-1", "failed");
    auto epoch = std::stoi(session.text("SELECT lease_epoch FROM outbox.outcome"));

    auto row = enqueue(session, "op-1", ", retry_failed => true");
    CHECK(Row(row.begin(), row.begin() + 6) == Row{"pending", "f", {}, {}, {}, "f"});
    CHECK(
        session.query("SELECT status, lease_epoch, attempts, attempt_epoch, expires_at, ambiguous, "
                      "request_hash FROM outbox.queue"
        ) == Rows{{"pending", std::to_string(epoch + 1), "0", "1", {}, "t", "7"}}
    );
    CHECK(session.text("SELECT count(*) FROM outbox.outcome") == "0");
    CHECK(events(session, "op-1") == std::vector<std::string>{"retried"});

    for (std::string status :
         {"pending", "scheduled", "attempting", "unknown", "succeeded", "cancelled"}) {
        INFO(status);
        enqueue(session, status);
        bring_to(session, status, status);
        row = enqueue(session, status, ", retry_failed => true");
        CHECK(row[0] == status);
        CHECK(row[1] == "t");
    }
}

TEST_CASE("a compensated operation says by what") {
    Database database;
    auto session = database.connect();
    enqueue(session, "op-1");
    bring_to(session, "op-1", "succeeded");
    auto compensate = [&](const std::string& name) {
        session.query(
            "INSERT INTO outbox.operation (operation_id, tool, compensates) "
            "VALUES ($1, 'create_ticket:close', 'op-1')",
            {"op-1:compensate:" + name}
        );
    };
    compensate("first");
    bring_to(session, "op-1:compensate:first", "failed");
    CHECK(enqueue(session, "op-1")[4] == tests::Value{});
    compensate("second");
    auto row = enqueue(session, "op-1");
    CHECK(row[4] == "op-1:compensate:second");
    CHECK_THAT(*row[6], ContainsSubstring("is being undone"));
    bring_to(session, "op-1:compensate:second", "succeeded");
    row = enqueue(session, "op-1");
    CHECK(row[0] == "succeeded");
    CHECK(row[2] == R"({"id": "T-1"})");
    CHECK_THAT(*row[6], ContainsSubstring("then undone"));
    CHECK(
        session.text("SELECT compensated_by FROM outbox.get('op-1')") == "op-1:compensate:second"
    );
    CHECK(session.text("SELECT compensates FROM outbox.get('op-1:compensate:second')") == "op-1");
}

TEST_CASE("other content under an explicit id is OB422") {
    Database database;
    auto session = database.connect();
    session.run("SELECT outbox.enqueue('t', '{\"title\": \"x\", \"n\": [1, 2.50]}', 'op-1')");
    auto again = [](const std::string& tool, const std::string& arguments) {
        return "SELECT replayed FROM outbox.enqueue('" + tool + "', '" + arguments + "', 'op-1')";
    };
    CHECK(session.text(again("t", R"({"n": [1.0, 2.5], "title": "x"})")) == "t");
    CHECK(session.text(again("t", R"({"n": [1, 2.5], "title": " x\n"})")) == "t");
    for (std::string other :
         {R"({"title": "x"})",
          R"({"title": "x", "n": [2.5, 1]})",
          R"({"title": "x", "n": [1, 2.5], "more": null})",
          R"({"title": "X", "n": [1, 2.5]})",
          R"({"title": "x", "n": [1, "2.5"]})"}) {
        INFO(other);
        auto error = refusal(session, again("t", other));
        CHECK(error.sqlstate == "OB422");
        CHECK_THAT(error.detail, ContainsSubstring("other arguments"));
        CHECK_FALSE(error.hint.empty());
    }
    auto error = refusal(session, again("u", R"({"title": "x", "n": [1, 2.5]})"));
    CHECK(error.sqlstate == "OB422");
    CHECK_THAT(error.detail, ContainsSubstring("tool \"t\""));
    // Refused, not recorded.
    CHECK(session.text("SELECT count(*) FROM outbox.event") == "2");

    // After pruning the digest decides.
    session.run(
        "UPDATE outbox.operation SET arguments_digest = outbox.arguments_digest(arguments), "
        "arguments = '{}', pruned_at = now()"
    );
    CHECK(session.text(again("t", R"({"n": [1, 2.5], "title": "x "})")) == "t");
    CHECK(refusal(session, again("t", "{}")).sqlstate == "OB422");
    CHECK(refusal(session, again("t", R"({"n": [1, 2.5], "title": "y"})")).sqlstate == "OB422");
}

TEST_CASE("a number beyond the key's limits needs an explicit id, and is compared as jsonb") {
    Database database;
    auto session = database.connect();
    auto call = [](const std::string& number, const std::string& id) {
        return "SELECT replayed FROM outbox.enqueue('t', '{\"n\": " + number + "}', " + id + ")";
    };
    CHECK(refusal(session, call("1e401", "run_id => 'r'")).sqlstate == "OB400");
    CHECK(session.text(call("1e401", "'op-1'")) == "f");
    CHECK(session.text(call("10e400", "'op-1'")) == "t");
    CHECK(refusal(session, call("2e401", "'op-1'")).sqlstate == "OB422");
    CHECK(refusal(session, call("2", "'op-1'")).sqlstate == "OB422");

    // Refused by value: as text this would be fifteen gigabytes.
    std::string many = "1e131071";
    for (int i = 0; i < 100'000; ++i) {
        many += ",1e131071";
    }
    CHECK(
        refusal(
            session, "SELECT outbox.enqueue('t', $1::jsonb, 'op-2')", {"{\"n\": [" + many + "]}"}
        )
            .sqlstate == "OB413"
    );
    CHECK(
        refusal(
            session,
            "SELECT outbox.enqueue('t', $1::jsonb, run_id => 'r')",
            {"{\"n\": [1e131071, 1e131071]}"}
        )
            .sqlstate == "OB400"
    );
}

TEST_CASE("what is missing or wrong is named") {
    Database database;
    auto session = database.connect();
    auto error = refusal(session, "SELECT outbox.enqueue('t')");
    CHECK(error.sqlstate == "OB400");
    CHECK_THAT(error.detail, ContainsSubstring("Neither operation_id nor run_id"));
    CHECK_THAT(error.hint, ContainsSubstring("run_id"));
    CHECK(
        refusal(session, "SELECT outbox.enqueue('t', run_id => 'r', occurrence => 0)").sqlstate ==
        "OB400"
    );
    CHECK(refusal(session, "SELECT outbox.enqueue(NULL, run_id => 'r')").sqlstate == "OB400");

    // No daemon has published anything: every name is taken.
    CHECK_NOTHROW(session.query("SELECT outbox.enqueue('anything', operation_id => 'op-1')"));
    tests::publish_tool(session, "create_ticket");
    tests::publish_tool(session, "refund_order");
    error = refusal(session, "SELECT outbox.enqueue('creat_tickets', operation_id => 'op-2')");
    CHECK(error.sqlstate == "OB404");
    CHECK_THAT(error.hint, ContainsSubstring("\"create_ticket\""));
    CHECK_THAT(error.detail, ContainsSubstring("\"refund_order\""));
    error = refusal(session, "SELECT outbox.enqueue('zzz', operation_id => 'op-2')");
    CHECK(error.sqlstate == "OB404");
    CHECK_FALSE(error.hint.empty());
    // Of two letters both may differ: that is no hint. One may.
    tests::publish_tool(session, "ab");
    error = refusal(session, "SELECT outbox.enqueue('zz', operation_id => 'op-2')");
    CHECK_THAT(error.hint, !ContainsSubstring("\"ab\""));
    error = refusal(session, "SELECT outbox.enqueue('az', operation_id => 'op-2')");
    CHECK_THAT(error.hint, ContainsSubstring("\"ab\""));
    // An explicit null is the default.
    CHECK(
        session.text(
            "SELECT status FROM outbox.enqueue('create_ticket', NULL, 'op-3', NULL, NULL, NULL, "
            "NULL, NULL, NULL, NULL, NULL, NULL)"
        ) == "pending"
    );
}

TEST_CASE("expires_at in the past is accepted") {
    Database database;
    auto session = database.connect();
    CHECK(enqueue(session, "op-1", ", expires_at => now() - interval '1 day'")[0] == "pending");
}

TEST_CASE("enqueue_many answers in order, inserts in id order, and is all or nothing") {
    Database database;
    auto session = database.connect();
    auto rows = session.query(
        "SELECT operation_id, replayed FROM outbox.enqueue_many('["
        R"({"tool": "t", "operation_id": "c", "arguments": {"a": 1}},)"
        R"({"tool": "t", "operation_id": "a", "run_at": "2100-01-01", "priority": 7},)"
        R"({"tool": "t", "operation_id": "c", "arguments": {"a": 1.0}},)"
        R"({"tool": "t", "run_id": "r"}, {"tool": "t", "run_id": "r", "occurrence": 2}]'))"
    );
    REQUIRE(rows.size() == 5);
    CHECK(rows[0] == Row{"c", "f"});
    CHECK(rows[1] == Row{"a", "f"});
    CHECK(rows[2] == Row{"c", "t"});
    CHECK(rows[3][1] == "f");
    CHECK(rows[4][1] == "f");
    CHECK(rows[3][0] != rows[4][0]);
    CHECK(
        session.text("SELECT array_agg(operation_id ORDER BY seq) = "
                     "array_agg(operation_id ORDER BY operation_id COLLATE \"C\") "
                     "FROM outbox.operation") == "t"
    );
    CHECK(
        session.query("SELECT status, priority FROM outbox.operations WHERE operation_id = 'a'") ==
        Rows{{"scheduled", "7"}}
    );
    CHECK(session.query("SELECT * FROM outbox.enqueue_many('[]')").empty());

    struct Bad {
        std::string item;
        std::string state;
        std::string says;
    };
    for (const auto& bad : std::vector<Bad>{
             {R"({"tool": "t"})", "OB400", "Neither"},
             {R"({"tool": "t", "operation_id": "c", "arguments": {"a": 2}})",
              "OB422",
              "other arguments"},
             {R"({"tool": "t", "operation_id": "x", "occurrence": "two"})", "OB400", "two"},
             {R"({"tool": "t", "operation_id": "x", "prority": 1})", "OB400", "Members"},
             {R"("t")", "OB400", "string"}
         }) {
        INFO(bad.item);
        auto error = refusal(
            session,
            "SELECT * FROM outbox.enqueue_many($1::jsonb)",
            {R"([{"tool": "t", "operation_id": "new"}, )" + bad.item + "]"}
        );
        CHECK(error.sqlstate == bad.state);
        CHECK_THAT(error.detail, ContainsSubstring("requests[1]"));
        CHECK_THAT(error.detail, ContainsSubstring(bad.says));
        CHECK_FALSE(error.hint.empty());
    }
    CHECK(session.text("SELECT count(*) FROM outbox.operation WHERE operation_id = 'new'") == "0");
    CHECK(refusal(session, "SELECT * FROM outbox.enqueue_many('{}')").sqlstate == "OB400");
    CHECK(refusal(session, "SELECT * FROM outbox.enqueue_many(NULL)").sqlstate == "OB400");
}

TEST_CASE("a duplicate does not abort the planner's transaction") {
    Database database;
    auto session = database.connect();
    session.run("CREATE TABLE step (n integer)");
    enqueue(session, "op-1");
    session.run("BEGIN; INSERT INTO step VALUES (1)");
    CHECK(enqueue(session, "op-1")[1] == "t");
    session.run("INSERT INTO step VALUES (2); COMMIT");
    CHECK(session.text("SELECT count(*) FROM step") == "2");
}
