// Statements of tools on real databases: what is one transaction with the record, what is rolled
// back, and what a lost commit turns out to be.
#include <atomic>
#include <cstdio>
#include <fstream>
#include <future>
#include <thread>

#include "outbox/decide.hpp"
#include "outbox/pg/sql_database.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/store_fixture.hpp"

using namespace std::chrono_literals;
using namespace outbox;
using tests::StoreFixture;
using tests::wait_for;
using When = SqlFailure::When;

namespace {

Outcome success(const SqlRows& rows) {
    return Succeeded{rows.rows, {}};
}

SqlCall call_of(std::string statement, std::vector<std::optional<std::string>> parameters = {}) {
    SqlCall call;
    call.statement = std::move(statement);
    call.parameters = std::move(parameters);
    call.statement_timeout = 10s;
    call.deadline = Deadline::after(20s);
    call.max_bytes = 100'000;
    return call;
}

OwnAttempt own_of(const LeasedAttempt& attempt) {
    OwnAttempt own;
    own.seq = attempt.intent.seq;
    own.epoch = attempt.epoch;
    own.leased_at = attempt.leased_at;
    own.decide = [attempt, policy = tests::policy("ticket")](const Outcome& outcome) {
        return decide_attempt(attempt, outcome, policy, attempt.leased_at, 0);
    };
    return own;
}

// A planner's table beside the outbox.
struct EffectFixture : StoreFixture {
    Failpoints failpoints;
    outbox::pg::PgDatabases databases{database.dsn(), &failpoints};
    std::unique_ptr<SqlDatabase> own = databases.open(std::nullopt);

    EffectFixture() { sql.run("CREATE TABLE effect (id text, note text)"); }

    SqlEnd perform(SqlCall call, JudgeRows judge, std::optional<OwnAttempt> attempt) {
        return wait_for(own->perform(std::move(call), std::move(judge), std::move(attempt)));
    }
    SqlEnd insert_effect(const LeasedAttempt& attempt) {
        return perform(
            call_of("INSERT INTO effect VALUES ($1, 'x') RETURNING id", {attempt.intent.id.value}),
            success,
            own_of(attempt)
        );
    }
    int effects() { return std::stoi(sql.text("SELECT count(*) FROM effect")); }
};

When why(const SqlEnd& end) {
    REQUIRE(end.failure.has_value());
    return end.failure->when;
}

}  // namespace

TEST_CASE("own database: effect and end are one transaction, and the end is announced") {
    EffectFixture t;
    auto listener = t.database.connect();
    listener.run("LISTEN outbox_done");
    auto attempt = t.lease_one("op-1");
    auto end = t.perform(
        call_of("INSERT INTO effect VALUES ($1, now()::text) RETURNING id", {"op-1"}),
        success,
        own_of(attempt)
    );
    REQUIRE_FALSE(end.failure.has_value());
    REQUIRE(end.written.has_value());
    CHECK(t.effects() == 1);
    CHECK(t.state("op-1") == "succeeded 2 1");
    CHECK(t.outcome("op-1", "result::text") == R"([{"id": "op-1"}])");
    // Both rows were written by the same transaction: now() is its start, to the microsecond. (The
    // record's xmin is that of its savepoint.)
    CHECK(
        t.sql.text("SELECT (SELECT e.note FROM effect e)::timestamptz = "
                   "(SELECT finished_at FROM outbox.outcome)") == "t"
    );
    std::vector<std::string> told;
    for (int i = 0; i < 600 && told.empty(); ++i) {
        told = listener.notifications();
        std::this_thread::sleep_for(50ms);
    }
    CHECK(told == std::vector<std::string>{R"(["op-1"])"});
    // Written again, as the completer would: found written, nothing changes.
    CHECK(t.complete(*end.written) == Fate::applied);
}

TEST_CASE("own database: whoever lost its lease has no effect") {
    EffectFixture t;
    auto attempt = t.lease_one("op-1");
    t.outlive_lease("op-1");
    wait_for(t.store.maintain(false));
    CHECK(why(t.insert_effect(attempt)) == When::fenced);
    // The same epoch, but another lease: as after a failover.
    auto other = t.lease_one("op-2");
    other.leased_at += std::chrono::microseconds(1);
    CHECK(why(t.insert_effect(other)) == When::fenced);
    // The same lease, as far as its time tells, under another epoch.
    t.sql.run("UPDATE outbox.queue SET lease_epoch = lease_epoch + 1 WHERE status = 'attempting'");
    other.leased_at -= std::chrono::microseconds(1);
    CHECK(why(t.insert_effect(other)) == When::fenced);
    // Ended already.
    auto done = t.lease_one("op-3");
    CHECK_FALSE(t.insert_effect(done).failure.has_value());
    CHECK(why(t.insert_effect(done)) == When::fenced);
    // An earlier attempt's late answer has proved the effect: there is no second one.
    auto proved = t.lease_one("op-4");
    t.sql.run("UPDATE outbox.queue SET attention = 'late_effect', result = '1'");
    CHECK(why(t.insert_effect(proved)) == When::fenced);
    CHECK(t.effects() == 1);
}

TEST_CASE("own database: a row in the hands of a transaction cannot expire") {
    EffectFixture t;
    auto attempt = t.lease_one("op-1");
    t.outlive_lease("op-1");
    std::atomic<bool> seen{false};
    auto judge = [&](const SqlRows& rows) {
        wait_for(t.store.maintain(true));  // skips it
        seen = t.queue("op-1", "status") == "attempting";
        return success(rows);
    };
    auto end =
        t.perform(call_of("INSERT INTO effect VALUES ('op-1', 'x')"), judge, own_of(attempt));
    CHECK(seen);
    CHECK_FALSE(end.failure.has_value());
    CHECK(t.state("op-1") == "succeeded 2 1");
    CHECK(t.effects() == 1);
}

TEST_CASE("own database: what is judged rejected or retry is rolled back, and not recorded here") {
    EffectFixture t;
    auto attempt = t.lease_one("op-1");
    for (const Outcome& outcome :
         {Outcome(Rejected{}), Outcome(RetryLater{}), Outcome(Attention{})}) {
        auto end = t.perform(
            call_of("INSERT INTO effect VALUES ('x', 'x')"),
            [&](const SqlRows&) { return outcome; },
            own_of(attempt)
        );
        CHECK_FALSE(end.failure.has_value());
        CHECK(end.outcome.index() == outcome.index());
        CHECK_FALSE(end.written.has_value());
    }
    CHECK(t.effects() == 0);
    CHECK(t.queue("op-1", "status") == "attempting");
}

TEST_CASE("what the server refuses says its state, and had no effect") {
    EffectFixture t;
    t.sql.run("CREATE UNIQUE INDEX ON effect (id); INSERT INTO effect VALUES ('taken', 'x')");
    auto attempt = t.lease_one("op-1");
    const auto state = [&](const std::string& statement) {
        auto end = t.perform(call_of(statement), success, own_of(attempt));
        CHECK(why(end) == When::rolled_back);
        return end.failure->sqlstate;
    };
    CHECK(state("INSERT INTO effect VALUES ('taken', 'y')") == "23505");
    CHECK(state("INSERT INTO nowhere VALUES (1)") == "42P01");
    CHECK(state("SELECT 1/0") == "22012");
    CHECK(state("SELECT 1; SELECT 2") == "42601");
    auto slow = call_of("SELECT pg_sleep(60)");
    slow.statement_timeout = 100ms;
    auto end = t.perform(std::move(slow), success, own_of(attempt));
    CHECK(end.failure->sqlstate == "57014");
    auto writes = call_of("DELETE FROM effect");
    writes.read_only = true;
    end = t.perform(std::move(writes), success, std::nullopt);
    CHECK(end.failure->sqlstate == "25006");
    CHECK(t.effects() == 1);
    // The lane goes on.
    CHECK_FALSE(t.insert_effect(attempt).failure.has_value());
}

TEST_CASE("a constraint that is looked at only at the commit still is a refusal") {
    EffectFixture t;
    t.sql.run(
        "CREATE TABLE parent (id text PRIMARY KEY); CREATE TABLE child (id text REFERENCES parent "
        "DEFERRABLE INITIALLY DEFERRED)"
    );
    auto attempt = t.lease_one("op-1");
    auto end = t.perform(call_of("INSERT INTO child VALUES ('orphan')"), success, own_of(attempt));
    CHECK(why(end) == When::rolled_back);
    CHECK(end.failure->sqlstate == "23503");
    CHECK_FALSE(end.written.has_value());
    CHECK(t.queue("op-1", "status") == "attempting");
}

TEST_CASE("the deadline bounds everything: before, during and after the statement") {
    EffectFixture t;
    auto attempt = t.lease_one("op-1");
    auto late = call_of("INSERT INTO effect VALUES ('x', 'x')");
    late.deadline = Deadline::after(-1ms);
    CHECK(why(t.perform(std::move(late), success, own_of(attempt))) == When::not_begun);
    auto slow = call_of("SELECT pg_sleep(60)");
    slow.deadline = Deadline::after(300ms);
    auto end = t.perform(std::move(slow), success, own_of(attempt));
    CHECK(end.failure->sqlstate == "57014");
    auto judged = call_of("INSERT INTO effect VALUES ('x', 'x')");
    judged.deadline = Deadline::after(2s);
    auto dawdle = [](const SqlRows& rows) {
        std::this_thread::sleep_for(2100ms);
        return success(rows);
    };
    end = t.perform(std::move(judged), dawdle, own_of(attempt));
    CHECK(why(end) == When::rolled_back);
    CHECK(t.effects() == 0);
}

TEST_CASE("a lost acknowledgement on the own database is settled: it happened, or it did not") {
    EffectFixture t;
    REQUIRE(t.failpoints.arm("after_sql_commit=throw*1").empty());
    auto attempt = t.lease_one("op-1");
    auto end = t.insert_effect(attempt);
    CHECK_FALSE(end.failure.has_value());
    CHECK(end.written.has_value());
    CHECK(t.state("op-1") == "succeeded 2 1");
    CHECK(t.effects() == 1);

    // The server goes away with everything between the record and the commit.
    for (const auto* where : {"after_sql_lock", "after_sql_effect", "after_sql_record"}) {
        INFO(where);
        const auto id = std::string("cut ") + where;
        const auto file = "/tmp/outbox-pg-" + t.database.name() + where;
        REQUIRE(t.failpoints.arm(std::string(where) + "=pause:" + file + "*1").empty());
        auto cut = t.lease_one(id);
        std::thread killer([&] {
            for (int i = 0; i < 600 && !std::ifstream(file + ".reached"); ++i) {
                std::this_thread::sleep_for(50ms);
            }
            auto session = t.database.connect();
            session.query(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = "
                "current_database() AND pid <> pg_backend_pid() AND state LIKE 'idle in trans%'"
            );
            std::ofstream(file) << "go";
        });
        end = t.insert_effect(cut);
        killer.join();
        std::remove(file.c_str());
        std::remove((file + ".reached").c_str());
        CHECK(why(end) == When::rolled_back);
        CHECK(t.sql.text("SELECT count(*) FROM effect WHERE id = '" + id + "'") == "0");
        CHECK(t.queue(id, "status") == "attempting");
    }
}

TEST_CASE("two sessions with one lease: one effect") {
    EffectFixture t;
    auto other = t.databases.open(std::nullopt);
    auto attempt = t.lease_one("op-1");
    auto call = call_of("INSERT INTO effect SELECT 'op-1', pg_sleep(0.2)::text");
    auto second = std::async(std::launch::async, [&] {
        return wait_for(other->perform(call, success, own_of(attempt)));
    });
    auto first = t.perform(call, success, own_of(attempt));
    auto end = second.get();
    CHECK(first.failure.has_value() != end.failure.has_value());
    CHECK(t.effects() == 1);
}

TEST_CASE("a result that cannot be stored costs its wording, not the success") {
    EffectFixture t;
    auto attempt = t.lease_one("op-1");
    auto own = own_of(attempt);
    own.decide = [decide = own.decide](const Outcome& outcome) {
        auto next = decide(outcome);
        next.result = Json(Json::Number{"1e200000"});  // beyond jsonb
        return next;
    };
    auto end = t.perform(call_of("INSERT INTO effect VALUES ('op-1', 'x')"), success, own);
    CHECK_FALSE(end.failure.has_value());
    CHECK(t.effects() == 1);
    CHECK(t.outcome("op-1", "result->>'truncated'") == "true");
    CHECK(t.events("op-1") == "result_lost");
}

TEST_CASE("rows become JSON with the types of their columns") {
    EffectFixture t;
    auto end = wait_for(t.own->look_up(call_of(
        "SELECT 1::int AS i, 2.50::numeric AS n, true AS b, NULL::text AS z, 'x\"y' AS t, "
        "'{\"a\": 1}'::jsonb AS j, ARRAY[1, 2] AS a, 'NaN'::float8 AS f, $1::text AS p",
        {"ö"}
    )));
    REQUIRE_FALSE(end.failure.has_value());
    CHECK(end.rows.count == 1);
    CHECK(
        to_text(end.rows.rows) ==
        R"([{"i":1,"n":2.50,"b":true,"z":null,"t":"x\"y","j":{"a":1},"a":"{1,2}","f":"NaN","p":"ö"}])"
    );
    auto many = call_of("SELECT repeat('x', 1000) FROM generate_series(1, 100)");
    many.max_bytes = 10'000;
    end = wait_for(t.own->look_up(std::move(many)));
    CHECK(end.rows.count == 100);
    CHECK(end.rows.truncated);
    // Rows affected, where nothing is returned.
    end = t.perform(
        call_of("INSERT INTO effect SELECT n::text, 'x' FROM generate_series(1, 3) n"),
        success,
        std::nullopt
    );
    CHECK(end.rows.count == 3);
    CHECK(t.effects() == 3);
}

TEST_CASE("another database: committed alone, rolled back alone, and no connection is not sent") {
    EffectFixture t;
    tests::Database elsewhere;
    auto there = elsewhere.connect();
    there.run("CREATE TABLE effect (id text)");
    auto database = t.databases.open(elsewhere.dsn());
    auto call = call_of("INSERT INTO effect VALUES ('x')");
    auto end = wait_for(database->perform(call, success, std::nullopt));
    CHECK_FALSE(end.failure.has_value());
    end = wait_for(database->perform(
        call, [](const SqlRows&) -> Outcome { return Rejected{}; }, std::nullopt
    ));
    CHECK(there.text("SELECT count(*) FROM effect") == "1");
    REQUIRE(t.failpoints.arm("after_sql_commit=throw*1").empty());
    end = wait_for(database->perform(call, success, std::nullopt));
    CHECK(why(end) == When::in_doubt);
    CHECK(there.text("SELECT count(*) FROM effect") == "2");
    auto nowhere = t.databases.open("host=/nowhere dbname=x");
    end = wait_for(nowhere->perform(call, success, std::nullopt));
    CHECK(why(end) == When::not_begun);
    end = wait_for(nowhere->look_up(call));
    CHECK(why(end) == When::not_begun);
}
