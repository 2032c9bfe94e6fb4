// A search_path that the database or the role sets, with schemas before the server's own, changes
// nothing of what the daemon calls; the statements of sql tools keep it, for they are the
// operator's.
#include <functional>
#include <thread>

#include "outbox/decide.hpp"
#include "outbox/pg/client.hpp"
#include "outbox/pg/listener.hpp"
#include "outbox/pg/migrator.hpp"
#include "outbox/pg/sql_database.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/store_fixture.hpp"

using namespace std::chrono_literals;
using outbox::Fate;
using outbox::LateFate;
using outbox::pg::PgStore;
using tests::Database;
using tests::Rows;
using tests::Session;
using tests::StoreFixture;
using tests::wait_for;

namespace {

// In schema evil a namesake of every function and operator of the server that can have one; whoever
// calls it is told so.
const std::string kTraps = R"sql(
CREATE SCHEMA evil;
DO $do$
DECLARE
    f record;
BEGIN
    FOR f IN
        SELECT p.oid, p.proname, p.proretset, p.prorettype::regtype AS result,
               pg_get_function_identity_arguments(p.oid) AS arguments
          FROM pg_proc p
         WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f'
           AND NOT EXISTS (
               SELECT FROM pg_type t
                WHERE t.oid = ANY (p.proargtypes::oid[] || p.prorettype)
                  AND t.typtype = 'p' AND t.typname !~ '^any.|^void$')
           AND p.proallargtypes IS NULL AND p.proname <> 'void_send'
    LOOP
        BEGIN
            EXECUTE format($q$CREATE FUNCTION evil.%I(%s) RETURNS %s %s LANGUAGE plpgsql AS
                $f$ BEGIN RAISE EXCEPTION 'hijacked: function %s'; END $f$ $q$, f.proname,
                f.arguments, CASE WHEN f.proretset THEN 'SETOF' ELSE '' END, f.result, f.proname);
        EXCEPTION WHEN invalid_function_definition OR ambiguous_function THEN
            NULL;  -- polymorphic in a way that plpgsql does not know
        END;
    END LOOP;
    FOR f IN
        SELECT o.oprname, o.oprleft::regtype AS l, o.oprright::regtype AS r, p.proname
          FROM pg_operator o JOIN pg_proc p ON p.oid = o.oprcode
         WHERE o.oprnamespace = 'pg_catalog'::regnamespace AND o.oprleft <> 0
           AND to_regprocedure(format('evil.%I(%s,%s)', p.proname, o.oprleft::regtype,
                                      o.oprright::regtype)) IS NOT NULL
    LOOP
        EXECUTE format('CREATE OPERATOR evil.%s (LEFTARG = %s, RIGHTARG = %s, FUNCTION = evil.%I)',
                       f.oprname, f.l, f.r, f.proname);
    END LOOP;
END $do$;
CREATE FUNCTION evil.counting(bigint) RETURNS bigint LANGUAGE plpgsql
    AS $$ BEGIN RAISE EXCEPTION 'hijacked: count'; END $$;
CREATE AGGREGATE evil.count(*) (SFUNC = evil.counting, STYPE = bigint);
)sql";

// New sessions of this database find the traps first: by the database's setting, or by the role's.
void set_traps(const Database& database, bool by_role, const std::string& path) {
    auto admin = database.connect();
    admin.run(kTraps);
    const auto who = admin.text("SELECT quote_ident(current_user)");
    admin.run(
        (by_role ? "ALTER ROLE " + who + " IN DATABASE " : "ALTER DATABASE ") + database.name() +
        " SET search_path = " + path
    );
    auto victim = database.connect();
    for (const std::string sql :
         {"SELECT now()", "SELECT 1::bigint = 2::bigint", "SELECT count(*) FROM pg_class"}) {
        INFO(sql);
        CHECK_THROWS_WITH(victim.query(sql), ContainsSubstring("hijacked"));
    }
}

void work_as_the_daemon_does(StoreFixture& t) {
    PgStore store(t.database.dsn(), outbox::WorkerId(tests::kWorker), nullptr);
    const outbox::WorkerId worker(tests::kWorker);
    wait_for(store.publish_tools(worker, {tests::policy("ticket"), tests::policy("mail")}));
    wait_for(store.heartbeat({worker, "name", "version", {"ticket"}}));
    t.insert("op-", 5);
    outbox::LeaseRequest request;
    request.worker = worker;
    request.margin = 10s;
    request.lanes.push_back(
        {.tool = "ticket", .limit = 4, .timeout = 20s, .request_hash = 7, .after = {}}
    );
    auto leased = wait_for(store.lease(request));
    REQUIRE(leased.size() == 4);
    auto fenced = tests::succeeded(leased[2], "T-3");
    fenced.epoch = outbox::Epoch(99);
    CHECK(
        wait_for(store.complete(
            {tests::succeeded(leased[0], "T-1"), tests::retried(leased[1], 0ms), fenced}
        )) == std::vector<Fate>{Fate::applied, Fate::applied, Fate::fenced}
    );
    t.outlive_lease("op-3");
    t.sql.run("UPDATE outbox.queue SET expires_at = now() - interval '1 s' WHERE status = 'pending'"
    );
    const auto report = wait_for(store.maintain(true));
    CHECK(report.expired == 1);
    CHECK(report.lease_expired == 1);
    CHECK(report.promoted == 1);
    CHECK(wait_for(store.record_late(tests::failed(leased[1], "late"))) == LateFate::stored);
    CHECK(
        wait_for(store.claim_probes(worker, 10s, {{.tool = "ticket", .limit = 9, .timeout = 5s}}))
            .size() == 1
    );
    CHECK(wait_for(store.record_late(tests::succeeded(leased[2], "T-3"))) == LateFate::settled);
    CHECK(wait_for(store.release_lost_leases(worker, {leased[3].intent.seq})) == 0);
    CHECK(wait_for(store.key_settings("ticket", 7)).has_value());
    CHECK_FALSE(wait_for(store.sample()).empty());
    wait_for(store.roll_up());
    wait_for(store.retire(worker));
}

void steer_as_people_do(StoreFixture& t) {
    outbox::pg::Client client(t.database.dsn());
    outbox::pg::EnqueueCall call;
    call.tool = "ticket";
    call.arguments = R"({"title": "x"})";
    call.operation_id = "by-hand";
    CHECK_THAT(client.enqueue(call), ContainsSubstring("pending"));
    CHECK_THAT(client.enqueue(call), ContainsSubstring("true"));
    CHECK(client.get("by-hand").has_value());
    CHECK_FALSE(client.last_error("by-hand").has_value());
    CHECK(client.list({{"pending"}, "ticket", {}, false, 10, {}}).size() == 2);
    CHECK(client.cancel("by-hand", "no longer") == "cancelled");
    CHECK(client.retry("op-5", "once more") == "armed");
    CHECK(client.events("by-hand").size() == 2);
    CHECK(client.pause_tool("ticket", "a look") == "paused");
    CHECK(client.resume_tool("ticket") == "resumed");
    CHECK_FALSE(client.stats().empty());
    CHECK(client.tools().size() == 3);
    CHECK(client.workers().size() == 1);
    CHECK_FALSE(client.claim_namespace("mine").empty());
    CHECK(client.derive_id("ticket", "{}", "run", 1).size() == 64);
}

void sleep_and_wake(StoreFixture& t) {
    boost::asio::io_context context;
    outbox::pg::Listener* ear = nullptr;
    int woken = 0;
    outbox::pg::Listener listener(
        {.dsn = t.database.dsn(), .tools = {"mail"}, .idle_poll = 100ms},
        context.get_executor(),
        [&](const std::string& tool) {
            ++woken;
            ear->polled(tool, false);
        }
    );
    ear = &listener;
    listener.start();
    const auto until = [&](const std::function<bool()>& holds) {
        for (int i = 0; i < 1200 && !holds(); ++i) {
            context.restart();
            context.poll();
            std::this_thread::sleep_for(50ms);
        }
        return holds();
    };
    CHECK(until([&] {
        return t.sql.text(
                   "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND mode = "
                   "'ExclusiveLock' AND database = (SELECT oid FROM pg_database WHERE datname = "
                   "current_database())"
               ) == "1";
    }));
    context.restart();
    context.poll();
    const auto before = woken;
    t.insert("mail-", 1, "mail");
    CHECK(until([&] { return woken > before; }));
    listener.stop();
}

}  // namespace

TEST_CASE("a hostile search_path changes nothing that the daemon calls") {
    for (const bool by_role : {false, true}) {
        INFO((by_role ? "the role's" : "the database's"));
        StoreFixture t;
        set_traps(t.database, by_role, "evil, pg_catalog");
        work_as_the_daemon_does(t);
        steer_as_people_do(t);
        sleep_and_wake(t);
    }
}

TEST_CASE("a hostile search_path gets into nothing that is migrated") {
    auto database = Database::empty();
    set_traps(database, false, "evil, pg_catalog");
    CHECK(outbox::pg::schema_state(database.dsn()).fit == outbox::pg::SchemaFit::missing);
    CHECK_FALSE(outbox::pg::migrate(database.dsn()).empty());
    CHECK(outbox::pg::schema_state(database.dsn()).fit == outbox::pg::SchemaFit::fits);
    auto admin = database.connect();
    admin.run("SET search_path = pg_catalog");
    // What a CHECK, a default, a view or an index calls is known by its oid: nothing of it is evil.
    CHECK(
        admin.query(
            "WITH evil AS (SELECT oid FROM pg_proc WHERE pronamespace = 'evil'::regnamespace "
            "UNION ALL SELECT oid FROM pg_operator WHERE oprnamespace = 'evil'::regnamespace) "
            "SELECT pg_describe_object(d.classid, d.objid, d.objsubid) FROM pg_depend d "
            "JOIN evil e ON e.oid = d.refobjid WHERE d.objid NOT IN (SELECT oid FROM evil)"
        ) == Rows{}
    );
    admin.run(
        "INSERT INTO outbox.operation (operation_id, tool, run_at) VALUES ('op-1', 't', now())"
    );
    CHECK(admin.text("SELECT status FROM outbox.operations") == "pending");
}

// Theirs may name their tables as they are used to; what we add to their transaction is ours.
TEST_CASE("a tool's statement has the search_path of its role and database, what records it has not"
) {
    StoreFixture t;
    t.sql.run(
        "CREATE SCHEMA app; CREATE TABLE app.effect (id text); CREATE TABLE app.seen (id text); "
        "CREATE FUNCTION app.see() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN INSERT INTO seen VALUES (NEW.id); RETURN NULL; END $$; "
        "CREATE CONSTRAINT TRIGGER at_commit AFTER INSERT ON app.effect "
        "DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION app.see()"
    );
    set_traps(t.database, false, "app, evil, pg_catalog");
    outbox::Failpoints failpoints;
    outbox::pg::PgDatabases databases(t.database.dsn(), &failpoints);
    const auto own = databases.open(std::nullopt);
    const auto other = databases.open(t.database.dsn());
    const auto judge = [](const outbox::SqlRows& rows) -> outbox::Outcome {
        return outbox::Succeeded{rows.rows, {}};
    };
    const auto call = [](std::string statement, std::string parameter) {
        outbox::SqlCall sql;
        sql.statement = std::move(statement);
        sql.parameters = {std::move(parameter)};
        sql.statement_timeout = 10s;
        sql.deadline = outbox::Deadline::after(60s);
        sql.max_bytes = 1000;
        return sql;
    };
    const std::string insert = "INSERT INTO effect VALUES ($1)";

    auto attempt = t.lease_one("op-1");
    outbox::OwnAttempt held;
    held.seq = attempt.intent.seq;
    held.epoch = attempt.epoch;
    held.leased_at = attempt.leased_at;
    held.decide = [&](const outbox::Outcome& outcome) {
        return outbox::decide_attempt(
            attempt, outcome, tests::policy("ticket"), attempt.leased_at, 0
        );
    };
    CHECK_FALSE(wait_for(own->perform(call(insert, "op-1"), judge, held)).failure.has_value());
    CHECK(t.state("op-1") == "succeeded 2 1");
    CHECK_FALSE(
        wait_for(other->perform(call(insert, "op-2"), judge, std::nullopt)).failure.has_value()
    );
    auto look = call("SELECT id FROM effect LIMIT $1", "5");
    look.read_only = true;
    const auto found = wait_for(own->look_up(look));
    CHECK_FALSE(found.failure.has_value());
    CHECK(t.sql.query("SELECT id FROM app.effect ORDER BY 1") == Rows{{"op-1"}, {"op-2"}});
    CHECK(t.sql.query("SELECT id FROM app.seen ORDER BY 1") == Rows{{"op-1"}, {"op-2"}});
}
