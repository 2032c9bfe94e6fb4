#include <string>
#include <vector>

#include "sql/queries.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/store_fixture.hpp"

using tests::Session;
using tests::StoreFixture;

// The planner must not walk the queue, whatever the statistics say: never analysed, or analysed
// while everything was still pending. Below some forty pages a sequential scan is the cheapest way
// to find ten rows by ctid, and right: statements are planned anew with the real size each time,
// so a plan made for an empty table is never used on a full one. What is held there is the time.
namespace {

constexpr const char* kCtid = "Tid Scan on queue q";

// The plan with the parameters known, as a statement sent with its parameters is planned.
std::string plan(Session& session, const std::string& text, const std::string& arguments) {
    session.run("PREPARE hot AS " + text);
    std::string lines;
    for (const auto& row : session.query("EXPLAIN EXECUTE hot(" + arguments + ")")) {
        lines += *row[0] + "\n";
    }
    session.run("DEALLOCATE hot");
    return lines;
}

void check_scans(const std::string& name, const std::string& plan, const std::string& wanted) {
    INFO(name << "\n" << plan);
    CHECK(plan.find("Seq Scan on queue") == std::string::npos);
    CHECK(plan.find("Seq Scan on operation") == std::string::npos);
    CHECK(plan.find(wanted) != std::string::npos);
}

const std::string kWorkerText = "'" + tests::kWorker + "'";

std::string array(int first, int count) {
    std::string text = "'{";
    for (int i = 0; i < count; ++i) {
        text += (i == 0 ? "" : ",") + std::to_string(first + i);
    }
    return text + "}'";
}

std::string repeated(const std::string& value, int count) {
    std::string text = "'{";
    for (int i = 0; i < count; ++i) {
        text += (i == 0 ? "" : ",") + value;
    }
    return text + "}'";
}

std::string finish_arguments(int rows) {
    return array(1, rows) + ", " + repeated("1", rows) + ", " + repeated("succeeded", rows) + ", " +
           repeated("NULL", rows) + ", " + repeated("NULL", rows) + ", " + repeated("0", rows) +
           ", " + repeated("NULL", rows) + ", '{}'";
}

void check_hot_plans(Session& session) {
    const auto lanes = "'{ticket,mail}', '{50,50}', '{20000,20000}'";
    check_scans(
        "lease",
        plan(
            session,
            outbox::sql::lease_operations,
            kWorkerText + ", 10000, " + lanes + ", '{7,7}', '{0,-101}', '{10,0}'"
        ),
        kCtid
    );
    check_scans(
        "claim",
        plan(session, outbox::sql::claim_probes, kWorkerText + ", 10000, " + lanes + ", '{f,t}'"),
        kCtid
    );
    check_scans(
        "resend",
        plan(session, outbox::sql::journal_resend, kWorkerText + ", 1, 1, 20000, 10000"),
        "queue_pkey"
    );
    check_scans("promote", plan(session, outbox::sql::promote_due, "500"), kCtid);
    check_scans(
        "settle compensations", plan(session, outbox::sql::settle_compensations, "500, 0, 0"), kCtid
    );
    check_scans("due", plan(session, outbox::sql::find_due, "true"), "queue_due");
    check_scans("expire leases", plan(session, outbox::sql::expire_leases, "500, true"), kCtid);
    check_scans("expire operations", plan(session, outbox::sql::expire_operations, "500"), kCtid);
    check_scans("lock attempt", plan(session, outbox::sql::lock_attempt, "1, 1, 1"), "queue_pkey");
    check_scans(
        "finish 1", plan(session, outbox::sql::finish_operations, finish_arguments(1)), "queue_pkey"
    );
    check_scans(
        "finish 200",
        plan(session, outbox::sql::finish_operations, finish_arguments(200)),
        "queue_pkey"
    );
    check_scans(
        "fates",
        plan(
            session,
            outbox::sql::read_fates,
            array(1, 50) + ", " + repeated("1", 50) + ", " + repeated("succeeded", 50) + ", " +
                repeated("NULL", 50)
        ),
        "queue_pkey"
    );
    check_scans(
        "late",
        plan(
            session,
            outbox::sql::record_late_result,
            "1, 'x', 1, 'effect', '{}', NULL, 'succeeded', NULL, 0, NULL"
        ),
        "queue_pkey"
    );
}

// Microseconds per row of a lease and its completion, on the daemon's own road.
void check_round_trip(StoreFixture& t, int rows) {
    auto start = std::chrono::steady_clock::now();
    auto leased = t.lease("ticket", rows);
    std::vector<outbox::Transition> batch;
    for (const auto& attempt : leased) {
        batch.push_back(tests::succeeded(attempt, "done"));
    }
    auto fates = tests::wait_for(t.store.complete(batch));
    auto took = std::chrono::steady_clock::now() - start;
    CHECK(fates.size() == leased.size());
    auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(took).count();
    INFO(rows << " rows took " << ms << " ms");
    CHECK(took < std::chrono::milliseconds(2000));
}

// What is in the statistics is what the test says.
void keep_statistics(Session& session) {
    session.run(
        "ALTER TABLE outbox.queue SET (autovacuum_enabled = off); "
        "ALTER TABLE outbox.operation SET (autovacuum_enabled = off); "
        "ALTER TABLE outbox.outcome SET (autovacuum_enabled = off)"
    );
}

struct Hot {
    std::string name;
    std::string text;
    std::string arguments;
    std::string wanted;
};

std::vector<Hot> hot_statements() {
    return {
        {"lease",
         outbox::sql::lease_operations,
         kWorkerText + ", 10000, '{ticket}', '{50}', '{20000}', '{7}', '{-101}', '{0}'",
         kCtid},
        {"finish", outbox::sql::finish_operations, finish_arguments(200), "queue_pkey"},
        {"move",
         outbox::sql::move_operations,
         array(1, 50) + ", " + repeated("1", 50) + ", " + repeated("scheduled", 50) + ", " +
             repeated("10", 50) + ", " + repeated("0", 50) + ", " + repeated("f", 50) + ", " +
             repeated("f", 50) + ", " + repeated("NULL", 50) + ", " + repeated("NULL", 50) + ", " +
             repeated("NULL", 50) + ", " + repeated("0", 50) + ", " + repeated("0", 50) + ", " +
             repeated("NULL", 50) + ", " + repeated("f", 50) + ", '{}', NULL",
         "queue_pkey"},
        {"fates",
         outbox::sql::read_fates,
         array(1, 50) + ", " + repeated("1", 50) + ", " + repeated("succeeded", 50) + ", " +
             repeated("NULL", 50),
         "queue_pkey"},
        {"late",
         outbox::sql::record_late_result,
         "1, 'x', 1, 'effect', '{}', NULL, 'succeeded', NULL, 0, NULL",
         "queue_pkey"},
    };
}

// As the lanes do: prepared once, planned without the parameters.
void prepare_hot(Session& session) {
    session.run(outbox::sql::hot_settings);
    for (const auto& hot : hot_statements()) {
        session.run("PREPARE " + hot.name + " AS " + hot.text);
    }
}

void check_prepared(Session& session) {
    for (const auto& hot : hot_statements()) {
        std::string lines;
        for (const auto& row :
             session.query("EXPLAIN EXECUTE " + hot.name + "(" + hot.arguments + ")")) {
            lines += *row[0] + "\n";
        }
        check_scans(hot.name, lines, hot.wanted);
        CHECK(lines.find("Seq Scan on outcome") == std::string::npos);
        CHECK(lines.find("Hash Join") == std::string::npos);
        // Events and rows of a batch meet without looking for each other: 500 of each, compared one
        // by one, cost six times the batch itself.
        INFO(hot.name << "\n" << lines);
        const bool batch = hot.name == "finish" || hot.name == "move" || hot.name == "fates";
        if (batch) CHECK(lines.find("Join Filter") == std::string::npos);
    }
}

}  // namespace

TEST_CASE("plans of the hot statements on an empty queue and on a thousand rows") {
    StoreFixture t;
    keep_statistics(t.sql);
    for (bool analysed : {false, true}) {
        if (analysed) {
            t.sql.run("ANALYZE");
        }
        CHECK(t.lease("ticket", 50).empty());
        check_round_trip(t, 50);
    }
    t.insert("op-", 1000);
    for (bool analysed : {false, true}) {
        if (analysed) {
            t.sql.run("ANALYZE");  // while everything is pending
        }
        // The rows of a lease are found through the ready index even here.
        auto lease = plan(
            t.sql,
            outbox::sql::lease_operations,
            kWorkerText + ", 10000, '{ticket}', '{50}', '{20000}', '{7}', '{-101}', '{0}'"
        );
        INFO(lease);
        CHECK(lease.find("Index Scan using queue_ready on queue r") != std::string::npos);
        CHECK(lease.find("Seq Scan on queue r") == std::string::npos);
        check_round_trip(t, 400);
    }
}

// What the lanes that lease and complete prepare: planned once, on an empty database, for good.
TEST_CASE("the lanes' prepared plans read by index, whatever was there when they were made") {
    StoreFixture t;
    keep_statistics(t.sql);
    prepare_hot(t.sql);
    check_prepared(t.sql);
    t.insert("op-", 20'000);
    check_prepared(t.sql);
    t.sql.run("ANALYZE");
    check_prepared(t.sql);
    for (int i = 0; i < 10; ++i) check_round_trip(t, 2000);
    t.sql.run("ANALYZE");
    check_prepared(t.sql);
    CHECK(t.sql.text("SELECT sum(custom_plans) FROM pg_prepared_statements") == "0");
}

namespace {

// Each time: as it is sent with its parameters, as it was prepared while the tables were empty, and
// as a session prepares it now.
void check_every_plan(StoreFixture& t, Session& old, const std::string& when) {
    INFO(when);
    check_hot_plans(t.sql);
    check_prepared(old);
    auto now = t.database.connect();
    prepare_hot(now);
    check_prepared(now);
}

// The queue as the filing trigger leaves it, by one statement for each table.
void fill(Session& session, int rows) {
    session.run(
        "SET session_replication_role = replica; "
        "INSERT INTO outbox.operation (operation_id, tool) "
        "SELECT 'many-' || n, CASE WHEN n % 5 < 3 THEN 'ticket' ELSE 'mail' END "
        "FROM generate_series(1, " +
        std::to_string(rows) +
        ") n; "
        "INSERT INTO outbox.queue (seq, tool, priority, status) "
        "SELECT o.seq, o.tool, o.priority, 'pending' FROM outbox.operation o "
        "WHERE o.operation_id LIKE 'many-%'; "
        "RESET session_replication_role"
    );
}

// Rows of our tables that a list has read.
int rows_read(Session& session, const std::string& arguments) {
    const std::string read =
        "SELECT sum(coalesce(seq_tup_read, 0) + coalesce(idx_tup_fetch, 0)) FROM "
        "pg_stat_xact_user_tables WHERE schemaname = 'outbox'";
    session.run("BEGIN");
    const auto before = std::stoi(session.text(read));
    session.query("SELECT l.seq FROM outbox.list(" + arguments + ") l");
    const auto rows = std::stoi(session.text(read)) - before;
    session.run("ROLLBACK");
    return rows;
}

// Every filter of the operator page and every pair of them, and the page after the middle.
void check_lists(Session& session, const std::string& when) {
    for (std::string statuses :
         {"NULL",
          "'{pending}'",
          "'{scheduled}'",
          "'{attempting}'",
          "'{unknown}'",
          "'{succeeded}'",
          "'{failed}'",
          "'{cancelled}'",
          "'{pending,scheduled,attempting,unknown}'",
          "'{failed,cancelled}'"}) {
        for (std::string tool : {"NULL", "'ticket'", "'mail'", "'rare'", "'nobody'"}) {
            for (std::string rest : {"NULL, false", "NULL, true", "NULL, false, 500000"}) {
                INFO(when << ": " << statuses << ", " << tool << ", " << rest);
                // 2048 numbers of a stretch, page after page of several tools: not the million.
                CHECK(rows_read(session, statuses + ", " + tool + ", " + rest) < 20'000);
            }
        }
    }
}

}  // namespace

// Vacuumed and analysed while empty: the server then believes that there is nothing, not that it
// does not know. The read of the intent has no choice; for the others the plans must be made anew.
TEST_CASE("plans made for tables that are empty for certain are not kept") {
    StoreFixture t;
    t.sql.run("VACUUM (ANALYZE)");
    keep_statistics(t.sql);
    auto old = t.database.connect();
    prepare_hot(old);
    fill(t.sql, 20'000);
    std::string lease;
    for (const auto& row :
         old.query("EXPLAIN EXECUTE lease(" + hot_statements().front().arguments + ")")) {
        lease += *row[0] + "\n";
    }
    INFO(lease);
    CHECK(lease.find("Index Cond: (seq = t.seq)") != std::string::npos);
    old.run("DISCARD PLANS");  // as a session does every few seconds
    check_prepared(old);
}

TEST_CASE("plans of the hot statements on a million rows, and once all of them are done") {
    StoreFixture t;
    keep_statistics(t.sql);
    auto old = t.database.connect();
    prepare_hot(old);
    fill(t.sql, 1'000'000);
    check_every_plan(t, old, "never analysed");
    t.insert("rare-", 3, "rare");
    while (t.sql.text("SELECT bool_or(more) FROM outbox.roll_up(100000)") == "t") continue;
    check_lists(t.sql, "never analysed");
    check_round_trip(t, 500);
    t.sql.run("ANALYZE");
    check_every_plan(t, old, "analysed while all was pending");
    check_round_trip(t, 500);

    // Thousands of dead entries at the head; then much in another state than analysed.
    for (int i = 0; i < 8; ++i) check_round_trip(t, 1000);
    t.lease("ticket", 2000);
    check_every_plan(t, old, "thousands attempting");
    check_lists(t.sql, "thousands attempting");

    t.sql.run(
        "WITH gone AS (DELETE FROM outbox.queue RETURNING seq) "
        "INSERT INTO outbox.outcome (seq, outcome, attempts, lease_epoch) "
        "SELECT seq, 'succeeded', 1, 2 FROM gone"
    );
    t.sql.run(
        "UPDATE outbox.outcome SET outcome = 'failed', error = '{}' WHERE seq IN (7, 700, 700000); "
        "UPDATE outbox.outcome SET attention = 'late_effect' WHERE seq IN (8, 800000)"
    );
    check_lists(t.sql, "all is done, statistics of another time");
    t.sql.run("ANALYZE");  // the queue is a thousand pages and more of nothing
    check_every_plan(t, old, "analysed when all was done");
    check_lists(t.sql, "analysed when all was done");
    t.insert("op-", 1000);
    check_every_plan(t, old, "new work, statistics of an empty queue");
    check_round_trip(t, 400);
}
