#include "tests/support/catch.hpp"
#include "tests/support/database.hpp"
#include "tests/support/operation_states.hpp"
#include "tests/support/refusal.hpp"

using namespace std::chrono_literals;
using tests::begin_attempt;
using tests::bring_to;
using tests::Database;
using tests::refusal;
using tests::Row;
using tests::Rows;
using tests::Session;
using tests::Value;

namespace {

const std::vector<std::string> kStatuses{
    "pending", "scheduled", "attempting", "unknown", "succeeded", "failed", "cancelled"
};

void insert(Session& session, const std::string& id) {
    session.query("INSERT INTO outbox.operation (operation_id, tool) VALUES ($1, 't')", {id});
}

// One operation in every status, named after it.
void insert_all(Session& session) {
    for (const auto& status : kStatuses) {
        insert(session, status);
        bring_to(session, status, status);
    }
}

std::string status_of(Session& session, const std::string& id) {
    return session.text("SELECT status FROM outbox.get($1)", {id});
}

std::string epoch_of(Session& session, const std::string& id) {
    return session.text(
        "SELECT coalesce(q.lease_epoch, e.lease_epoch) FROM outbox.operation o "
        "LEFT JOIN outbox.queue q USING (seq) LEFT JOIN outbox.outcome e USING (seq) "
        "WHERE operation_id = $1",
        {id}
    );
}

}  // namespace

TEST_CASE("get is one row, and none for an unknown id") {
    Database database;
    auto session = database.connect();
    insert_all(session);
    for (const auto& status : kStatuses) {
        CHECK(status_of(session, status) == status);
    }
    CHECK(session.query("SELECT * FROM outbox.get('nothing')").empty());
    CHECK(
        session.query("SELECT replayed, result, error, tool, run_id, attempts, attempt_epoch, "
                      "started_at IS NOT NULL, finished_at IS NOT NULL, compensates, attention, "
                      "pg_typeof(attempts), pg_typeof(attempt_epoch) FROM outbox.get('succeeded')"
        ) ==
        Rows{{{}, R"({"id": "T-1"})", {}, "t", {}, "1", "1", "t", "t", {}, {}, "integer", "integer"}
        }
    );
    // A read leaves nothing behind.
    CHECK(session.text("SELECT count(*) FROM outbox.event") == "0");
}

TEST_CASE("cancel takes back what has not been attempted") {
    Database database;
    auto session = database.connect();
    insert_all(session);
    auto cancel = [&](const std::string& id) {
        return session.text("SELECT outbox.cancel($1, 'changed my mind')", {id});
    };
    auto before = std::stoi(epoch_of(session, "scheduled"));
    CHECK(cancel("pending") == "cancelled");
    CHECK(cancel("scheduled") == "cancelled");
    CHECK(std::stoi(epoch_of(session, "scheduled")) == before + 1);
    CHECK(cancel("attempting") == "too_late");
    CHECK(cancel("unknown") == "too_late");
    CHECK(cancel("succeeded") == "too_late");
    CHECK(cancel("failed") == "already_failed");
    CHECK(cancel("cancelled") == "already_cancelled");
    CHECK(cancel("pending") == "already_cancelled");
    CHECK(cancel("nothing") == "not_found");
    CHECK(status_of(session, "pending") == "cancelled");
    CHECK(
        session.query("SELECT operation_id, detail->>'reason', actor FROM outbox.event ORDER BY id"
        ) ==
        Rows{
            {"pending", "changed my mind", "postgres"}, {"scheduled", "changed my mind", "postgres"}
        }
    );
    CHECK(
        session.text("SELECT count(*) FROM outbox.operation o JOIN outbox.queue q USING (seq) "
                     "JOIN outbox.outcome e USING (seq)") == "0"
    );
}

TEST_CASE("a cancel that comes during a lease is too late, and leaves no lock") {
    Database database;
    auto worker = database.connect();
    auto planner = database.connect();
    insert(worker, "op-1");
    worker.run("BEGIN");
    begin_attempt(worker, "op-1");
    planner.run("BEGIN");
    planner.send("SELECT outbox.cancel('op-1')");
    CHECK(planner.still_running(300ms));
    worker.run("COMMIT");
    CHECK(planner.receive() == Rows{{"too_late"}});
    // The planner's transaction is still open; the worker's completion must not wait for it.
    worker.run("SET lock_timeout = '1s'");
    CHECK_NOTHROW(tests::end_operation(worker, "op-1", "succeeded", "{}"));
    planner.run("COMMIT");

    // The lease is rolled back: the cancel takes it.
    insert(worker, "op-2");
    worker.run("BEGIN");
    begin_attempt(worker, "op-2");
    planner.send("SELECT outbox.cancel('op-2')");
    CHECK(planner.still_running(200ms));
    worker.run("ROLLBACK");
    CHECK(planner.receive() == Rows{{"cancelled"}});
}

TEST_CASE("a cancel is undone with the planner's transaction") {
    Database database;
    auto session = database.connect();
    insert(session, "op-1");
    session.run("BEGIN");
    CHECK(session.text("SELECT outbox.cancel('op-1')") == "cancelled");
    session.run("ROLLBACK");
    CHECK(status_of(session, "op-1") == "pending");

    auto second = database.connect();
    session.run("BEGIN");
    CHECK(session.text("SELECT outbox.cancel('op-1')") == "cancelled");
    second.send("SELECT outbox.cancel('op-1')");
    CHECK(second.still_running(200ms));
    session.run("COMMIT");
    CHECK(second.receive() == Rows{{"already_cancelled"}});
}

TEST_CASE("retry arms what failed") {
    Database database;
    auto session = database.connect();
    auto daemon = database.connect();
    insert_all(session);
    daemon.run("LISTEN outbox_wake; SELECT pg_advisory_lock(1869968504, hashtext('t'))");
    auto before = std::stoi(epoch_of(session, "failed"));
    for (const auto& status : kStatuses) {
        CHECK(
            session.text("SELECT outbox.retry($1, 'fixed')", {status}) ==
            (status == "failed" ? "armed" : "not_failed")
        );
    }
    CHECK(session.text("SELECT outbox.retry('nothing', 'fixed')") == "not_found");
    CHECK(status_of(session, "failed") == "pending");
    CHECK(std::stoi(epoch_of(session, "failed")) == before + 1);
    CHECK(
        session.query("SELECT kind, detail->>'reason', detail->'error'->>'code' FROM outbox.event"
        ) == Rows{{"retried", "fixed", "validation"}}
    );
    daemon.run("SELECT");
    CHECK(daemon.notifications() == std::vector<std::string>{"t"});
}

TEST_CASE("resolve settles an unknown operation by a person's verdict") {
    Database database;
    auto session = database.connect();
    tests::publish_tool(session, "t");
    insert_all(session);
    auto resolve = [&](const std::string& id,
                       const std::string& verdict,
                       const Value& epoch,
                       const Value& result = {}) {
        return session.text(
            "SELECT outbox.resolve($1, $2, 'looked', 'ada', $3::integer, $4::jsonb)",
            {id, verdict, epoch, result}
        );
    };
    for (const auto& status : kStatuses) {
        if (status != "unknown") {
            CHECK(resolve(status, "applied", "1") == "not_unknown");
        }
    }
    CHECK(resolve("nothing", "applied", "1") == "not_found");
    CHECK(resolve("unknown", "applied", "2") == "stale");
    CHECK(resolve("unknown", "applied", {}) == "stale");
    CHECK(resolve("unknown", "not_applied", "1") == "too_early");
    CHECK(status_of(session, "unknown") == "unknown");
    CHECK(session.text("SELECT count(*) FROM outbox.event") == "0");

    // The deadline has passed, but not settle (10 s).
    session.run(
        "UPDATE outbox.queue SET deadline_at = now() - interval '9 s' WHERE status = 'unknown'"
    );
    CHECK(resolve("unknown", "not_applied", "1") == "too_early");
    session.run(
        "UPDATE outbox.queue SET deadline_at = now() - interval '11 s', attention = 'give_up', "
        "due_at = 'infinity', absent_count = 1, probes = 5, accepted = true, "
        "lease_epoch = lease_epoch + 1 WHERE status = 'unknown'"
    );  // a probe's claim
    auto before = std::stoi(epoch_of(session, "unknown"));
    CHECK(resolve("unknown", "not_applied", "1") == "resolved");
    CHECK(
        session.query(
            "SELECT status, lease_epoch, due_at <= now(), attention, absent_count, probes, "
            "accepted, unknown_since, attempts FROM outbox.queue q JOIN outbox.operation o "
            "USING (seq) WHERE operation_id = 'unknown'"
        ) == Rows{{"scheduled", std::to_string(before + 1), "t", {}, "0", "0", "f", {}, "1"}}
    );
    CHECK(
        session.query("SELECT kind, actor, detail->>'verdict', detail->>'reason', "
                      "detail->>'session_user' FROM outbox.event"
        ) == Rows{{"resolved", "ada", "not_applied", "looked", "postgres"}}
    );

    // Applied, whatever the clock says; the result is the person's.
    insert(session, "op-2");
    bring_to(session, "op-2", "unknown");
    CHECK(resolve("op-2", "applied", "1", R"({"id": "T-9"})") == "resolved");
    CHECK(
        session.query("SELECT status, result, attention FROM outbox.get('op-2')") ==
        Rows{{"succeeded", R"({"id": "T-9"})", {}}}
    );

    // Attempts used up: it did not happen, and it will not.
    session.run(
        "INSERT INTO outbox.operation (operation_id, tool, max_attempts) VALUES ('op-3', 't', 1)"
    );
    bring_to(session, "op-3", "unknown");
    session.run("UPDATE outbox.queue SET deadline_at = now() - interval '11 s'");
    CHECK(resolve("op-3", "not_applied", "1") == "resolved");
    CHECK(
        session.query("SELECT status, error->>'code' FROM outbox.get('op-3')") ==
        Rows{{"failed", "not_applied"}}
    );
}

TEST_CASE("a person who steers says why, and who it is") {
    Database database;
    auto session = database.connect();
    insert(session, "op-1");
    tests::publish_tool(session, "mail");
    for (std::string call :
         {"resolve('op-1', 'maybe', 'r', 'a', 1)",
          "resolve('op-1', NULL, 'r', 'a', 1)",
          "resolve('op-1', 'applied', ' ', 'a', 1)",
          "resolve('op-1', 'applied', 'r', NULL, 1)",
          "acknowledge('op-1', '', 'a')",
          "acknowledge('op-1', NULL, 'a')",
          "acknowledge('op-1', 'r', E' \\t\\n')",
          "acknowledge('op-1', 'r', NULL)",
          "retry('op-1', '')",
          "retry('op-1', E'\\t')",
          "retry('op-1', NULL)",
          "pause_tool('mail', ' ')",
          "pause_tool('mail', NULL)"}) {
        INFO(call);
        auto error = refusal(session, "SELECT outbox." + call);
        CHECK(error.sqlstate == "OB400");
        CHECK_FALSE(error.detail.empty());
        CHECK_FALSE(error.hint.empty());
    }
    CHECK(session.text("SELECT count(*) FROM outbox.event") == "0");
    CHECK(session.text("SELECT count(*) FROM outbox.tool WHERE paused_at IS NOT NULL") == "0");
}

TEST_CASE("an effect that late evidence has proved cannot be resolved away") {
    Database database;
    auto session = database.connect();
    tests::publish_tool(session, "t");
    for (std::string verdict : {"applied", "not_applied"}) {
        insert(session, verdict);
        bring_to(session, verdict, "unknown");
        session.run(
            "UPDATE outbox.queue SET attention = 'late_effect', result = '{\"id\": 1}', "
            "deadline_at = now() - interval '1 h'"
        );
        CHECK(
            session.text(
                "SELECT outbox.resolve($1, $1, 'looked', 'ada', 1, '{\"id\": 2}')", {verdict}
            ) == "resolved"
        );
    }
    CHECK(
        session.query("SELECT status, result, attention FROM outbox.operations ORDER BY seq") ==
        Rows{
            {"succeeded", R"({"id": 2})", "duplicate_effect"},
            {"succeeded", R"({"id": 1})", "late_effect"}
        }
    );
}

TEST_CASE("acknowledge clears the flag of a final operation") {
    Database database;
    auto session = database.connect();
    insert_all(session);
    session.run(
        "UPDATE outbox.outcome SET attention = 'late_effect' WHERE outcome = 'succeeded'; "
        "UPDATE outbox.queue SET attention = 'manual' WHERE status = 'unknown'"
    );
    CHECK(
        session.query("SELECT operation_id, attention FROM outbox.attention ORDER BY 1") ==
        Rows{{"succeeded", "late_effect"}, {"unknown", "manual"}}
    );
    CHECK(
        session.text("SELECT count(*) FROM outbox.attention WHERE why IS NULL OR since IS NULL") ==
        "0"
    );
    auto acknowledge = [&](const std::string& id) {
        return session.text("SELECT outbox.acknowledge($1, 'seen', 'ada')", {id});
    };
    CHECK(acknowledge("succeeded") == "acknowledged");
    CHECK(acknowledge("succeeded") == "nothing_to_acknowledge");
    CHECK(acknowledge("failed") == "nothing_to_acknowledge");
    CHECK(acknowledge("unknown") == "nothing_to_acknowledge");
    CHECK(acknowledge("nothing") == "not_found");
    CHECK(session.query("SELECT operation_id FROM outbox.attention") == Rows{{"unknown"}});
    CHECK(
        session.query("SELECT kind, actor, detail->>'attention' FROM outbox.event") ==
        Rows{{"acknowledged", "ada", "late_effect"}}
    );
}

TEST_CASE("a tool is paused and resumed") {
    Database database;
    auto session = database.connect();
    tests::publish_tool(session, "mail");
    CHECK(session.text("SELECT outbox.pause_tool('mail', 'provider down')") == "paused");
    auto since = session.text("SELECT paused_at FROM outbox.tool");
    CHECK(session.text("SELECT outbox.pause_tool('mail', 'still down')") == "paused");
    CHECK(
        session.query("SELECT paused_at, paused_reason FROM outbox.tool") ==
        Rows{{since, "still down"}}
    );
    CHECK(session.text("SELECT outbox.resume_tool('mail')") == "resumed");
    CHECK(session.query("SELECT paused_at, paused_reason FROM outbox.tool") == Rows{{{}, {}}});
    CHECK(refusal(session, "SELECT outbox.pause_tool('male', 'x')").sqlstate == "OB404");
    CHECK(refusal(session, "SELECT outbox.resume_tool('male')").sqlstate == "OB404");
}

TEST_CASE("the view tells how long it took and what is open") {
    Database database;
    auto session = database.connect();
    insert_all(session);
    CHECK(
        session.text("SELECT count(*) FROM outbox.operations") == std::to_string(kStatuses.size())
    );
    CHECK(
        session.text(
            "SELECT took >= '0' AND waited >= '0' AND NOT needs_attention AND due_at IS NULL "
            "FROM outbox.operations WHERE status = 'succeeded'"
        ) == "t"
    );
    CHECK(
        session.text("SELECT leased_by IS NOT NULL AND due_at IS NOT NULL FROM outbox.operations "
                     "WHERE status = 'attempting'") == "t"
    );
    // The columns of get are columns of the view, under the same names and types.
    CHECK(
        session.text("SELECT count(*) FROM pg_proc p, unnest(p.proargnames, p.proargmodes, "
                     "p.proallargtypes) "
                     "AS c (name, mode, type) WHERE p.oid = 'outbox.get'::regproc AND c.mode = 't' "
                     "AND NOT EXISTS (SELECT FROM pg_attribute a WHERE a.attrelid = "
                     "'outbox.operations'::regclass "
                     "AND a.attname = c.name AND a.atttypid = c.type)") == "0"
    );
    CHECK(session
              .query("SELECT c.relname, a.attname FROM pg_attribute a JOIN pg_class c ON c.oid = "
                     "a.attrelid "
                     "WHERE c.relnamespace = 'outbox'::regnamespace AND c.relkind = 'v' AND "
                     "a.attnum > 0 "
                     "AND col_description(a.attrelid, a.attnum) IS NULL")
              .empty());
}
