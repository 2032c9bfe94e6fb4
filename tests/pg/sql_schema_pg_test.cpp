#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>

#include "sql/queries.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/database.hpp"
#include "tests/support/refusal.hpp"

using tests::Database;
using tests::refusal;

namespace {

std::string environment(const char* name) {
    const char* value = std::getenv(name);
    return value == nullptr ? "" : value;
}

std::string output_of(const std::string& command) {
    std::unique_ptr<FILE, int (*)(FILE*)> pipe(popen(command.c_str(), "r"), pclose);
    std::string text;
    std::array<char, 4096> buffer{};
    while (auto length = std::fread(buffer.data(), 1, buffer.size(), pipe.get())) {
        text.append(buffer.data(), length);
    }
    return text;
}

// What differs between versions of pg_dump without any difference in the schema: comments,
// settings, the key of \restrict, blank lines. Tabs become spaces, as everywhere here.
std::string normalised(const std::string& dump) {
    std::istringstream lines(dump);
    std::string text;
    for (std::string line; std::getline(lines, line);) {
        auto begins = [&](const char* what) { return line.rfind(what, 0) == 0; };
        if (line.empty() || begins("--") || begins("SET ") ||
            begins("SELECT pg_catalog.set_config") || begins("\\restrict") ||
            begins("\\unrestrict")) {
            continue;
        }
        for (auto at = line.find('\t'); at != std::string::npos; at = line.find('\t')) {
            line.replace(at, 1, "    ");
        }
        text += line + "\n";
    }
    return text;
}

}  // namespace

// Refresh after a deliberate change, and read the difference:
//   OUTBOX_UPDATE_GOLDEN=1 tests/support/pg_cluster.sh build/dev/tests/pg/pg_tests "the schema*"
TEST_CASE("the schema is the one that was reviewed") {
    Database database;
    auto dump = normalised(output_of(
        environment("OUTBOX_TEST_PGBIN") +
        "/pg_dump --schema-only "
        "--no-owner --schema outbox --dbname '" +
        database.dsn() + "'"
    ));
    REQUIRE(dump.size() > 10'000);
    const std::string path = OUTBOX_SOURCE_DIR "/tests/golden/schema.sql";
    if (!environment("OUTBOX_UPDATE_GOLDEN").empty()) {
        std::ofstream(path) << dump;
    }
    std::ifstream file(path);
    std::stringstream golden;
    golden << file.rdbuf();
    std::istringstream have(dump);
    std::string line;
    std::string expected;
    for (int number = 1; std::getline(golden, expected); ++number) {
        REQUIRE(std::getline(have, line));
        INFO("tests/golden/schema.sql:" << number);
        REQUIRE(line == expected);
    }
    CHECK_FALSE(std::getline(have, line));
}

TEST_CASE("every embedded query prepares against the migrated schema") {
    Database database;
    auto session = database.connect();
    REQUIRE(outbox::sql::queries().size() > 10);
    for (const auto& query : outbox::sql::queries()) {
        INFO(query.name);
        CHECK_NOTHROW(session.run("PREPARE q_" + std::string(query.name) + " AS " + *query.text));
    }
    CHECK(
        session.text("SELECT count(*) FROM pg_prepared_statements") ==
        std::to_string(outbox::sql::queries().size())
    );
}

TEST_CASE("migrations are numbered, named and hashed") {
    int expected = 0;
    for (const auto& migration : outbox::sql::migrations()) {
        CHECK(migration.number == ++expected);
        CHECK(std::stoi(migration.name) == expected);
        CHECK(migration.checksum.size() == 64);
        CHECK_FALSE(migration.breaking);
    }
    CHECK(outbox::sql::migrations()[0].text.find("CREATE SCHEMA") != std::string::npos);
}

TEST_CASE("an encoding other than UTF8 is refused") {
    Database any;
    auto admin = any.connect();
    const auto name = any.name() + "_latin1";
    admin.run("CREATE DATABASE " + name + " TEMPLATE template0 ENCODING 'LATIN1' LOCALE 'C'");
    {
        tests::Session session(any.dsn() + " dbname=" + name + " client_encoding=UTF8");
        CHECK_THROWS_WITH(tests::migrate(session), ContainsSubstring("encoding UTF8"));
    }
    admin.run("DROP DATABASE " + name + " WITH (FORCE)");
}

TEST_CASE("a table defends itself against impossible states") {
    Database database;
    auto session = database.connect();
    session.run("INSERT INTO outbox.operation (operation_id, tool) VALUES ('op-1', 't')");
    for (std::string change :
         {"status = 'done'",
          "status = 'scheduled'",
          "status = 'attempting'",
          "status = 'unknown'",
          "attention = 'whatever'"}) {
        INFO(change);
        CHECK(refusal(session, "UPDATE outbox.queue SET " + change).sqlstate == "23514");
    }
    CHECK(
        refusal(
            session,
            "INSERT INTO outbox.outcome (seq, outcome, attempts, lease_epoch) "
            "VALUES (1, 'failed', 1, 1)"
        )
            .sqlstate == "23514"
    );
    CHECK(
        refusal(session, "INSERT INTO outbox.event (operation_id, kind) VALUES ('op-1', 'done')")
            .sqlstate == "23514"
    );
}

// The expression beside the trigger decides which rows the domain is asked about.
TEST_CASE("an update of the queue refuses what the domain refuses, and nothing else") {
    Database database;
    auto session = database.connect();
    session.run(
        "INSERT INTO outbox.tool (tool, effect, revision) VALUES ('t', 'write', 'r'); "
        "SELECT outbox.enqueue('t', operation_id => 'a')"
    );
    // Every status, and every set of the columns that a state may need.
    session.run(R"(
        CREATE FUNCTION public.probe(q outbox.work_state, by_domain boolean) RETURNS text
            LANGUAGE plpgsql AS $$
        DECLARE name text;
        BEGIN
            IF by_domain THEN
                PERFORM q::outbox.valid_work;
            ELSE
                UPDATE outbox.queue SET status = q.status, due_at = q.due_at,
                       leased_by = q.leased_by, deadline_at = q.deadline_at,
                       attempt_epoch = q.attempt_epoch, started_at = q.started_at,
                       unknown_since = q.unknown_since, attention = q.attention;
            END IF;
            RETURN 'taken';
        EXCEPTION WHEN check_violation THEN
            GET STACKED DIAGNOSTICS name = CONSTRAINT_NAME;
            RETURN name;
        END $$)");
    const auto differ = session.query(R"(
        WITH every AS (
            SELECT ROW(s.status, CASE WHEN b & 1 > 0 THEN now() END,
                       CASE WHEN b & 2 > 0 THEN gen_random_uuid() END,
                       CASE WHEN b & 4 > 0 THEN now() END, CASE WHEN b & 8 > 0 THEN 1 END,
                       CASE WHEN b & 16 > 0 THEN now() END, CASE WHEN b & 32 > 0 THEN now() END,
                       a.attention)::outbox.work_state AS q
              FROM unnest('{pending,scheduled,attempting,unknown,done}'::text[]) s (status)
             CROSS JOIN generate_series(0, 63) b
             CROSS JOIN unnest('{NULL,conflict,bored}'::text[]) a (attention))
        SELECT e.q::text, public.probe(e.q, true), public.probe(e.q, false)
          FROM every e
         WHERE public.probe(e.q, true) <> public.probe(e.q, false))");
    for (const auto& row : differ) {
        INFO(*row[0] << ": domain " << *row[1] << ", update " << *row[2]);
        CHECK(false);
    }
    CHECK(
        session.text("SELECT count(*) FROM pg_trigger WHERE tgrelid = 'outbox.queue'::regclass "
                     "AND tgname = 'check_work' AND tgenabled = 'O'") == "1"
    );
    CHECK(refusal(session, "UPDATE outbox.queue SET status = 'done'").sqlstate == "23514");
}

TEST_CASE("the planner's calls touch few rows, even with plans made while the tables were empty") {
    Database database;
    auto session = database.connect();
    const std::vector<std::string> calls{
        "SELECT outbox.enqueue('t', operation_id => 'op-77')",
        "SELECT outbox.enqueue('t', operation_id => 'op-19977', retry_failed => true)",
        "SELECT * FROM outbox.get('op-78')",
        "SELECT outbox.cancel('op-79')",
        "SELECT outbox.cancel('op-19979')",
        "SELECT outbox.retry('op-19980', 'r')",
        "SELECT outbox.resolve('op-81', 'applied', 'r', 'a', 1)",
        "SELECT outbox.acknowledge('op-19982', 'r', 'a')",
    };
    session.run("ANALYZE");
    for (const auto& call : calls) {
        for (int i = 0; i < 8; ++i) {  // after five executions a session may keep a generic plan
            session.query(call);
        }
    }
    session.run(
        "INSERT INTO outbox.operation (operation_id, tool) "
        "SELECT 'op-' || n, 't' FROM generate_series(1, 20000) n ON CONFLICT DO NOTHING; "
        "WITH gone AS (DELETE FROM outbox.queue WHERE seq % 2 = 1 RETURNING seq) "
        "INSERT INTO outbox.outcome (seq, outcome, attempts, lease_epoch, error) "
        "SELECT seq, 'failed', 1, 2, '{}' FROM gone"
    );
    const std::string touched =
        "SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)) "
        "FROM pg_stat_xact_user_tables WHERE schemaname = 'outbox' AND relname <> 'tool'";
    for (const auto& call : calls) {
        INFO(call);
        session.run("BEGIN");
        auto before = std::stoi(session.text(touched));
        session.query(call);
        auto after = std::stoi(session.text(touched));
        session.run("ROLLBACK");
        CHECK(after - before < 40);
    }
}
