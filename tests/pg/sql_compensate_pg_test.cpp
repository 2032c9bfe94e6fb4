#include "sql/queries.hpp"
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
using tests::Value;

namespace {

const std::string kClose = "op-1:compensate:close";

// A catalogue with one tool that has two compensations, and one that has a single one.
void publish(Session& session) {
    session.run(
        "INSERT INTO outbox.tool (tool, effect, revision, compensations, needs_original) VALUES "
        "('create_ticket', 'write', 'r1', '{close,reopen}', '{}'), "
        "('create_ticket:close', 'write', 'r1', '{}', '{result}'), "
        "('create_ticket:reopen', 'write', 'r1', '{}', '{}'), "
        "('mail', 'write', 'r1', '{recall}', '{}'), "
        "('mail:recall', 'write', 'r1', '{}', '{arguments}'), "
        "('look', 'read', 'r1', '{}', '{}')"
    );
}

void insert(Session& session, const std::string& id, const std::string& tool = "create_ticket") {
    session.query(
        "INSERT INTO outbox.operation (operation_id, tool, arguments, run_id, priority, labels, "
        "traceparent) VALUES ($1, $2, '{\"title\": \"x\"}', 'run-7', 5, '{\"team\": \"a\"}', "
        "'00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01')",
        {id, tool}
    );
}

// A database with that catalogue, and a planner's session on it.
struct World {
    World() { publish(session); }
    // An operation of the tool create_ticket that got so far.
    void add(const std::string& id, const std::string& state) {
        insert(session, id);
        bring_to(session, id, state);
    }

    Database database;
    Session session = database.connect();
};

// operation_id, status, replayed, result, error, message
Row compensate(Session& session, const std::string& id, const std::string& more = "") {
    return session.query(
        "SELECT operation_id, status, replayed, result, error, message FROM outbox.compensate('" +
        id + "'" + more + ")"
    )[0];
}

Row head(const Row& row) {
    return {row.begin(), row.begin() + 3};
}

// armed, cancelled
Row settle(Session& session) {
    const auto row = session.query(outbox::sql::settle_compensations, {"500", "0", "0"})[0];
    return {row[0], row[1]};
}

std::string events(Session& session, const std::string& id) {
    return session.text(
        "SELECT coalesce(string_agg(kind, ' ' ORDER BY id), '') FROM outbox.event "
        "WHERE operation_id = $1",
        {id}
    );
}

std::string status_of(Session& session, const std::string& id) {
    return session.text("SELECT status FROM outbox.get($1)", {id});
}

}  // namespace

TEST_CASE("a compensation of a success is an operation of its own") {
    World world;
    auto& session = world.session;
    world.add("op-1", "succeeded");
    auto row = compensate(session, "op-1", R"(, 'close', '{"note": "wrong queue"}', 'by mistake')");
    CHECK(head(row) == Row{kClose, "pending", "f"});
    CHECK_THAT(*row[5], ContainsSubstring("will be carried out"));
    CHECK(
        session.query(
            "SELECT o.tool, o.arguments, o.run_id, o.priority, o.labels, o.traceparent, "
            "o.compensates, o.reason, q.status, q.waits_for FROM outbox.operation o "
            "JOIN outbox.queue q USING (seq) WHERE operation_id = $1",
            {kClose}
        ) ==
        Rows{
            {"create_ticket:close",
             R"({"note": "wrong queue"})",
             "run-7",
             "5",
             R"({"team": "a"})",
             "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
             "op-1",
             "by mistake",
             "pending",
             {}}
        }
    );
    CHECK(
        session.text("SELECT reason FROM outbox.operations WHERE reason IS NOT NULL") ==
        "by mistake"
    );
    // The original says so, everywhere, and a repeated call performs nothing.
    CHECK(session.text("SELECT compensated_by FROM outbox.get('op-1')") == kClose);
    CHECK(
        session.query("SELECT replayed, status, compensated_by FROM outbox.enqueue("
                      "'create_ticket', '{\"title\": \"x\"}', 'op-1')"
        ) == Rows{{"t", "succeeded", kClose}}
    );
    CHECK_THAT(
        session.text("SELECT message FROM outbox.get('op-1')"), ContainsSubstring("is being undone")
    );
    bring_to(session, kClose, "succeeded");
    CHECK_THAT(
        session.text("SELECT message FROM outbox.get('op-1')"), ContainsSubstring("then undone")
    );
    CHECK(session.text("SELECT compensates FROM outbox.get($1)", {kClose}) == "op-1");
}

TEST_CASE("a second compensate replays, whatever the first came to") {
    World world;
    auto& session = world.session;
    for (const std::string status :
         {"pending", "attempting", "unknown", "succeeded", "failed", "cancelled"}) {
        INFO(status);
        const auto id = "op-" + status;
        const auto undo = id + ":compensate:close";
        world.add(id, "succeeded");
        CHECK(head(compensate(session, id, ", 'close'")) == Row{undo, "pending", "f"});
        bring_to(session, undo, status);
        for (int again = 0; again < 2; ++again) {
            auto row = compensate(session, id, ", 'close'");
            CHECK(head(row) == Row{undo, status, "t"});
            CHECK_THAT(*row[5], ContainsSubstring("Nothing was executed again."));
            CHECK(row[3].has_value() == (status == "succeeded"));
            CHECK(row[4].has_value() == (status == "failed"));
        }
        CHECK(events(session, undo) == "replayed replayed");
        CHECK(
            session.text("SELECT count(*) FROM outbox.operation WHERE compensates = $1", {id}) ==
            "1"
        );
    }
    // Also when the configuration has forgotten it.
    session.run("UPDATE outbox.tool SET compensations = '{}'");
    CHECK(compensate(session, "op-pending", ", 'close'")[2] == "t");
    // Other names are other wishes.
    session.run("UPDATE outbox.tool SET compensations = '{close,reopen}'");
    CHECK(
        head(compensate(session, "op-pending", ", 'reopen'")) ==
        Row{"op-pending:compensate:reopen", "pending", "f"}
    );
}

TEST_CASE("what has not been carried out is cancelled instead") {
    World world;
    auto& session = world.session;
    for (const std::string status : {"pending", "scheduled"}) {
        INFO(status);
        world.add(status, status);
        auto row = compensate(session, status, ", 'close', reason => 'not needed'");
        CHECK(head(row) == Row{status, "cancelled", "f"});
        CHECK_THAT(*row[5], ContainsSubstring("cancelled instead"));
        CHECK(status_of(session, status) == "cancelled");
        CHECK(
            session.text(
                "SELECT detail ->> 'reason' FROM outbox.event WHERE operation_id = $1", {status}
            ) == "compensate close: not needed"
        );
        CHECK(head(compensate(session, status, ", 'close'")) == Row{status, "cancelled", "t"});
    }
    CHECK(
        session.text("SELECT count(*) FROM outbox.operation WHERE compensates IS NOT NULL") == "0"
    );
}

TEST_CASE("what had no effect leaves nothing to compensate") {
    World world;
    auto& session = world.session;
    for (const std::string status : {"failed", "cancelled"}) {
        INFO(status);
        world.add(status, status);
        auto row = compensate(session, status, ", 'close'");
        CHECK(head(row) == Row{status, status, "t"});
        CHECK(row[4].has_value() == (status == "failed"));
        CHECK_THAT(*row[5], ContainsSubstring("nothing to compensate"));
    }
    CHECK(
        session.text("SELECT count(*) FROM outbox.operation WHERE compensates IS NOT NULL") == "0"
    );
    CHECK(session.text("SELECT count(*) FROM outbox.event WHERE kind = 'replayed'") == "0");
    // It did happen after all: late evidence overturns what was recorded. Then there is something.
    session.run(
        "UPDATE outbox.outcome SET outcome = 'succeeded', error = NULL, attention = 'late_effect'"
    );
    CHECK(head(compensate(session, "failed", ", 'close'"))[1] == "pending");
    CHECK(head(compensate(session, "cancelled", ", 'close'"))[1] == "pending");
}

TEST_CASE("a compensation waits until its original is settled") {
    World world;
    auto& session = world.session;
    for (const std::string status : {"attempting", "unknown"}) {
        for (const std::string end : {"succeeded", "failed", "cancelled"}) {
            const auto id = status + "-" + end;
            const auto undo = id + ":compensate:close";
            INFO(id);
            world.add(id, status);
            auto row = compensate(session, id, ", 'close'");
            CHECK(head(row) == Row{undo, "scheduled", "f"});
            CHECK_THAT(*row[5], ContainsSubstring("only if it did"));
            CHECK(
                session.text(
                    "SELECT due_at FROM outbox.operations WHERE operation_id = $1", {undo}
                ) == "infinity"
            );
            const auto told = session.text("SELECT message FROM outbox.get($1)", {id});
            CHECK_THAT(told, ContainsSubstring(undo));
            CHECK_THAT(told, ContainsSubstring("do not report failure"));
            CHECK(settle(session) == Row{"0", "0"});
            tests::end_operation(
                session, id, end, {}, end == "failed" ? Value(R"({"code": "no"})") : Value()
            );
            const bool happened = end == "succeeded";
            CHECK(settle(session) == (happened ? Row{"1", "0"} : Row{"0", "1"}));
            CHECK(status_of(session, undo) == (happened ? "pending" : "cancelled"));
            CHECK(settle(session) == Row{"0", "0"});
            CHECK(
                session.value("SELECT compensated_by FROM outbox.get($1)", {id}) ==
                (happened ? Value(undo) : Value())
            );
            if (happened) continue;
            CHECK_THAT(
                session.text("SELECT message FROM outbox.get($1)", {undo}),
                ContainsSubstring("had no effect")
            );
            CHECK(events(session, undo) == "cancelled");
            CHECK(head(compensate(session, id, ", 'close'")) == Row{id, end, "t"});
        }
    }
    CHECK(session.text("SELECT count(*) FROM outbox.queue WHERE waits_for IS NOT NULL") == "0");
}

TEST_CASE("what waits is not promoted, and may be cancelled by itself") {
    World world;
    auto& session = world.session;
    world.add("op-1", "unknown");
    compensate(session, "op-1", ", 'close'");
    // After a timeline change it may come back with a time of its own.
    session.run("UPDATE outbox.queue SET due_at = now() WHERE waits_for IS NOT NULL");
    CHECK(session.query(outbox::sql::promote_due, {"500"})[0][0] == "0");
    CHECK(status_of(session, kClose) == "scheduled");
    CHECK(session.text("SELECT outbox.cancel($1)", {kClose}) == "cancelled");
    // What somebody cancelled stays cancelled.
    CHECK(head(compensate(session, "op-1", ", 'close'")) == Row{kClose, "cancelled", "t"});
}

TEST_CASE("an original that would run only to be undone is cancelled instead") {
    World world;
    auto& session = world.session;
    for (const std::string status : {"pending", "scheduled"}) {
        INFO(status);
        const auto id = "op-" + status;
        world.add(id, "unknown");
        compensate(session, id, ", 'close'");
        session.query(
            "UPDATE outbox.queue q SET status = $2, due_at = now() + interval '1 h', "
            "lease_epoch = lease_epoch + 1, unknown_since = NULL FROM outbox.operation o "
            "WHERE o.seq = q.seq AND o.operation_id = $1",
            {id, status}
        );
        CHECK(settle(session) == Row{"0", "1"});
        CHECK(status_of(session, id) == "cancelled");
        CHECK(
            session.text("SELECT detail FROM outbox.event WHERE operation_id = $1", {id}) ==
            R"({"by": "compensate", "from": ")" + status + "\"}"
        );
        CHECK(settle(session) == Row{"0", "1"});
        CHECK(status_of(session, id + ":compensate:close") == "cancelled");
    }
}

TEST_CASE("an intent whose work is not filed yet is not undone before it has happened") {
    for (const std::string road :
         {"INSERT INTO outbox.operation (operation_id, tool, run_at) VALUES ('op-1', "
          "'create_ticket', now() + interval '1 h') "
          "RETURNING (SELECT status FROM outbox.compensate(operation_id, 'reopen'))",
          "WITH filed AS (INSERT INTO outbox.operation (operation_id, tool, run_at) VALUES "
          "('op-1', 'create_ticket', now() + interval '1 h') RETURNING operation_id) "
          "SELECT (SELECT c.status FROM outbox.compensate(f.operation_id, 'reopen') c) "
          "FROM filed f"}) {
        Database database;
        auto session = database.connect();
        publish(session);
        CHECK(session.text(road) == "scheduled");
        CHECK(
            session.text("SELECT waits_for FROM outbox.queue WHERE waits_for IS NOT NULL") ==
            session.text("SELECT seq::text FROM outbox.operation WHERE operation_id = 'op-1'")
        );
        settle(session);  // what would run only to be undone is cancelled instead
        CHECK(status_of(session, "op-1") == "cancelled");
        settle(session);
        CHECK(status_of(session, "op-1:compensate:reopen") == "cancelled");
        CHECK(session.text("SELECT count(*) FROM outbox.queue") == "0");
    }
}

TEST_CASE("an operation that is armed again is not undone by an earlier wish") {
    World world;
    auto& session = world.session;
    world.add("op-1", "unknown");
    compensate(session, "op-1", ", 'close'");
    tests::end_operation(session, "op-1", "failed", {}, R"({"code": "no"})");
    // Before maintenance has seen it.
    CHECK(
        session.text("SELECT status FROM outbox.enqueue('create_ticket', '{\"title\": \"x\"}', "
                     "'op-1', retry_failed => true)") == "pending"
    );
    CHECK(status_of(session, kClose) == "cancelled");
    CHECK(settle(session) == Row{"0", "0"});
    CHECK(status_of(session, "op-1") == "pending");
    bring_to(session, "op-1", "succeeded");
    CHECK(settle(session) == Row{"0", "0"});
    // A new wish arms it.
    CHECK(
        head(compensate(session, "op-1", ", 'close', reason => 'now'")) ==
        Row{kClose, "pending", "f"}
    );
    CHECK(events(session, kClose) == "cancelled retried");
    CHECK(
        session.text(
            "SELECT detail ->> 'reason' FROM outbox.event WHERE kind = 'retried' AND operation_id "
            "= $1",
            {kClose}
        ) == "now"
    );
    // The epoch went on.
    CHECK(
        session.text(
            "SELECT lease_epoch FROM outbox.queue JOIN outbox.operation USING (seq) WHERE "
            "operation_id = $1",
            {kClose}
        ) == "2"
    );
}

TEST_CASE("evidence that overturns after the compensation was cancelled: a person, or a new wish") {
    World world;
    auto& session = world.session;
    world.add("op-1", "unknown");
    compensate(session, "op-1", ", 'close'");
    tests::end_operation(session, "op-1", "failed", {}, R"({"code": "absent"})");
    CHECK(settle(session) == Row{"0", "1"});
    session.query(
        outbox::sql::record_late_result,
        {session.text("SELECT seq FROM outbox.operation WHERE operation_id = 'op-1'"),
         "op-1",
         "1",
         "effect",
         R"({"id": "T-1"})",
         {},
         "succeeded",
         {},
         "0",
         {}}
    );
    CHECK(
        session.text("SELECT status || ' ' || attention FROM outbox.get('op-1')") ==
        "succeeded late_effect"
    );
    // Nobody knows whether it is still to be undone: it is not done by itself.
    CHECK(settle(session) == Row{"0", "0"});
    CHECK(status_of(session, kClose) == "cancelled");
    CHECK(session.value("SELECT compensated_by FROM outbox.get('op-1')") == Value());
    CHECK(head(compensate(session, "op-1", ", 'close'")) == Row{kClose, "pending", "f"});
    CHECK(session.text("SELECT compensated_by FROM outbox.get('op-1')") == kClose);
}

TEST_CASE("a failed compensation is armed again by an operator, and never before its original") {
    World world;
    auto& session = world.session;
    world.add("op-1", "succeeded");
    compensate(session, "op-1", ", 'close'");
    bring_to(session, kClose, "failed");
    CHECK(session.value("SELECT compensated_by FROM outbox.get('op-1')") == Value());
    CHECK(session.text("SELECT outbox.retry($1, 'the desk is back')", {kClose}) == "armed");
    CHECK(status_of(session, kClose) == "pending");
    // It may have failed while its original was in doubt (given up on after a failover).
    world.add("op-2", "unknown");
    compensate(session, "op-2", ", 'close'");
    const std::string undo = "op-2:compensate:close";
    tests::end_operation(session, undo, "failed", {}, R"({"code": "gave_up"})");
    CHECK(session.text("SELECT outbox.retry($1, 'again')", {undo}) == "armed");
    CHECK(status_of(session, undo) == "scheduled");
    CHECK(settle(session) == Row{"0", "0"});
    tests::end_operation(session, "op-2", "succeeded", "{}");
    CHECK(settle(session) == Row{"1", "0"});
}

TEST_CASE("the name may be left out when there is one") {
    World world;
    auto& session = world.session;
    insert(session, "op-1");
    insert(session, "m-1", "mail");
    bring_to(session, "m-1", "succeeded");
    CHECK(compensate(session, "m-1")[0] == "m-1:compensate:recall");
    CHECK(compensate(session, "m-1")[2] == "t");
    auto error = refusal(session, "SELECT outbox.compensate('op-1')");
    CHECK(error.sqlstate == "OB400");
    CHECK_THAT(error.detail, ContainsSubstring(R"("close", "reopen")"));
}

TEST_CASE("no such compensation is OB404, with the names") {
    World world;
    auto& session = world.session;
    for (const std::string status : {"pending", "unknown", "succeeded", "failed"}) {
        INFO(status);  // a wrong name is wrong whatever became of the original
        world.add(status, status);
        auto error = refusal(session, "SELECT outbox.compensate('" + status + "', 'clsoe')");
        CHECK(error.sqlstate == "OB404");
        CHECK_THAT(error.detail, ContainsSubstring(R"("close", "reopen")"));
        CHECK_THAT(error.hint, ContainsSubstring(R"(Did you mean "close"?)"));
        CHECK(status_of(session, status) == status);
    }
    auto error = refusal(session, "SELECT outbox.compensate('pending', 'frobnicate')");
    CHECK_THAT(error.hint, ContainsSubstring(R"("close", "reopen")"));
    insert(session, "l-1", "look");
    CHECK(refusal(session, "SELECT outbox.compensate('l-1')").sqlstate == "OB404");
    CHECK(refusal(session, "SELECT outbox.compensate('l-1', 'close')").sqlstate == "OB404");
    CHECK(refusal(session, "SELECT outbox.compensate('nothing', 'close')").sqlstate == "OB404");
    // A compensation has none itself.
    compensate(session, "succeeded", ", 'close'");
    CHECK(
        refusal(session, "SELECT outbox.compensate('succeeded:compensate:close', 'close')")
            .sqlstate == "OB404"
    );
}

TEST_CASE("bad input of compensate is OB400, OB413 or OB422") {
    World world;
    auto& session = world.session;
    world.add("op-1", "succeeded");
    auto state = [&](const std::string& call) {
        const auto error = refusal(session, "SELECT outbox.compensate(" + call + ")");
        CHECK_FALSE(error.detail.empty());
        CHECK_FALSE(error.hint.empty());
        return error.sqlstate;
    };
    CHECK(state("NULL, 'close'") == "OB400");
    CHECK(state("'', 'close'") == "OB400");
    CHECK(state("'op-1', ''") == "OB400");
    CHECK(state("'op-1', repeat('n', 65)") == "OB400");
    CHECK(state("'op-1', E'a\\nb'") == "OB400");
    CHECK(state("'op-1', 'close', '[]'") == "OB400");
    CHECK(state("'op-1', 'close', '{}', repeat('x', 2001)") == "OB400");
    CHECK(state("'op-1', 'close', jsonb_build_object('a', repeat('x', 1100000))") == "OB413");
    CHECK(session.text("SELECT count(*) FROM outbox.operation") == "1");
    // An explicit null is as good as leaving it out.
    CHECK(compensate(session, "op-1", ", 'close', NULL, NULL")[1] == "pending");
    CHECK(state("'op-1', 'close', '{\"a\": 1}'") == "OB422");
    compensate(session, "op-1", ", 'reopen', '{\"a\": \" x \", \"n\": 1.0}'");
    CHECK(compensate(session, "op-1", ", 'reopen', '{\"n\": 1, \"a\": \"x\"}'")[2] == "t");
    CHECK(state("'op-1', 'reopen'") == "OB422");
}

TEST_CASE("the longest id and the longest name fit") {
    Database database;
    auto session = database.connect();
    const std::string name(64, 'n');
    const std::string tool(35, 't');
    session.query(
        "INSERT INTO outbox.tool (tool, effect, revision, compensations) VALUES ($1, 'write', '1', "
        "ARRAY[$2::text])",
        {tool, name}
    );
    const std::string id(200, 'x');
    insert(session, id, tool);
    bring_to(session, id, "succeeded");
    CHECK(compensate(session, id)[0] == id + ":compensate:" + name);
}

TEST_CASE("a compensation that needs what was pruned is OB410") {
    World world;
    auto& session = world.session;
    for (const std::string id : {"op-1", "op-2"}) {
        world.add(id, "succeeded");
    }
    insert(session, "m-1", "mail");
    bring_to(session, "m-1", "succeeded");
    compensate(session, "op-2", ", 'close'");
    session.run(
        "UPDATE outbox.outcome SET result = NULL, result_expired = true; "
        "UPDATE outbox.operation SET arguments = '{}', pruned_at = now() WHERE compensates IS NULL"
    );
    auto error = refusal(session, "SELECT outbox.compensate('op-1', 'close')");
    CHECK(error.sqlstate == "OB410");
    CHECK_THAT(error.detail, ContainsSubstring("result"));
    CHECK(refusal(session, "SELECT outbox.compensate('m-1')").sqlstate == "OB410");
    // One that needs neither, and one that is recorded already.
    CHECK(compensate(session, "op-1", ", 'reopen'")[1] == "pending");
    CHECK(compensate(session, "op-2", ", 'close'")[2] == "t");
    // A daemon that does not say what it needs may need both.
    session.run("UPDATE outbox.tool SET needs_original = DEFAULT WHERE tool = 'create_ticket:close'"
    );
    CHECK(refusal(session, "SELECT outbox.compensate('op-1', 'close')").sqlstate == "OB410");
}

TEST_CASE("compensations are not enqueued, and are no hint for a misspelt tool") {
    World world;
    auto& session = world.session;
    for (const std::string call :
         {"outbox.enqueue('create_ticket:close', operation_id => 'x')",
          "outbox.enqueue_many('[{\"tool\": \"create_ticket:close\", \"operation_id\": \"x\"}]')"
         }) {
        auto error = refusal(session, "SELECT " + call);
        CHECK(error.sqlstate == "OB400");
        CHECK_THAT(error.hint, ContainsSubstring("outbox.compensate(operation_id, 'close')"));
    }
    auto error =
        refusal(session, "SELECT outbox.enqueue('create_ticket:clos', operation_id => 'x')");
    CHECK(error.sqlstate == "OB404");
    CHECK(error.detail.find("create_ticket:close") == std::string::npos);
    CHECK(error.hint.find("create_ticket:close") == std::string::npos);
}

TEST_CASE("compensate touches few rows, also in a session that knew small tables") {
    World world;
    auto& session = world.session;
    for (const std::string id : {"op-1", "op-2", "op-3", "op-4", "op-5", "op-6", "op-7"}) {
        insert(session, id);
        bring_to(session, id, id < "op-5" ? "succeeded" : "unknown");
    }
    session.run("ANALYZE");
    for (int i = 0; i < 8; ++i) compensate(session, "op-1", ", 'close'");
    session.run(
        "INSERT INTO outbox.operation (operation_id, tool) "
        "SELECT 'more-' || n, 'create_ticket' FROM generate_series(1, 20000) n; "
        "WITH gone AS (DELETE FROM outbox.queue WHERE seq % 2 = 1 AND status = 'pending' "
        "RETURNING seq) INSERT INTO outbox.outcome (seq, outcome, attempts, lease_epoch) "
        "SELECT seq, 'succeeded', 1, 2 FROM gone"
    );
    const std::string touched =
        "SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)) "
        "FROM pg_stat_xact_user_tables WHERE schemaname = 'outbox' AND relname <> 'tool'";
    // A replay, a success, one in doubt, one that is pending, one that succeeded among the many.
    for (const std::string id : {"op-1", "op-2", "op-6", "more-10002", "more-10003"}) {
        INFO(id);
        session.run("BEGIN");
        const auto before = std::stoi(session.text(touched));
        compensate(session, id, ", 'close'");
        const auto after = std::stoi(session.text(touched));
        session.run("ROLLBACK");
        CHECK(after - before < 60);
    }
}
