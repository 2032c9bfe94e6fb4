#include "tests/support/catch.hpp"
#include "tests/support/database.hpp"
#include "tests/support/refusal.hpp"

using tests::Database;
using tests::refusal;
using tests::Row;
using tests::Rows;

TEST_CASE("a plain insert files the work in the same transaction") {
    Database database;
    auto session = database.connect();
    session.run("BEGIN; INSERT INTO outbox.operation (operation_id, tool) VALUES ('op-1', 'echo')");
    CHECK(session.text("SELECT count(*) FROM outbox.queue") == "1");
    session.run("ROLLBACK");
    CHECK(session.text("SELECT count(*) FROM outbox.queue") == "0");

    session.run(
        "INSERT INTO outbox.operation (operation_id, tool, priority, run_at, expires_at) VALUES "
        "('op-1', 'echo', 3, NULL, 'tomorrow'), ('op-2', 'mail', 0, now() + interval '1 hour', "
        "NULL)"
    );
    CHECK(
        session.query(
            "SELECT tool, status, priority, expires_at IS NOT NULL, lease_epoch, attempts "
            "FROM outbox.queue ORDER BY seq"
        ) ==
        Rows{{"echo", "pending", "3", "t", "0", "0"}, {"mail", "scheduled", "0", "f", "0", "0"}}
    );

    // A known id files nothing.
    session.run(
        "INSERT INTO outbox.operation (operation_id, tool) VALUES ('op-1', 'echo') "
        "ON CONFLICT (operation_id) DO NOTHING"
    );
    CHECK(session.text("SELECT count(*) FROM outbox.queue") == "2");
}

TEST_CASE("a plain insert equals enqueue") {
    Database database;
    auto session = database.connect();
    session.run(
        "INSERT INTO outbox.operation (operation_id, tool, arguments, run_id, priority, run_at, "
        "expires_at, max_attempts, traceparent, labels) VALUES ('plain', 't', '{\"a\": 1}', 'r', "
        "5, "
        "'2100-01-01', '2100-01-02', 3, '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', "
        "'{\"team\": \"x\"}')"
    );
    session.run(
        "SELECT outbox.enqueue('t', '{\"a\": 1}', 'function', 'r', priority => 5::smallint, "
        "run_at => '2100-01-01', expires_at => '2100-01-02', max_attempts => 3, "
        "traceparent => '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01', "
        "labels => '{\"team\": \"x\"}')"
    );
    auto rows = session.query(
        "SELECT to_jsonb(o) - 'operation_id' - 'seq' - 'created_at', to_jsonb(q) - 'seq' "
        "FROM outbox.operation o JOIN outbox.queue q USING (seq) ORDER BY o.seq"
    );
    REQUIRE(rows.size() == 2);
    CHECK(rows[0] == rows[1]);

    // The defaults are equal too, and each road knows what the other recorded.
    session.run(
        "INSERT INTO outbox.operation (operation_id, tool) VALUES ('plain-2', 't'); "
        "SELECT outbox.enqueue('t', operation_id => 'function-2')"
    );
    rows = session.query(
        "SELECT to_jsonb(o) - 'operation_id' - 'seq' - 'created_at', to_jsonb(q) - 'seq' "
        "FROM outbox.operation o JOIN outbox.queue q USING (seq) "
        "WHERE operation_id LIKE '%-2' ORDER BY o.seq"
    );
    CHECK(rows[0] == rows[1]);
    CHECK(
        session.text("SELECT replayed FROM outbox.enqueue('t', operation_id => 'plain-2')") == "t"
    );
    CHECK(session
              .query("INSERT INTO outbox.operation (operation_id, tool) VALUES ('function-2', 't') "
                     "ON CONFLICT (operation_id) DO NOTHING RETURNING operation_id")
              .empty());
}

TEST_CASE("a limit holds on both roads") {
    struct Limit {
        std::string column;
        std::string bad;   // SQL
        std::string good;  // the furthest that is allowed
    };
    Database database;
    auto session = database.connect();
    const std::vector<Limit> limits{
        {"operation_id", "repeat('x', 201)", "repeat('x', 200)"},
        {"operation_id", "repeat('é', 101)", "repeat('é', 100)"},
        {"operation_id", "''", "'x'"},
        {"operation_id", "E'a\\nb'", "'a b'"},
        {"operation_id", "E'a\\u0080b'", "E'a\\u00a0b'"},
        {"operation_id", "'a:compensate:b'", "'a:compensate'"},
        {"tool", "repeat('x', 101)", "repeat('x', 100)"},
        {"tool", "''", "'x'"},
        {"arguments", "'[]'::jsonb", "'{}'::jsonb"},
        {"arguments", "'null'::jsonb", "'{\"a\": null}'::jsonb"},
        {"arguments",
         "jsonb_build_object('a', repeat('x', 1048568))",
         "jsonb_build_object('a', repeat('x', 1048567))"},
        {"run_id", "repeat('x', 201)", "repeat('x', 200)"},
        {"run_id", "E'a\\tb'", "'a b'"},
        {"priority", "101::smallint", "100::smallint"},
        {"priority", "(-101)::smallint", "(-100)::smallint"},
        {"run_at", "'infinity'::timestamptz", "'2100-01-01'::timestamptz"},
        {"expires_at", "'-infinity'::timestamptz", "'2000-01-01'::timestamptz"},
        {"max_attempts", "0", "1"},
        {"max_attempts", "1001", "1000"},
        {"traceparent",
         "'00-00000000000000000000000000000000-b7ad6b7169203331-01'",
         "'00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00'"},
        {"traceparent",
         "'ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01'",
         "'01-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-ff'"},
        {"labels", "'{\"a\": 1}'::jsonb", "'{\"a\": \"1\"}'::jsonb"},
        {"labels", "'[\"a\"]'::jsonb", "'{}'::jsonb"},
    };
    int count = 0;
    for (const auto& limit : limits) {
        INFO(limit.column << " " << limit.bad);
        auto insert = [&](const std::string& value) {
            std::string columns = limit.column;
            std::string values = value;
            if (limit.column != "operation_id") {
                columns += ", operation_id";
                values += ", 'insert-" + std::to_string(++count) + "'";
            }
            if (limit.column != "tool") {
                columns += ", tool";
                values += ", 't'";
            }
            return "INSERT INTO outbox.operation (" + columns + ") VALUES (" + values + ")";
        };
        auto enqueue = [&](const std::string& value) {
            std::string call = limit.column + " => " + value;
            if (limit.column != "operation_id") {
                call += ", operation_id => 'enqueue-" + std::to_string(++count) + "'";
            }
            if (limit.column != "tool") {
                call += ", tool => 't'";
            }
            return "SELECT outbox.enqueue(" + call + ")";
        };
        CHECK(refusal(session, insert(limit.bad)).sqlstate == "23514");
        auto error = refusal(session, enqueue(limit.bad));
        CHECK(
            error.sqlstate == (limit.bad.find("1048568") == std::string::npos ? "OB400" : "OB413")
        );
        CHECK_FALSE(error.detail.empty());
        CHECK_FALSE(error.hint.empty());
        CHECK_NOTHROW(session.query(insert(limit.good)));
        CHECK_NOTHROW(session.query(enqueue(limit.good)));
    }
}

TEST_CASE("a hostile search_path does not reach the filing trigger") {
    Database database;
    auto session = database.connect();
    // Everything the trigger could look up by name, made again by an attacker: functions, operators
    // and tables, in a schema of its own and among the temporary ones.
    session.run(
        "CREATE SCHEMA evil; CREATE TABLE evil.trap (what text); "
        "CREATE FUNCTION evil.spring(what text) RETURNS void LANGUAGE sql AS "
        "$$INSERT INTO evil.trap VALUES (what)$$; "
        "CREATE FUNCTION evil.now() RETURNS timestamptz LANGUAGE sql AS "
        "$$SELECT evil.spring('now'); SELECT 'infinity'::timestamptz$$; "
        "CREATE FUNCTION evil.current_setting(text, boolean) RETURNS text LANGUAGE sql AS "
        "$$SELECT evil.spring('current_setting'); SELECT 'off'$$; "
        "CREATE FUNCTION evil.hashtext(text) RETURNS integer LANGUAGE sql AS "
        "$$SELECT evil.spring('hashtext'); SELECT 1$$; "
        "CREATE FUNCTION evil.pg_notify(text, text) RETURNS void LANGUAGE sql AS "
        "$$SELECT evil.spring('pg_notify')$$; "
        "CREATE FUNCTION evil.pg_try_advisory_xact_lock_shared(integer, integer) RETURNS boolean "
        "LANGUAGE sql AS $$SELECT evil.spring('lock'); SELECT true$$; "
        "CREATE FUNCTION evil.later(timestamptz, timestamptz) RETURNS boolean LANGUAGE sql AS "
        "$$SELECT evil.spring('>'); SELECT true$$; "
        "CREATE OPERATOR evil.> (LEFTARG = timestamptz, RIGHTARG = timestamptz, FUNCTION = "
        "evil.later); "
        "CREATE FUNCTION evil.same(text, text) RETURNS boolean LANGUAGE sql AS "
        "$$SELECT evil.spring('='); SELECT true$$; "
        "CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.same); "
        "CREATE TABLE evil.added (seq bigint, tool text, priority smallint, run_at timestamptz, "
        "expires_at timestamptz); INSERT INTO evil.added VALUES (999, 'evil', 0); "
        "CREATE TEMP TABLE added (seq bigint, tool text, priority smallint, run_at timestamptz, "
        "expires_at timestamptz); INSERT INTO added VALUES (998, 'evil', 0); "
        "CREATE TEMP TABLE queue (seq bigint); "
        "SET search_path = evil, pg_temp, pg_catalog"
    );
    auto sleeper = database.connect();
    sleeper.run("LISTEN outbox_wake; SELECT pg_advisory_lock(1869968504, hashtext('echo'))");

    session.run(
        "INSERT INTO outbox.operation (operation_id, tool, run_at) "
        "VALUES ('op-1', 'echo', '2000-01-01')"
    );
    CHECK(session.query("SELECT tool, status FROM outbox.queue") == Rows{{"echo", "pending"}});
    CHECK(session.query("SELECT what FROM evil.trap").empty());
    sleeper.run("SELECT");
    CHECK(sleeper.notifications() == std::vector<std::string>{"echo"});
}

TEST_CASE("only a sleeping daemon is notified, once per statement and tool") {
    Database database;
    auto session = database.connect();
    auto daemon = database.connect();
    daemon.run("LISTEN outbox_wake");
    auto heard = [&] {
        daemon.run("SELECT");
        return daemon.notifications();
    };
    session.run("INSERT INTO outbox.operation (operation_id, tool) VALUES ('a', 'echo')");
    CHECK(heard().empty());

    daemon.run("SELECT pg_try_advisory_lock(1869968504, hashtext('echo'))");
    session.run(
        "INSERT INTO outbox.operation (operation_id, tool) "
        "VALUES ('b', 'echo'), ('c', 'echo'), ('d', 'mail')"
    );
    CHECK(heard() == std::vector<std::string>{"echo"});
    session.run("SELECT outbox.enqueue('echo', operation_id => 'e')");
    CHECK(heard() == std::vector<std::string>{"echo"});
    // A replay wakes nobody.
    session.run("SELECT outbox.enqueue('echo', operation_id => 'e')");
    CHECK(heard().empty());

    session.run("SET outbox.wakeup = 'off'");
    session.run("INSERT INTO outbox.operation (operation_id, tool) VALUES ('f', 'echo')");
    CHECK(heard().empty());

    // An open planner transaction keeps the daemon from falling asleep before it commits.
    session.run("RESET outbox.wakeup");
    session.run("BEGIN; INSERT INTO outbox.operation (operation_id, tool) VALUES ('g', 'mail')");
    CHECK(daemon.text("SELECT pg_try_advisory_lock(1869968504, hashtext('mail'))") == "f");
    session.run("COMMIT");
    CHECK(daemon.text("SELECT pg_try_advisory_lock(1869968504, hashtext('mail'))") == "t");
}

TEST_CASE("two-phase commit works with the wake-up off") {
    Database database;
    auto session = database.connect();
    auto daemon = database.connect();
    daemon.run("SELECT pg_advisory_lock(1869968504, hashtext('echo'))");
    session.run("BEGIN; INSERT INTO outbox.operation (operation_id, tool) VALUES ('a', 'echo')");
    CHECK(refusal(session, "PREPARE TRANSACTION 'outbox-a'").sqlstate == "0A000");

    session.run("SET outbox.wakeup = 'off'");
    session.run("BEGIN; SELECT outbox.enqueue('echo', operation_id => 'a')");
    session.run("PREPARE TRANSACTION 'outbox-a'");
    CHECK(session.text("SELECT count(*) FROM outbox.queue") == "0");
    session.run("COMMIT PREPARED 'outbox-a'");
    CHECK(session.text("SELECT count(*) FROM outbox.queue") == "1");
}

TEST_CASE("one statement may insert many") {
    Database database;
    auto session = database.connect();
    session.run(
        "INSERT INTO outbox.operation (operation_id, tool) "
        "SELECT 'op-' || n, 't' FROM generate_series(1, 1000) n"
    );
    CHECK(
        session.text("SELECT count(*) FROM outbox.operation JOIN outbox.queue USING (seq, tool)") ==
        "1000"
    );
}
