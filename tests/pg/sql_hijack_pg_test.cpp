// A planner with a session of its own may make temporary objects, schemas and types as it likes.
// None of them runs with the rights of the outbox's owner, whatever is called.
#include "tests/support/catch.hpp"
#include "tests/support/database.hpp"
#include "tests/support/refusal.hpp"

using tests::Database;
using tests::refusal;
using tests::Rows;
using tests::Session;

namespace {

Session as_planner(const Database& database) {
    auto session = database.connect();
    session.run(
        "CREATE SCHEMA evil AUTHORIZATION outbox_planner; "
        "CREATE TABLE evil.trap (who name); GRANT ALL ON evil.trap TO PUBLIC; "
        "GRANT USAGE ON SCHEMA evil TO PUBLIC; SET SESSION AUTHORIZATION outbox_planner"
    );
    return session;
}

// Springs when it runs as anybody but the planner.
const std::string kSpring =
    "CREATE FUNCTION evil.spring() RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN "
    "IF current_user <> 'outbox_planner' THEN INSERT INTO evil.trap VALUES (current_user); END IF; "
    "RETURN true; END $$; "
    "CREATE FUNCTION evil.checked(v pg_catalog.anyelement) RETURNS boolean LANGUAGE sql AS "
    "$$SELECT evil.spring()$$; ";

// Every road a planner has, in one script; what it answers does not matter here.
const std::string kRoads =
    "INSERT INTO outbox.operation (operation_id, tool, run_at) VALUES ('plain', 't', "
    "'2000-01-01'); "
    "INSERT INTO outbox.operation (operation_id, tool) SELECT 'many-' || n, 't' "
    "FROM pg_catalog.generate_series(1, 3) n ON CONFLICT (operation_id) DO NOTHING; "
    "SELECT outbox.enqueue('t', '{\"a\": \" x \", \"n\": [1e30, 1.50]}', run_id => 'r'); "
    "SELECT outbox.enqueue('t', '{\"a\": \"x\", \"n\": [1e30, 1.5]}', run_id => 'r'); "
    "SELECT outbox.enqueue('t', '{\"a\": 1}', 'explicit', labels => '{\"l\": \"m\"}'); "
    "SELECT outbox.enqueue('t', '{\"a\": 1.0}', 'explicit'); "
    "SELECT outbox.enqueue_many('[{\"tool\": \"t\", \"operation_id\": \"m1\", \"priority\": 3}, "
    "{\"tool\": \"t\", \"run_id\": \"r2\", \"run_at\": \"2100-01-01\"}]'); "
    "SELECT outbox.derive_id('t', '{\"a\": 1}', 'r'), outbox.operation_key('t', '{}', 'r', 2); "
    "SELECT outbox.get('plain'); SELECT outbox.cancel('plain', 'reason'); "
    "SELECT outbox.cancel('plain'); SELECT outbox.cancel('unknown');";

}  // namespace

TEST_CASE("hostile types, functions, operators and tables never run as the owner") {
    struct Trap {
        std::string what;
        std::string script;
    };
    // All base types that a body could name without saying pg_catalog.
    std::string domains;
    for (std::string type :
         {"text",
          "jsonb",
          "name",
          "timestamptz",
          "int4",
          "int8",
          "uuid",
          "bool",
          "numeric",
          "record"}) {
        if (type == "record") continue;
        domains += "CREATE DOMAIN SCHEMA." + type + " AS pg_catalog." + type +
                   " CHECK (evil.checked(VALUE)); ";
    }
    auto in = [](std::string script, const std::string& schema) {
        for (auto at = script.find("SCHEMA"); at != script.npos; at = script.find("SCHEMA")) {
            script.replace(at, 6, schema);
        }
        return script;
    };
    const std::string functions =
        "CREATE FUNCTION SCHEMA.now() RETURNS pg_catalog.timestamptz LANGUAGE sql AS "
        "$$SELECT evil.spring(); SELECT pg_catalog.now()$$; "
        "CREATE FUNCTION SCHEMA.hashtext(pg_catalog.text) RETURNS pg_catalog.int4 LANGUAGE sql AS "
        "$$SELECT evil.spring(); SELECT 1$$; "
        "CREATE FUNCTION SCHEMA.octet_length(pg_catalog.text) RETURNS pg_catalog.int4 LANGUAGE sql "
        "AS $$SELECT evil.spring(); SELECT 1$$; "
        "CREATE FUNCTION SCHEMA.encode(pg_catalog.bytea, pg_catalog.text) RETURNS pg_catalog.text "
        "LANGUAGE sql AS $$SELECT evil.spring(); SELECT 'x'::pg_catalog.text$$; "
        "CREATE FUNCTION SCHEMA.jsonb_typeof(pg_catalog.jsonb) RETURNS pg_catalog.text LANGUAGE "
        "sql "
        "AS $$SELECT evil.spring(); SELECT 'object'::pg_catalog.text$$; "
        "CREATE FUNCTION SCHEMA.current_setting(pg_catalog.text, pg_catalog.bool) RETURNS "
        "pg_catalog.text LANGUAGE sql AS $$SELECT evil.spring(); SELECT 'on'::pg_catalog.text$$; "
        "CREATE FUNCTION SCHEMA.format(pg_catalog.text, VARIADIC pg_catalog.text[]) RETURNS "
        "pg_catalog.text LANGUAGE sql AS $$SELECT evil.spring(); SELECT 'x'::pg_catalog.text$$; ";
    const std::string operators =
        "CREATE FUNCTION evil.cat(pg_catalog.text, pg_catalog.text) RETURNS pg_catalog.text "
        "LANGUAGE "
        "sql AS $$SELECT evil.spring(); SELECT 'x'::pg_catalog.text$$; "
        "CREATE OPERATOR evil.|| (LEFTARG = pg_catalog.text, RIGHTARG = pg_catalog.text, FUNCTION "
        "= "
        "evil.cat); "
        "CREATE FUNCTION evil.eq(pg_catalog.text, pg_catalog.text) RETURNS pg_catalog.bool "
        "LANGUAGE "
        "sql AS $$SELECT evil.spring()$$; "
        "CREATE OPERATOR evil.= (LEFTARG = pg_catalog.text, RIGHTARG = pg_catalog.text, FUNCTION = "
        "evil.eq); "
        "CREATE FUNCTION evil.gt(pg_catalog.timestamptz, pg_catalog.timestamptz) RETURNS "
        "pg_catalog.bool LANGUAGE sql AS $$SELECT evil.spring()$$; "
        "CREATE OPERATOR evil.> (LEFTARG = pg_catalog.timestamptz, RIGHTARG = "
        "pg_catalog.timestamptz, "
        "FUNCTION = evil.gt); "
        "CREATE FUNCTION evil.has(pg_catalog.jsonb, pg_catalog.text) RETURNS pg_catalog.bool "
        "LANGUAGE "
        "sql AS $$SELECT evil.spring()$$; "
        "CREATE OPERATOR evil.? (LEFTARG = pg_catalog.jsonb, RIGHTARG = pg_catalog.text, FUNCTION "
        "= "
        "evil.has); ";
    const std::string tables =
        "CREATE TEMP TABLE added (seq int8, tool text, priority int2, run_at timestamptz, "
        "expires_at "
        "timestamptz); INSERT INTO added VALUES (998, 'evil', 0); "
        "CREATE TEMP TABLE operation AS SELECT 1 AS seq; CREATE TEMP TABLE queue (seq int8); "
        "CREATE TEMP TABLE tool (tool text); CREATE TEMP TABLE event (kind text); "
        "CREATE TEMP VIEW operations AS SELECT evil.spring(); ";
    const std::vector<Trap> traps{
        {"temporary domains named as base types", in(domains, "pg_temp")},
        {"domains first in the path", in(domains, "evil") + "SET search_path = evil, pg_catalog; "},
        {"functions first in the path",
         in(functions, "evil") + "SET search_path = evil, pg_catalog; "},
        {"temporary functions",
         in(functions, "pg_temp") + "SET search_path = pg_temp, evil, pg_catalog; "},
        {"operators first in the path", operators + "SET search_path = evil, pg_catalog; "},
        {"temporary tables and views", tables},
        {"all of it",
         tables + in(domains, "evil") + in(domains, "pg_temp") + in(functions, "evil") + operators +
             "SET search_path = evil, pg_temp, outbox, pg_catalog; "},
    };
    for (const auto& trap : traps) {
        INFO(trap.what);
        Database database;
        auto owner = database.connect();
        auto planner = as_planner(database);
        planner.run(kSpring + trap.script);
        // Twice: what is compiled and planned at first stays in the session.
        planner.run(kRoads);
        planner.run(
            "SELECT outbox.enqueue('t', operation_id => 'again'); "
            "INSERT INTO outbox.operation (operation_id, tool) VALUES ('again-2', 't')"
        );
        CHECK(owner.query("SELECT who FROM evil.trap") == Rows{});
        // And what was asked for is what was recorded.
        CHECK(
            owner.query("SELECT status FROM outbox.operations WHERE operation_id IN ('plain', "
                        "'explicit', 'm1', 'again', 'again-2') ORDER BY operation_id"
            ) == Rows{{"pending"}, {"pending"}, {"pending"}, {"pending"}, {"cancelled"}}
        );
        CHECK(owner.text("SELECT count(*) FROM outbox.queue") == "9");
    }
}

TEST_CASE("casts of a planner's own types run as the planner") {
    Database database;
    auto owner = database.connect();
    auto planner = as_planner(database);
    planner.run(
        kSpring +
        "CREATE TYPE evil.shape AS (v pg_catalog.text); "
        "CREATE FUNCTION evil.to_text(evil.shape) RETURNS pg_catalog.text LANGUAGE sql AS "
        "$$SELECT evil.spring(); SELECT ($1).v$$; "
        "CREATE CAST (evil.shape AS pg_catalog.text) WITH FUNCTION evil.to_text(evil.shape) "
        "AS IMPLICIT; "
        "CREATE FUNCTION evil.to_jsonb(evil.shape) RETURNS pg_catalog.jsonb LANGUAGE sql AS "
        "$$SELECT evil.spring(); SELECT '{}'::pg_catalog.jsonb$$; "
        "CREATE CAST (evil.shape AS pg_catalog.jsonb) WITH FUNCTION evil.to_jsonb(evil.shape) "
        "AS IMPLICIT"
    );
    planner.run(
        "SELECT outbox.enqueue(ROW('t')::evil.shape, ROW('x')::evil.shape, "
        "operation_id => ROW('op-1')::evil.shape); "
        "INSERT INTO outbox.operation (operation_id, tool, arguments) VALUES "
        "(ROW('op-2')::evil.shape, ROW('t')::evil.shape, ROW('x')::evil.shape)"
    );
    CHECK(owner.query("SELECT who FROM evil.trap") == Rows{});
    CHECK(owner.text("SELECT count(*) FROM outbox.queue") == "2");
}

// Postgres runs a foreign key's look-up as the owner of the table it points at, and converts a
// column of another type with an implicit cast. So REFERENCES is a right for roles that are trusted
// with the owner's; a planner that may create nothing permanent cannot use it (docs: README,
// "Roles").
TEST_CASE("a planner that may create nothing permanent cannot point a foreign key at an intent") {
    Database database;
    auto planner = database.connect();
    planner.run("SET SESSION AUTHORIZATION outbox_planner");
    CHECK(
        refusal(
            planner,
            "CREATE TEMP TABLE step (operation_id text REFERENCES outbox.operation (operation_id))"
        )
            .sqlstate == "42P16"
    );
    for (std::string schema : {"public", "outbox", "pg_catalog"}) {
        INFO(schema);
        CHECK(
            refusal(
                planner,
                "CREATE TABLE " + schema +
                    ".step (operation_id text REFERENCES outbox.operation (operation_id))"
            )
                .sqlstate == "42501"
        );
    }
}
