// The plain insert in the shapes that ORMs and loaders give it, as the planner role; and what the
// function road adds.
#include <set>

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

Session as_planner(const Database& database) {
    auto session = database.connect();
    session.run("SET SESSION AUTHORIZATION outbox_planner");
    return session;
}

}  // namespace

TEST_CASE("inserts of any shape file their work, as the planner role") {
    Database database;
    auto owner = database.connect();
    auto planner = as_planner(database);
    planner.run(
        "CREATE TEMP TABLE todo (id text, title text); INSERT INTO todo VALUES ('s1', 'x'), "
        "('s2', 'y'), ('known', 'z')"
    );
    planner.run("INSERT INTO outbox.operation (operation_id, tool) VALUES ('known', 't')");
    struct Shape {
        std::string sql;
        Rows answer;
    };
    for (const auto& shape : std::vector<Shape>{
             {"INSERT INTO outbox.operation (operation_id, tool) VALUES ('a1', 't') "
              "ON CONFLICT (operation_id) DO NOTHING RETURNING operation_id",
              {{"a1"}}},
             {"INSERT INTO outbox.operation (operation_id, tool) VALUES ('known', 't') "
              "ON CONFLICT (operation_id) DO NOTHING RETURNING operation_id",
              {}},
             // One is known, one comes twice: the others are new.
             {"INSERT INTO outbox.operation (operation_id, tool) VALUES ('b1', 't'), ('known', "
              "'t'), "
              "('b2', 'u'), ('b1', 't') ON CONFLICT (operation_id) DO NOTHING RETURNING "
              "operation_id",
              {{"b1"}, {"b2"}}},
             {"INSERT INTO outbox.operation (operation_id, tool) VALUES ('c1', 't') "
              "ON CONFLICT DO NOTHING",
              {}},
             {"INSERT INTO outbox.operation (operation_id, tool, arguments) SELECT id, 't', "
              "jsonb_build_object('title', title) FROM todo ON CONFLICT (operation_id) DO NOTHING "
              "RETURNING operation_id",
              {{"s1"}, {"s2"}}},
             {"WITH step AS (INSERT INTO todo VALUES ('w1', 'w') RETURNING id) "
              "INSERT INTO outbox.operation (operation_id, tool) SELECT id, 't' FROM step "
              "RETURNING operation_id AS id",
              {{"w1"}}},
             {"INSERT INTO outbox.operation (operation_id, tool, arguments, run_id, priority, "
              "run_at, "
              "expires_at, max_attempts, traceparent, labels) VALUES ('d1', 't', DEFAULT, DEFAULT, "
              "DEFAULT, DEFAULT, DEFAULT, DEFAULT, DEFAULT, DEFAULT) RETURNING operation_id",
              {{"d1"}}},
             {"MERGE INTO outbox.operation o USING (SELECT 'm1'::text AS id) s "
              "ON o.operation_id = s.id WHEN NOT MATCHED THEN INSERT (operation_id, tool) "
              "VALUES (s.id, 't')",
              {}},
         }) {
        INFO(shape.sql);
        CHECK(planner.query(shape.sql) == shape.answer);
    }
    planner.copy_in(
        "COPY outbox.operation (operation_id, tool, arguments) FROM STDIN",
        "y1\tt\t{\"a\": 1}\ny2\tu\t{}\n"
    );
    CHECK(
        owner.text("SELECT string_agg(operation_id, ' ' ORDER BY operation_id) FROM "
                   "outbox.operation JOIN outbox.queue USING (seq, tool) WHERE status = 'pending'"
        ) == "a1 b1 b2 c1 d1 known m1 s1 s2 w1 y1 y2"
    );
    CHECK(owner.text("SELECT count(*) FROM outbox.queue") == "12");
    // A known id among copied ones undoes the copy: COPY has no ON CONFLICT.
    CHECK_THROWS_AS(
        planner.copy_in(
            "COPY outbox.operation (operation_id, tool) FROM STDIN", "y3\tt\nknown\tt\n"
        ),
        tests::SqlError
    );
    CHECK(owner.text("SELECT count(*) FROM outbox.queue") == "12");
}

TEST_CASE("every CHECK of the intent refuses by every road") {
    struct Bad {
        std::string column;
        std::string value;  // SQL
    };
    Database database;
    auto owner = database.connect();
    auto planner = as_planner(database);
    std::set<std::string> seen;
    for (const auto& bad : std::vector<Bad>{
             {"operation_id", "repeat('x', 201)"},
             {"operation_id", "''::text"},
             {"operation_id", "E'a\\u007fb'"},
             {"operation_id", "'a:compensate:b'"},
             {"operation_id", "':compensate:'"},
             {"tool", "''"},
             {"tool", "repeat('é', 51)"},
             {"tool", "'t:close'"},
             {"arguments", "'[1]'::jsonb"},
             {"arguments", "'\"{}\"'::jsonb"},
             {"run_id", "repeat('x', 201)"},
             {"run_id", "E'\\u0001'"},
             {"priority", "101::smallint"},
             {"run_at", "'-infinity'::timestamptz"},
             {"expires_at", "'infinity'::timestamptz"},
             {"max_attempts", "0"},
             {"traceparent", "'00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x'"},
             {"traceparent", "'00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01'"},
             {"labels", "'{\"a\": 1}'::jsonb"},
             {"labels", "'{\"a\": null}'::jsonb"},
             {"labels", "'{\"a\": [\"x\"]}'::jsonb"},
             {"labels", "'{\"a\": []}'::jsonb"},
             {"labels", "'{\"a\": {\"b\": \"c\"}}'::jsonb"},
             {"labels", "'\"x\"'::jsonb"},
         }) {
        INFO(bad.column << " " << bad.value);
        const bool id = bad.column == "operation_id";
        const bool tool = bad.column == "tool";
        const std::string columns =
            bad.column + (id ? "" : ", operation_id") + (tool ? "" : ", tool");
        const std::string values = bad.value + (id ? "" : ", 'bad'") + (tool ? "" : ", 't'");
        for (const auto& insert : {
                 "INSERT INTO outbox.operation (" + columns + ") VALUES (" + values + ")",
                 "INSERT INTO outbox.operation (" + columns + ") SELECT " + values,
                 "INSERT INTO outbox.operation (" + columns + ") VALUES (" + values +
                     ") ON CONFLICT (operation_id) DO NOTHING",
             }) {
            const auto error = refusal(planner, insert);
            CHECK(error.sqlstate == "23514");
            const std::string what = error.what();
            const auto from = what.find("constraint \"") + 12;
            seen.insert(what.substr(from, what.find('"', from) - from));
        }
        const auto named = bad.column + " => " + bad.value + (id ? "" : ", operation_id => 'bad'") +
                           (tool ? "" : ", tool => 't'");
        const auto members = "'" + bad.column + "', " + bad.value +
                             (id ? "" : ", 'operation_id', 'bad'") + (tool ? "" : ", 'tool', 't'");
        for (const auto& call : {
                 "SELECT outbox.enqueue(" + named + ")",
                 "SELECT outbox.enqueue_many(jsonb_build_array(jsonb_build_object(" + members +
                     ")))",
             }) {
            INFO(call);
            const auto error = refusal(planner, call);
            CHECK(error.sqlstate == "OB400");
            CHECK_THAT(error.detail, ContainsSubstring(bad.column));
            CHECK_FALSE(error.hint.empty());
        }
    }
    // The arguments' size is the one CHECK that is OB413 there.
    const std::string large = "jsonb_build_object('a', repeat('x', 1048570))";
    CHECK(refusal(planner, "SELECT outbox.enqueue('t', " + large + ", 'bad')").sqlstate == "OB413");
    const auto many = refusal(
        planner,
        "SELECT outbox.enqueue_many(jsonb_build_array('{\"tool\": \"t\", \"operation_id\": "
        "\"ok\"}'::jsonb, jsonb_build_object('tool', 't', 'operation_id', 'bad', 'arguments', " +
            large + ")))"
    );
    CHECK(many.sqlstate == "OB413");
    CHECK_THAT(many.detail, ContainsSubstring("requests[1]"));
    CHECK(owner.text("SELECT count(*) FROM outbox.operation") == "0");
    // A new CHECK needs a line above.
    std::set<std::string> existing;
    for (const auto& row :
         owner.query("SELECT c.conname FROM pg_constraint c WHERE c.contype = 'c' "
                     "AND (c.conrelid = 'outbox.operation'::regclass "
                     "     OR c.contypid = 'outbox.valid_operation'::regtype) "
                     "AND c.conname <> 'operation_valid'")) {
        existing.insert(*row[0]);
    }
    CHECK(seen == existing);
}

// The filing trigger looks shortly at what is usual, and asks the domain only about the rest.
TEST_CASE("the trigger's short look refuses what the domain refuses, and nothing else") {
    Database database;
    auto session = database.connect();
    session.run(R"sql(
        CREATE FUNCTION pg_temp.refused_by_domain(id text, tool text, arguments jsonb, run text)
        RETURNS text LANGUAGE plpgsql AS $$ DECLARE why text; BEGIN
            PERFORM ROW(id, tool, arguments, run, 0, NULL, NULL, NULL, NULL, NULL, NULL)
                ::outbox.valid_operation;
            RETURN 'recorded';
        EXCEPTION WHEN check_violation THEN
            GET STACKED DIAGNOSTICS why = CONSTRAINT_NAME; RETURN why;
        END $$;
        CREATE FUNCTION pg_temp.refused_by_insert(id text, tool text, arguments jsonb, run text)
        RETURNS text LANGUAGE plpgsql AS $$ DECLARE why text; BEGIN
            INSERT INTO outbox.operation (operation_id, tool, arguments, run_id)
            VALUES (id, tool, arguments, run);
            RAISE SQLSTATE 'XX999';
        EXCEPTION WHEN SQLSTATE 'XX999' THEN RETURN 'recorded';
        WHEN check_violation THEN
            GET STACKED DIAGNOSTICS why = CONSTRAINT_NAME; RETURN why;
        END $$;)sql");
    const auto rows = session.query(R"sql(
        SELECT DISTINCT id, tool, arguments::text, run, pg_temp.refused_by_domain(id, tool, arguments, run),
               pg_temp.refused_by_insert(id, tool, arguments, run)
          FROM unnest(ARRAY['', 'a', ' ', ':', 'op:1', 'a:c', ':compensate:', '::compensate:', 'a:compensate:b',
                            'a:compen', E'\n', E'a\u007f', E'a\u0085b', repeat('x', 200), repeat('x', 201),
                            repeat('é', 100), repeat('é', 101), repeat('x', 100)]) id,
               unnest(ARRAY[NULL, '', 'r', 'sate:b', ':compensate:', E'\t', repeat('r', 100), repeat('r', 200),
                            repeat('r', 201), repeat('é', 101)]) run,
               unnest(ARRAY['', 't', ' ', ':', 'a:b', 't ', repeat('t', 100), repeat('t', 101), repeat('ü', 51)]) tool,
               unnest(ARRAY['{}', '[]', '{"a": [1]}', '"{}"']::jsonb[]) arguments)sql");
    REQUIRE(rows.size() == 18 * 10 * 9 * 4);
    int recorded = 0;
    for (const auto& row : rows) {
        recorded += *row[5] == "recorded" ? 1 : 0;
        if (row[4] == row[5]) continue;
        INFO(*row[0] << " | " << *row[1] << " | " << *row[2] << " | " << row[3].value_or("null"));
        CHECK(*row[5] == *row[4]);
    }
    CHECK(recorded > 500);
    CHECK(session.text("SELECT count(*) FROM outbox.queue") == "0");
}

TEST_CASE("a run that is empty makes no key; beside an id of its own it says nothing") {
    Database database;
    auto planner = as_planner(database);
    for (const std::string call :
         {"outbox.enqueue('t', run_id => '')",
          "outbox.enqueue('t', '{\"a\": 1}', run_id => '', occurrence => 2)",
          "outbox.enqueue_many('[{\"tool\": \"t\", \"run_id\": \"\"}]')"}) {
        INFO(call);
        const auto error = refusal(planner, "SELECT " + call);
        CHECK(error.sqlstate == "OB400");
        CHECK_THAT(error.detail, ContainsSubstring("run_id is empty"));
        CHECK_THAT(error.hint, ContainsSubstring("operation_id"));
    }
    CHECK(
        planner.text("SELECT status FROM outbox.enqueue('t', operation_id => 'x', run_id => '')") ==
        "pending"
    );
    CHECK_NOTHROW(planner.run(
        "INSERT INTO outbox.operation (operation_id, tool, run_id) VALUES ('y', 't', '')"
    ));
}

TEST_CASE("a tool's name with a colon is a compensation's, whatever the catalogue holds") {
    Database database;
    auto owner = database.connect();
    auto planner = as_planner(database);
    auto check = [&](const std::string& tool) {
        INFO(tool);
        const auto plain = refusal(
            planner,
            "INSERT INTO outbox.operation (operation_id, tool) VALUES ('forged', '" + tool + "')"
        );
        CHECK(plain.sqlstate == "23514");
        CHECK_THAT(plain.what(), ContainsSubstring("operation_tool_reserved"));
        const auto error =
            refusal(planner, "SELECT outbox.enqueue('" + tool + "', operation_id => 'forged')");
        CHECK(error.sqlstate == "OB400");
        CHECK_THAT(error.hint, ContainsSubstring("outbox.compensate"));
    };
    check("t:close");
    owner.run(
        "INSERT INTO outbox.tool (tool, effect, revision, compensations) VALUES "
        "('t', 'write', 'r', '{close}'), ('t:close', 'write', 'r', '{}'), ('gone:x', 'write', 'r', "
        "'{}')"
    );
    check("t:close");
    check("gone:x");
    CHECK(owner.text("SELECT count(*) FROM outbox.operation") == "0");
}

TEST_CASE("a compensation's id cannot be made by hand") {
    Database database;
    auto owner = database.connect();
    owner.run("SELECT outbox.enqueue('t', operation_id => 'op-1')");
    tests::bring_to(owner, "op-1", "succeeded");
    auto planner = as_planner(database);
    const std::string id = "op-1:compensate:undo";
    CHECK(
        refusal(planner, "SELECT outbox.enqueue('t', operation_id => '" + id + "')").sqlstate ==
        "OB400"
    );
    CHECK(
        refusal(
            planner,
            "SELECT outbox.enqueue_many('[{\"tool\": \"t\", \"operation_id\": \"" + id + "\"}]')"
        )
            .sqlstate == "OB400"
    );
    for (const auto& insert : {
             "INSERT INTO outbox.operation (operation_id, tool) VALUES ('" + id + "', 't')",
             "INSERT INTO outbox.operation (operation_id, tool) SELECT '" + id + "', 't'",
             "INSERT INTO outbox.operation (operation_id, tool) VALUES ('" + id +
                 "', 't') ON CONFLICT DO NOTHING",
         }) {
        CHECK(refusal(planner, insert).sqlstate == "23514");
    }
    CHECK(
        refusal(
            planner,
            "INSERT INTO outbox.operation (operation_id, tool, compensates) VALUES ('" + id +
                "', 't', 'op-1')"
        )
            .sqlstate == "42501"
    );
    try {
        planner.copy_in("COPY outbox.operation (operation_id, tool) FROM STDIN", id + "\tt\n");
        FAIL("copied");
    } catch (const tests::SqlError& error) {
        CHECK(error.sqlstate == "23514");
    }
    CHECK(owner.text("SELECT count(*) FROM outbox.operation") == "1");
}

TEST_CASE("a member of enqueue_many has the type of its parameter") {
    Database database;
    auto session = database.connect();
    for (std::string member : {
             R"("tool": {"name": "t"})",
             R"("tool": 5)",
             R"("operation_id": ["x"])",
             R"("operation_id": 17)",
             R"("run_id": true)",
             R"("traceparent": {})",
             R"("priority": "high")",
             R"("priority": 1.5)",
             R"("occurrence": 99999999999)",
             R"("run_at": "soon")",
             R"("max_attempts": [])",
             R"("retry_failed": "perhaps")",
             R"("arguments": "{}")",
         }) {
        INFO(member);
        auto error = refusal(
            session,
            "SELECT * FROM outbox.enqueue_many($1::jsonb)",
            {R"([{"tool": "t", "operation_id": "new"}, {"operation_id": "x", )" + member +
             (member.find("\"tool\"") == 0 ? "" : R"(, "tool": "t")") + "}]"}
        );
        CHECK(error.sqlstate == "OB400");
        CHECK_THAT(error.detail, ContainsSubstring("requests[1]: "));
        CHECK_FALSE(error.hint.empty());
    }
    CHECK(session.text("SELECT count(*) FROM outbox.operation") == "0");
    // Null is left out, as in enqueue.
    CHECK(
        session.text("SELECT operation_id FROM outbox.enqueue_many('[{\"tool\": \"t\", "
                     "\"operation_id\": \"n\", \"run_id\": null, \"priority\": null, \"labels\": "
                     "null, \"occurrence\": null, \"retry_failed\": null}]')") == "n"
    );
}

TEST_CASE("after pruning a number beyond the key's limits is compared by value as well") {
    Database database;
    auto session = database.connect();
    const auto again = [](const std::string& arguments) {
        return "SELECT replayed FROM outbox.enqueue('t', '" + arguments + "', 'op-1')";
    };
    session.run(again(R"({"n": 1e401, "m": 2.50, "s": "x"})"));
    auto check = [&] {
        CHECK(session.text(again(R"({"m": 2.5, "s": "x", "n": 10e400})")) == "t");
        for (std::string other :
             {R"({"n": 2e401, "m": 2.5, "s": "x"})",
              R"({"n": 1e401, "m": 2.6, "s": "x"})",
              R"({"n": 1e401, "m": 2.5, "s": "y"})",
              R"({"n": 1e401, "m": 2.5})"}) {
            INFO(other);
            CHECK(refusal(session, again(other)).sqlstate == "OB422");
        }
    };
    check();
    session.run(
        "UPDATE outbox.operation SET arguments_digest = outbox.arguments_digest(arguments), "
        "arguments = '{}', pruned_at = now()"
    );
    check();
}

TEST_CASE("labels that were taken before are mended by the migration that refuses them") {
    auto database = Database::empty();
    auto session = database.connect();
    for (const auto& migration : outbox::sql::migrations()) {
        if (migration.name.find("careful_requests") != migration.name.npos) {
            session.run(
                "INSERT INTO outbox.operation (operation_id, tool, labels) VALUES "
                "('good', 't', '{\"a\": \"b\"}'), ('none', 't', NULL), "
                "('bad', 't', '{\"a\": [\"x\", \"y\"], \"b\": [], \"c\": \"z\"}')"
            );
        }
        session.run("BEGIN; " + migration.text + "; COMMIT");
    }
    CHECK(
        session.query("SELECT operation_id, labels FROM outbox.operation ORDER BY seq") ==
        Rows{
            {"good", R"({"a": "b"})"},
            {"none", {}},
            {"bad", R"({"a": "[\"x\", \"y\"]", "b": "[]", "c": "z"})"}
        }
    );
    CHECK(
        session.text("SELECT bool_and(convalidated) FROM pg_constraint "
                     "WHERE conrelid = 'outbox.operation'::regclass") == "t"
    );
}
