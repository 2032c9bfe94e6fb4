#include "tests/support/catch.hpp"
#include "tests/support/database.hpp"

using tests::Database;
using tests::Session;

// The planner's calls must find their rows through an index, whatever the size of the tables and
// whoever made the plan: anew for each call, once for all, or once while the tables were empty.
namespace {

struct Scans {
    int scans;
    int rows;
};

// Sequential scans of this transaction over the tables that grow.
Scans sequential(Session& session) {
    auto row = session.query(
        "SELECT coalesce(sum(seq_scan), 0), coalesce(sum(seq_tup_read), 0) "
        "FROM pg_stat_xact_user_tables WHERE schemaname = 'outbox' "
        "AND relname IN ('operation', 'queue', 'outcome', 'event')"
    )[0];
    return {std::stoi(*row[0]), std::stoi(*row[1])};
}

const std::vector<std::string> kCalls{
    "INSERT INTO outbox.operation (operation_id, tool) VALUES ('new-p', 't') ON CONFLICT DO "
    "NOTHING",
    "INSERT INTO outbox.operation (operation_id, tool) VALUES ('op-7', 't') ON CONFLICT DO NOTHING",
    "SELECT outbox.enqueue('t', operation_id => 'new-e')",
    "SELECT outbox.enqueue('t', '{\"a\": 1}', run_id => 'r')",
    "SELECT outbox.enqueue('t', operation_id => 'op-77')",
    "SELECT outbox.enqueue('t', operation_id => 'op-78', retry_failed => true)",
    "SELECT * FROM outbox.enqueue_many('[{\"tool\": \"t\", \"operation_id\": \"op-79\"}, "
    "{\"tool\": \"t\", \"operation_id\": \"new-m\"}]')",
    "SELECT * FROM outbox.get('op-80')",
    "SELECT outbox.cancel('op-81')",
    "SELECT outbox.cancel('op-82')",
};

void check_calls(Session& session, const std::string& what, bool empty) {
    for (const auto& call : kCalls) {
        INFO(what << ": " << call);
        session.run("BEGIN");
        auto before = sequential(session);
        session.query(call);
        auto after = sequential(session);
        session.run("ROLLBACK");
        // A scan of a table without rows is the cheapest there is.
        CHECK(after.rows - before.rows <= (empty ? 20 : 0));
        if (!empty) {
            CHECK(after.scans == before.scans);
        }
    }
}

void fill(Session& session, int from, int to) {
    session.run(
        "INSERT INTO outbox.operation (operation_id, tool) SELECT 'op-' || n, 't' "
        "FROM generate_series(" +
        std::to_string(from) + ", " + std::to_string(to) +
        ") n; "
        "WITH gone AS (DELETE FROM outbox.queue WHERE seq % 2 = 1 RETURNING seq) "
        "INSERT INTO outbox.outcome (seq, outcome, attempts, lease_epoch, error) "
        "SELECT seq, 'failed', 1, 2, '{}' FROM gone"
    );
}

}  // namespace

TEST_CASE("no call of a planner scans a table, at 0, 1,000 and 100,000 rows") {
    Database database;
    auto admin = database.connect();
    admin.run(
        "INSERT INTO outbox.tool (tool, effect, revision) VALUES ('t', 'write', 'r'); "
        "ALTER TABLE outbox.operation SET (autovacuum_enabled = off); "
        "ALTER TABLE outbox.queue SET (autovacuum_enabled = off); ANALYZE"
    );
    auto old = database.connect();  // its plans are those of empty tables
    old.run("SET plan_cache_mode = force_generic_plan");
    int filled = 0;
    for (int rows : {0, 1'000, 100'000}) {
        if (rows > 0) {
            fill(admin, filled + 1, rows);
            filled = rows;
        }
        auto size = std::to_string(rows) + " rows, ";
        check_calls(old, size + "plans of an empty table", rows == 0);
        for (bool analysed : {false, true}) {
            if (analysed) {
                admin.run("ANALYZE");
            }
            for (std::string mode : {"force_generic_plan", "force_custom_plan"}) {
                auto session = database.connect();
                session.run("SET plan_cache_mode = " + mode);
                check_calls(
                    session, size + mode + (analysed ? ", analysed" : ", not analysed"), rows == 0
                );
            }
        }
    }
}

// A session's plans were made, and kept, while the tables were small and analysed: one row alone is
// the worst, because then any plan seems as good as another.
TEST_CASE("no call of a planner touches many rows with plans of small, analysed tables") {
    for (int small : {1, 3, 20}) {
        Database database;
        auto admin = database.connect();
        admin.run(
            "INSERT INTO outbox.tool (tool, effect, revision) VALUES ('t', 'write', 'r'); "
            "ALTER TABLE outbox.operation SET (autovacuum_enabled = off); "
            "ALTER TABLE outbox.queue SET (autovacuum_enabled = off); "
            "ALTER TABLE outbox.outcome SET (autovacuum_enabled = off)"
        );
        fill(admin, 1, small);
        admin.run("ANALYZE");
        std::vector<Session> sessions;
        for (std::string mode : {"auto", "force_generic_plan"}) {
            auto session = database.connect();
            session.run("SET plan_cache_mode = " + mode);
            for (std::string call : kCalls) {
                // Of what is there, or the plans for known ids were never made.
                for (auto at = call.find("'op-"); at != call.npos; at = call.find("'op-", at + 1)) {
                    call.replace(at, call.find('\'', at + 1) - at, "'op-1");
                }
                for (int i = 0; i < 8; ++i) {  // after five executions a generic plan may stay
                    session.run("BEGIN");
                    session.query(call);
                    session.run("ROLLBACK");
                }
            }
            sessions.push_back(std::move(session));
        }
        fill(admin, small + 1, 20'000);
        const std::string touched =
            "SELECT coalesce(sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)), 0) "
            "FROM pg_stat_xact_user_tables WHERE schemaname = 'outbox' AND relname <> 'tool'";
        for (auto& session : sessions) {
            for (const auto& call : kCalls) {
                INFO(small << " rows: " << call);
                session.run("BEGIN");
                const auto before = std::stoi(session.text(touched));
                session.query(call);
                const auto after = std::stoi(session.text(touched));
                session.run("ROLLBACK");
                CHECK(after - before < 100);
            }
        }
    }
}

TEST_CASE("the short road of enqueue and the long one answer alike") {
    // While the catalogue is empty every call takes the long road.
    Database bare;
    Database known;
    auto longer = bare.connect();
    auto shorter = known.connect();
    shorter.run(
        "INSERT INTO outbox.tool (tool, effect, revision, dedup_fields) VALUES "
        "('t', 'write', 'r', '{}'), ('d', 'write', 'r', '{a}')"
    );
    const std::vector<std::string> calls{
        "'t', '{\"a\": 1}', operation_id => 'x'",
        "'t', '{\"a\": 1}', operation_id => 'x'",
        "'t', '{\"a\": \" b \", \"c\": 200.0, \"d\": [1e2, null, true]}', run_id => 'r'",
        "'t', '{\"d\": [100, null, true], \"a\": \"b\", \"c\": 200}', run_id => 'r'",
        "'t', '{}', run_id => 'r', occurrence => 2",
        "'t', '{}', operation_id => 'y', run_id => 'r', priority => 7::smallint",
        "'t', '{}', operation_id => 'later', run_at => '2100-01-01'",
        "'t', NULL, operation_id => 'null', priority => NULL, occurrence => NULL",
        "'t', jsonb_build_object('a', repeat('x', 5000)), operation_id => 'large'",
        "'t', '{\"a\": 0.0000001, \"b\": 1e21, \"c\": 123456789012345678901.5}', run_id => 'n'",
    };
    for (const auto& call : calls) {
        INFO(call);
        auto ask = [&](Session& session) {
            return session.query(
                "SELECT operation_id, status, replayed, result, error, message, compensated_by, "
                "result_expired FROM outbox.enqueue(" +
                call + ")"
            );
        };
        CHECK(ask(shorter) == ask(longer));
    }
    const std::string rows =
        "SELECT to_jsonb(o) - 'created_at' - 'seq', to_jsonb(q) - 'seq' FROM outbox.operation o "
        "JOIN outbox.queue q USING (seq) ORDER BY operation_id";
    CHECK(shorter.query(rows) == longer.query(rows));
    // The id over dedup.fields is that of derive_id.
    CHECK(
        shorter.text("SELECT operation_id FROM outbox.enqueue('d', '{\"a\": 1, \"b\": 2}', "
                     "run_id => 'r')"
        ) == shorter.text("SELECT outbox.operation_key('d', '{\"a\": 1}', 'r')")
    );
}
