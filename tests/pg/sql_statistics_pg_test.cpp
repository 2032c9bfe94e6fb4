#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "sql/queries.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/database.hpp"
#include "tests/support/refusal.hpp"

using namespace std::chrono_literals;
using tests::Database;
using tests::refusal;
using tests::Session;

namespace {

void enqueue(Session& session, const std::string& id, const std::string& tool = "t") {
    session.query("SELECT outbox.enqueue($1, operation_id => $2)", {tool, id});
}

// What this call counted: "enqueued/replayed".
std::string roll_up(Session& session) {
    return session.text("SELECT sum(enqueued)::text || '/' || sum(replayed) FROM outbox.roll_up()");
}

std::string tallied(Session& session) {
    return session.text(
        "SELECT coalesce(sum(enqueued), 0)::text || '/' || "
        "coalesce(sum(replayed), 0) FROM outbox.tally"
    );
}

std::string rate(Session& session, const std::string& column, const std::string& tool = "t") {
    return session.text(
        "SELECT coalesce((SELECT " + column +
        "::text FROM outbox.stats() WHERE status IS NULL AND tool = '" + tool + "'), 'none')"
    );
}

}  // namespace

TEST_CASE("every enqueue and every replay is counted once, on either road") {
    Database database;
    auto session = database.connect();
    CHECK(roll_up(session) == "0/0");
    enqueue(session, "op-1");
    enqueue(session, "op-1");
    enqueue(session, "op-2", "u");
    session.run(
        "INSERT INTO outbox.operation (operation_id, tool) VALUES ('op-3', 't'); "
        "INSERT INTO outbox.operation (operation_id, tool) VALUES ('op-3', 't') "
        "ON CONFLICT DO NOTHING"
    );
    CHECK(roll_up(session) == "3/1");
    CHECK(roll_up(session) == "0/0");
    enqueue(session, "op-1");
    CHECK(roll_up(session) == "0/1");
    CHECK(tallied(session) == "3/2");
    CHECK(rate(session, "enqueued_1h") == "2");
    CHECK(rate(session, "replayed_1h") == "2");
    CHECK(rate(session, "replay_rate_1h") == "0.5000");
    CHECK(rate(session, "replay_rate_30d") == "0.5000");
    CHECK(rate(session, "enqueued_30d", "u") == "1");
    CHECK(rate(session, "replay_rate_30d", "u") == "0.0000");
}

TEST_CASE("a planner's transaction that is open across the roll-up is not lost") {
    Database database;
    auto early = database.connect();
    auto late = database.connect();
    auto daemon = database.connect();
    // The early one draws its numbers first and commits last.
    early.run("BEGIN");
    enqueue(early, "op-early");
    enqueue(early, "op-early");
    enqueue(late, "op-late-1");
    CHECK(roll_up(daemon) == "0/0");
    enqueue(late, "op-late-2");
    CHECK(roll_up(daemon) == "0/0");
    early.run("COMMIT");
    // Both that were noted, then what came after the mark.
    CHECK(roll_up(daemon) == "2/1");
    CHECK(roll_up(daemon) == "1/0");
    CHECK(roll_up(daemon) == "0/0");
    CHECK(tallied(daemon) == "3/1");
}

TEST_CASE("another open transaction does not hold up what was counted before it") {
    Database database;
    auto first = database.connect();
    auto second = database.connect();
    auto daemon = database.connect();
    first.run("BEGIN");
    enqueue(first, "op-1");
    CHECK(roll_up(daemon) == "0/0");
    second.run("BEGIN");
    enqueue(second, "op-2");
    first.run("COMMIT");
    CHECK(roll_up(daemon) == "1/0");
    CHECK(roll_up(daemon) == "0/0");
    second.run("ROLLBACK");
    CHECK(roll_up(daemon) == "0/0");
    CHECK(roll_up(daemon) == "0/0");
    CHECK(tallied(daemon) == "1/0");
}

TEST_CASE("savepoints and rolled-back sub-transactions count as what is left of them") {
    Database database;
    auto planner = database.connect();
    auto daemon = database.connect();
    planner.run("BEGIN; SAVEPOINT a");
    enqueue(planner, "op-1");
    planner.run("RELEASE a; SAVEPOINT b");
    enqueue(planner, "op-2");
    planner.run("ROLLBACK TO b");
    CHECK(roll_up(daemon) == "0/0");
    // The rolled-back savepoint is gone, the transaction still writes.
    enqueue(planner, "op-3");
    CHECK(roll_up(daemon) == "0/0");
    planner.run("COMMIT");
    roll_up(daemon);
    roll_up(daemon);
    CHECK(tallied(daemon) == "2/0");
}

TEST_CASE("a transaction prepared for two-phase commit is waited for under its new name") {
    Database database;
    auto planner = database.connect();
    auto other = database.connect();
    auto daemon = database.connect();
    planner.run("SET outbox.wakeup = 'off'; BEGIN");
    enqueue(planner, "op-1");
    CHECK(roll_up(daemon) == "0/0");  // noted as an ordinary writer
    planner.run("PREPARE TRANSACTION 'roll_up_test'");
    enqueue(other, "op-2");
    CHECK(roll_up(daemon) == "0/0");
    CHECK(roll_up(daemon) == "0/0");
    planner.run("COMMIT PREPARED 'roll_up_test'");
    CHECK(roll_up(daemon) == "1/0");
    CHECK(roll_up(daemon) == "1/0");
    // Noted as a prepared one from the start.
    planner.run("BEGIN");
    enqueue(planner, "op-3");
    planner.run("PREPARE TRANSACTION 'roll_up_test'");
    CHECK(roll_up(daemon) == "0/0");
    planner.run("ROLLBACK PREPARED 'roll_up_test'");
    roll_up(daemon);
    CHECK(tallied(daemon) == "2/0");
}

TEST_CASE("two daemons at once: the second one leaves it to the first") {
    Database database;
    auto planner = database.connect();
    auto first = database.connect();
    auto second = database.connect();
    enqueue(planner, "op-1");
    first.run("BEGIN");
    CHECK(roll_up(first) == "1/0");
    CHECK(roll_up(second) == "0/0");
    first.run("COMMIT");
    CHECK(roll_up(second) == "0/0");
    CHECK(tallied(second) == "1/0");
}

TEST_CASE("a daemon that dies in the middle of a roll-up leaves it to the next one") {
    Database database;
    auto planner = database.connect();
    auto daemon = database.connect();
    enqueue(planner, "op-1");
    enqueue(planner, "op-1");
    {
        auto dying = database.connect();
        dying.run("BEGIN");
        CHECK(roll_up(dying) == "1/1");
    }
    CHECK(tallied(daemon) == "0/0");
    // The server notices the lost connection in its own time.
    for (int i = 0; i < 300 && roll_up(daemon) == "0/0"; ++i) std::this_thread::sleep_for(100ms);
    CHECK(tallied(daemon) == "1/1");
}

TEST_CASE("many planners and daemons at once: the sum is exact, and so is each daemon's share") {
    Database database;
    auto check = database.connect();
    constexpr int kPlanners = 4;
    constexpr int kEach = 60;
    std::atomic<bool> over{false};
    std::atomic<long> counted{0};
    const auto plan = [&database](int planner) {
        auto session = database.connect();
        for (int i = 0; i < kEach; ++i) {
            session.run("BEGIN");
            enqueue(session, fmt::format("{}-{}", planner, i));
            enqueue(session, fmt::format("{}-{}", planner, i));
            session.run(i % 5 == 4 ? "ROLLBACK" : "COMMIT");
        }
    };
    const auto count = [&database, &over, &counted] {
        auto session = database.connect();
        while (!over) {
            counted +=
                std::stol(session.text("SELECT sum(enqueued + replayed) FROM outbox.roll_up(7)"));
        }
    };
    std::vector<std::jthread> daemons;
    for (int i = 0; i < 3; ++i) daemons.emplace_back(count);
    {
        std::vector<std::jthread> planners;
        for (int i = 0; i < kPlanners; ++i) planners.emplace_back(plan, i);
    }
    constexpr int kCommitted = kPlanners * kEach * 4 / 5;
    for (int i = 0; i < 600 && counted < 2 * kCommitted; ++i) std::this_thread::sleep_for(50ms);
    over = true;
    daemons.clear();
    CHECK(counted == 2 * kCommitted);
    CHECK(tallied(check) == fmt::format("{}/{}", kCommitted, kCommitted));
}

TEST_CASE("a roll-up goes by pages and says whether there is more") {
    Database database;
    auto session = database.connect();
    session.run(
        "INSERT INTO outbox.operation (operation_id, tool) "
        "SELECT 'op-' || i, 't' FROM generate_series(1, 25) i"
    );
    const auto page = [&session] {
        return session.text("SELECT sum(enqueued)::text || bool_or(more) FROM outbox.roll_up(10)");
    };
    CHECK(page() == "10true");
    CHECK(page() == "10true");
    CHECK(page() == "5false");
    CHECK(page() == "0false");
}

TEST_CASE("an idle outbox is not written to") {
    Database database;
    auto session = database.connect();
    enqueue(session, "op-1");
    roll_up(session);
    const std::string state = "SELECT string_agg(xmin::text, ',') FROM outbox.rollup";
    const auto before = session.text(state);
    CHECK(roll_up(session) == "0/0");
    CHECK(session.text(state) == before);
}

TEST_CASE("a roll-up under an older snapshot is refused: it would pass rows by") {
    Database database;
    auto session = database.connect();
    session.run("BEGIN ISOLATION LEVEL REPEATABLE READ");
    CHECK(refusal(session, "SELECT outbox.roll_up()").sqlstate == "25001");
}

TEST_CASE("minutes are folded into their hour after two hours, and nothing is lost in it") {
    Database database;
    auto session = database.connect();
    session.run(
        "INSERT INTO outbox.tally (at, tool, enqueued, replayed) "
        "SELECT date_bin('1 hour', now(), '2000-01-01Z') - interval '5 hours' "
        "       + i * interval '1 minute', 't', 1, 2 FROM generate_series(0, 59) i; "
        "INSERT INTO outbox.tally (at, tool, enqueued) "
        "VALUES (now() - interval '91 days', 't', 1)"
    );
    enqueue(session, "op-1");
    roll_up(session);
    CHECK(
        session.text("SELECT count(*)::text || ':' || sum(enqueued) || ':' || sum(replayed) "
                     "FROM outbox.tally WHERE at < now() - interval '3 hours'") == "1:60:120"
    );
    CHECK(tallied(session) == "61/120");
    // In hours and minutes of UTC, whatever the session's time zone is.
    CHECK(
        session.text("SELECT bool_and(extract(epoch FROM at)::bigint % 60 = 0) "
                     "FROM outbox.tally") == "t"
    );
}

TEST_CASE("a tool that nobody published is `other`, one of the catalogue is named with zero") {
    Database database;
    auto session = database.connect();
    session.run(
        "INSERT INTO outbox.tool (tool, effect, revision) VALUES ('known', 'write', 'r'); "
        "INSERT INTO outbox.operation (operation_id, tool) VALUES ('op-1', 'unheard_of')"
    );
    const auto rows = session.query(
        "SELECT tool, sum(enqueued) FROM outbox.roll_up() "
        "GROUP BY 1 ORDER BY 1"
    );
    CHECK(rows == tests::Rows{{"known", "0"}, {"other", "1"}});
    // The figures for people keep the name.
    CHECK(rate(session, "enqueued_30d", "unheard_of") == "1");
}

TEST_CASE("stats: one row per tool and status, with the age of the oldest") {
    Database database;
    auto session = database.connect();
    session.run(
        "INSERT INTO outbox.operation (operation_id, tool) "
        "SELECT 'op-' || i, 't' FROM generate_series(1, 4) i; "
        "INSERT INTO outbox.operation (operation_id, tool, run_at) "
        "VALUES ('op-5', 't', now() + interval '1 day'); "
        "UPDATE outbox.queue SET status = 'unknown', due_at = 'infinity', "
        "  unknown_since = now() - interval '20 minutes' WHERE seq = 2; "
        "UPDATE outbox.queue SET status = 'unknown', due_at = 'infinity', accepted = true, "
        "  unknown_since = now() - interval '2 days' WHERE seq = 3; "
        "UPDATE outbox.queue SET due_at = now() - interval '3 minutes' WHERE seq = 4"
    );
    const auto rows = session.query(
        "SELECT status, count, round(extract(epoch FROM oldest_age) / 60) "
        "FROM outbox.stats() WHERE tool = 't'"
    );
    CHECK(
        rows ==
        tests::Rows{
            {std::nullopt, "5", "20"},
            {"pending", "2", "3"},
            {"scheduled", "1", "0"},
            {"unknown", "2", "20"}
        }
    );
}

TEST_CASE("readers read statistics, daemons count, planners do neither") {
    Database database;
    const auto as = [&database](const std::string& role) {
        auto session = database.connect();
        session.run("SET SESSION AUTHORIZATION " + role);
        return session;
    };
    for (const std::string role : {"outbox_reader", "outbox_operator", "outbox_worker"}) {
        auto session = as(role);
        CHECK_NOTHROW(session.query("SELECT * FROM outbox.stats()"));
        CHECK_NOTHROW(session.query("SELECT * FROM outbox.backlog"));
    }
    auto worker = as("outbox_worker");
    CHECK(roll_up(worker) == "0/0");
    auto planner = as("outbox_planner");
    for (const std::string sql :
         {"SELECT * FROM outbox.stats()",
          "SELECT * FROM outbox.backlog",
          "SELECT * FROM outbox.tally",
          "SELECT * FROM outbox.rollup",
          "SELECT outbox.roll_up()",
          "SELECT outbox.last_number('event')",
          "SELECT outbox.writers('event')"}) {
        INFO(sql);
        CHECK(refusal(planner, sql).sqlstate == "42501");
    }
    auto reader = as("outbox_reader");
    CHECK(refusal(reader, "SELECT outbox.roll_up()").sqlstate == "42501");
    CHECK(refusal(reader, "SELECT * FROM outbox.tally").sqlstate == "42501");
}

// A million operations that ended, a backlog of ten thousand: neither is walked through.
TEST_CASE("statistics stay cheap with a million operations") {
    Database database;
    auto session = database.connect();
    session.run(
        // Its worker sums up the BRIN's new ranges, which counts as reading the table.
        "ALTER TABLE outbox.operation SET (autovacuum_enabled = off); "
        "ALTER TABLE outbox.operation DISABLE TRIGGER ALL; "
        "INSERT INTO outbox.operation (operation_id, tool) "
        "SELECT 'op-' || i, 't' FROM generate_series(1, 1000000) i; "
        "ALTER TABLE outbox.operation ENABLE TRIGGER ALL; "
        "INSERT INTO outbox.queue (seq, tool, priority, status) "
        "SELECT i, 't', 0, 'pending' FROM generate_series(990001, 1000000) i; "
        "UPDATE outbox.rollup SET counted = 1000000, mark = 1000000 "
        "WHERE source = 'operation'; "
        "ANALYZE outbox.operation; ANALYZE outbox.queue"
    );
    for (int i = 0; i < 100; ++i) enqueue(session, "op-7");
    // Neither a sort of it nor a scan: what the tables are read for is counted by the server.
    const std::string reads =
        "SELECT coalesce(sum(seq_tup_read), 0)::text FROM "
        "pg_stat_user_tables WHERE relname IN ('operation', 'outcome', "
        "'event')";
    session.run("SELECT pg_stat_force_next_flush()");
    const auto before = session.text(reads);
    auto reading = database.connect();
    CHECK(roll_up(reading) == "0/100");
    reading.query("SELECT * FROM outbox.stats()");
    reading.run("SELECT pg_stat_force_next_flush()");
    CHECK(reading.text(reads) == before);
    const auto plan = session.query("EXPLAIN (FORMAT TEXT) SELECT * FROM outbox.backlog");
    std::string lines;
    for (const auto& row : plan) lines += *row[0] + "\n";
    INFO(lines);
    CHECK(lines.find("Seq Scan on operation") == std::string::npos);
}
