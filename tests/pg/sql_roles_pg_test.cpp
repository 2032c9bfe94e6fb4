#include "sql/queries.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/database.hpp"
#include "tests/support/operation_states.hpp"
#include "tests/support/refusal.hpp"

using tests::Database;
using tests::refusal;
using tests::Row;
using tests::Rows;
using tests::Session;

namespace {

// A session as somebody who logged in with this role: not even RESET ROLE leads out.
Session as(const Database& database, const std::string& role) {
    auto session = database.connect();
    session.run("SET SESSION AUTHORIZATION " + role);
    return session;
}

bool denied(Session& session, const std::string& sql) {
    return refusal(session, sql).sqlstate == "42501";
}

}  // namespace

TEST_CASE("a planner can do what it must") {
    Database database;
    database.connect().run(
        "INSERT INTO outbox.tool (tool, effect, revision, compensations) "
        "VALUES ('t', 'write', 'r1', '{undo}')"
    );
    auto planner = as(database, "outbox_planner");
    CHECK(
        planner.text(
            "INSERT INTO outbox.operation (operation_id, tool, arguments, run_id, priority, "
            "run_at, expires_at, max_attempts, traceparent, labels) "
            "VALUES ('op-1', 't', '{}', 'r', 0, NULL, NULL, NULL, NULL, NULL) "
            "ON CONFLICT (operation_id) DO NOTHING RETURNING operation_id"
        ) == "op-1"
    );
    CHECK(planner
              .query("INSERT INTO outbox.operation (operation_id, tool) VALUES ('op-1', 't') "
                     "ON CONFLICT (operation_id) DO NOTHING RETURNING operation_id")
              .empty());
    planner.run(
        "INSERT INTO outbox.operation (operation_id, tool) VALUES ('op-1', 't') "
        "ON CONFLICT DO NOTHING"
    );
    CHECK(planner.text("SELECT operation_id FROM outbox.operation") == "op-1");
    CHECK(planner.text("SELECT replayed FROM outbox.enqueue('t', operation_id => 'op-1')") == "t");
    CHECK(
        planner.text("SELECT replayed FROM outbox.enqueue_many("
                     "'[{\"tool\": \"t\", \"run_id\": \"r\"}]')") == "f"
    );
    CHECK(planner.text("SELECT status FROM outbox.get('op-1')") == "pending");
    CHECK(
        planner.text(
            "SELECT outbox.derive_id('t', '{}', 'r') = outbox.operation_key('t', '{}', 'r')"
        ) == "t"
    );
    CHECK(planner.text("SELECT outbox.cancel('op-1')") == "cancelled");
    CHECK(
        planner.text("SELECT status FROM outbox.enqueue('t', operation_id => 'op-2')") == "pending"
    );
    CHECK(planner.text("SELECT status FROM outbox.compensate('op-2', 'undo')") == "cancelled");
    CHECK(database.connect().text("SELECT DISTINCT actor FROM outbox.event") == "outbox_planner");
}

TEST_CASE("a planner's table may point at an intent") {
    Database database;
    auto owner = database.connect();
    owner.run("CREATE SCHEMA planner AUTHORIZATION outbox_planner");
    auto planner = as(database, "outbox_planner");
    planner.run(
        "CREATE TABLE planner.step (operation_id text REFERENCES outbox.operation (operation_id)); "
        "INSERT INTO outbox.operation (operation_id, tool) VALUES ('op-1', 't'); "
        "INSERT INTO planner.step VALUES ('op-1')"
    );
    CHECK(refusal(planner, "INSERT INTO planner.step VALUES ('op-2')").sqlstate == "23503");
    // An open reference does not hide the work from a lease.
    planner.run("BEGIN; INSERT INTO planner.step VALUES ('op-1')");
    CHECK_NOTHROW(tests::begin_attempt(owner, "op-1"));
    planner.run("COMMIT");
}

TEST_CASE("a planner cannot forge, change or read more") {
    Database database;
    auto owner = database.connect();
    owner.run("INSERT INTO outbox.operation (operation_id, tool) VALUES ('op-1', 't')");
    auto planner = as(database, "outbox_planner");
    for (std::string sql : {
             "INSERT INTO outbox.operation (operation_id, tool, compensates) VALUES ('x', 't', "
             "'op-1')",
             "INSERT INTO outbox.operation (operation_id, tool, created_at) VALUES ('x', 't', "
             "now())",
             "INSERT INTO outbox.operation (operation_id, tool, arguments_digest) VALUES ('x', "
             "'t', 'd')",
             "INSERT INTO outbox.operation (operation_id, tool, pruned_at) VALUES ('x', 't', "
             "now())",
             "INSERT INTO outbox.operation (operation_id, tool) OVERRIDING SYSTEM VALUE "
             "VALUES ('op-1', 't') ON CONFLICT (operation_id) DO UPDATE SET tool = 'u'",
             "INSERT INTO outbox.operation (seq, operation_id, tool) OVERRIDING SYSTEM VALUE "
             "VALUES (1, 'x', 't')",
             "UPDATE outbox.operation SET tool = 'u'",
             "DELETE FROM outbox.operation",
             "TRUNCATE outbox.operation",
             "SELECT arguments FROM outbox.operation",
             "SELECT * FROM outbox.operation",
             "INSERT INTO outbox.operation (operation_id, tool) VALUES ('x', 't') RETURNING seq",
             "INSERT INTO outbox.operation (operation_id, tool, reason) VALUES ('x', 't', 'r')",
             "UPDATE outbox.queue SET waits_for = NULL",
             "SELECT outbox.cancel_waiting(1)",
             "SELECT outbox.record_compensation(NULL, 'n', '{}', NULL, false)",
             "SELECT outbox.replay_compensation('x', '{}')",
             "SELECT outbox.find_compensation('t', NULL)",
             "SELECT 1 FROM outbox.queue",
             "UPDATE outbox.queue SET status = 'pending'",
             "DELETE FROM outbox.queue",
             "INSERT INTO outbox.queue (seq, tool, priority, status) "
             "VALUES (1, 't', 0, 'pending')",
             "SELECT 1 FROM outbox.outcome",
             "INSERT INTO outbox.outcome (seq, outcome, attempts, "
             "lease_epoch) VALUES (1, 'succeeded', 1, 1)",
             "SELECT 1 FROM outbox.event",
             "INSERT INTO outbox.event (operation_id, kind) "
             "VALUES ('op-1', 'resolved')",
             "SELECT 1 FROM outbox.operations",
             "SELECT 1 FROM outbox.attention",
             "SELECT 1 FROM outbox.tool",
             "SELECT 1 FROM outbox.setting",
             "SELECT 1 FROM outbox.request",
             "SELECT 1 FROM outbox.worker",
             "SELECT 1 FROM outbox.migration",
             "SELECT outbox.retry('op-1', 'r')",
             "SELECT outbox.pause_tool('t', 'r')",
             "SELECT outbox.resume_tool('t')",
             "SELECT outbox.acknowledge('op-1', 'r', 'a')",
             "SELECT outbox.resolve('op-1', 'applied', 'r', 'a', 1)",
             "SELECT outbox.arm_again(1, '{}')",
             "SELECT outbox.wake('t')",
             "SELECT outbox.grant_rights()",
             "SELECT outbox.disown()",
             "SELECT outbox.record_intent('x', false, 't', '{}', NULL, 0::smallint, NULL, NULL, "
             "NULL, "
             "NULL, NULL, false)",
             "CREATE TABLE outbox.trap (n integer)",
             "DROP TRIGGER file_work ON outbox.operation",
             "ALTER TABLE outbox.operation DISABLE TRIGGER file_work",
             "SELECT nextval('outbox.operation_seq_seq')",
         }) {
        INFO(sql);
        CHECK(denied(planner, sql));
    }
    CHECK(owner.query("SELECT operation_id, tool FROM outbox.operation") == Rows{{"op-1", "t"}});
}

TEST_CASE("a reader reads the views and the events, and nothing else") {
    Database database;
    auto reader = as(database, "outbox_reader");
    for (std::string sql :
         {"SELECT * FROM outbox.operations",
          "SELECT * FROM outbox.attention",
          "SELECT * FROM outbox.event"}) {
        INFO(sql);
        CHECK_NOTHROW(reader.query(sql));
    }
    for (std::string sql :
         {"SELECT 1 FROM outbox.operation",
          "SELECT 1 FROM outbox.queue",
          "SELECT 1 FROM outbox.outcome",
          "SELECT outbox.enqueue('t', operation_id => 'x')",
          "SELECT outbox.cancel('x')",
          "SELECT outbox.retry('x', 'r')",
          "DELETE FROM outbox.event",
          "INSERT INTO outbox.operation (operation_id, tool) VALUES ('x', 't')"}) {
        INFO(sql);
        CHECK(denied(reader, sql));
    }
}

TEST_CASE("an operator plans, reads and steers, through functions only") {
    Database database;
    auto steering = as(database, "outbox_operator");
    CHECK(
        steering.text("SELECT status FROM outbox.enqueue('t', operation_id => 'op-1')") == "pending"
    );
    CHECK(steering.text("SELECT status FROM outbox.operations") == "pending");
    CHECK(steering.text("SELECT outbox.retry('op-1', 'r')") == "not_failed");
    CHECK(steering.text("SELECT outbox.resolve('op-1', 'applied', 'r', 'a', 1)") == "not_unknown");
    CHECK(steering.text("SELECT outbox.acknowledge('op-1', 'r', 'a')") == "nothing_to_acknowledge");
    CHECK(steering.text("SELECT outbox.pause_tool('t', 'r')") == "not_found");
    CHECK(denied(steering, "UPDATE outbox.queue SET status = 'pending'"));
    CHECK(denied(steering, "DELETE FROM outbox.outcome"));
}

TEST_CASE("the daemon's role may run every embedded query") {
    Database database;
    auto worker = as(database, "outbox_worker");
    for (const auto& query : outbox::sql::queries()) {
        INFO(query.name);
        if (query.name == "record_migration" || query.name == "lock_migrations") {
            continue;  // only the migrating role
        }
        worker.run("PREPARE q AS " + *query.text);
        auto count = std::stoi(worker.text(
            "SELECT cardinality(parameter_types) FROM pg_prepared_statements WHERE name = 'q'"
        ));
        std::string nulls;
        for (int i = 0; i < count; ++i) {
            nulls += i == 0 ? "(NULL" : ", NULL";
        }
        // EXPLAIN checks the rights and runs nothing.
        CHECK_NOTHROW(worker.query("EXPLAIN EXECUTE q" + (nulls.empty() ? "" : nulls + ")")));
        worker.run("DEALLOCATE q");
    }
    CHECK(denied(worker, "DELETE FROM outbox.operation"));
    CHECK(denied(worker, "UPDATE outbox.operation SET tool = 'u'"));
}

TEST_CASE("definer functions belong to no superuser, pin their path, and are not for everybody") {
    Database database;
    auto session = database.connect();
    CHECK(session
              .query(
                  "SELECT p.oid::regprocedure FROM pg_proc p JOIN pg_roles r ON r.oid = p.proowner "
                  "WHERE p.pronamespace = 'outbox'::regnamespace AND r.rolsuper"
              )
              .empty());
    // The filing trigger alone qualifies every name instead.
    CHECK(
        session.query(
            "SELECT p.proname FROM pg_proc p WHERE p.pronamespace = 'outbox'::regnamespace "
            "AND p.prosecdef AND NOT 'search_path=pg_catalog, outbox, pg_temp' = "
            "ANY (coalesce(p.proconfig, '{}'))"
        ) == Rows{{"file_work"}}
    );
    CHECK(session
              .query("SELECT p.oid::regprocedure FROM pg_proc p WHERE p.pronamespace = "
                     "'outbox'::regnamespace AND has_function_privilege('public', p.oid, 'EXECUTE')"
              )
              .empty());
    CHECK(session
              .query("SELECT c.relname FROM pg_class c JOIN pg_roles r ON r.oid = c.relowner "
                     "WHERE c.relnamespace = 'outbox'::regnamespace AND r.rolsuper")
              .empty());
}

TEST_CASE("a migrating role that may not create roles is told what to run") {
    auto database = Database::empty();
    auto admin = database.connect();
    admin.run(
        "DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'app') THEN "
        "CREATE ROLE app LOGIN; END IF; END $$; "
        "ALTER DATABASE " +
        database.name() + " OWNER TO app"
    );
    // Roles belong to the cluster: one of them is out of sight while this database migrates.
    admin.run("ALTER ROLE outbox_reader RENAME TO outbox_elsewhere");
    auto app = as(database, "app");
    tests::migrate(app);
    admin.run("ALTER ROLE outbox_elsewhere RENAME TO outbox_reader");
    auto warnings = app.warnings();
    REQUIRE(warnings.size() == 1);
    CHECK_THAT(warnings[0], ContainsSubstring("CREATE ROLE outbox_reader NOLOGIN;"));
    CHECK_THAT(warnings[0], ContainsSubstring("SELECT outbox.grant_rights();"));

    CHECK(
        app.text(
            "SELECT pg_get_userbyid(proowner) FROM pg_proc WHERE oid = 'outbox.cancel'::regproc"
        ) == "app"
    );
    CHECK(app.text("SELECT status FROM outbox.enqueue('t', operation_id => 'op-1')") == "pending");
    // The roles that were there got their rights; the others get them afterwards.
    auto planner = as(database, "outbox_planner");
    CHECK(planner.text("SELECT status FROM outbox.get('op-1')") == "pending");
    auto reader = as(database, "outbox_reader");
    CHECK(denied(reader, "SELECT status FROM outbox.operations"));
    app.run("SELECT outbox.grant_rights()");
    CHECK(reader.text("SELECT status FROM outbox.operations") == "pending");
}
