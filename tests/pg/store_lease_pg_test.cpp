#include <algorithm>
#include <set>
#include <thread>

#include "outbox/pg/session.hpp"
#include "sql/queries.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/store_fixture.hpp"

using namespace std::chrono_literals;
using outbox::LeaseLane;
using outbox::LeaseRequest;
using outbox::Seq;
using outbox::WorkerId;
using tests::Rows;
using tests::StoreFixture;
using tests::wait_for;

namespace {

LeaseRequest request(std::vector<LeaseLane> lanes, const std::string& worker = tests::kWorker) {
    return {.worker = WorkerId(worker), .margin = 10s, .lanes = std::move(lanes)};
}

std::string ids(const std::vector<outbox::LeasedAttempt>& leased) {
    std::string all;
    for (const auto& attempt : leased) {
        all += (all.empty() ? "" : " ") + attempt.intent.id.value;
    }
    return all;
}

// Writes down what synchronous_commit was at the very end of each transaction that leased.
constexpr const char* kWatchFlush = R"(
    CREATE TABLE flush (setting text);
    CREATE FUNCTION watch_flush() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO public.flush VALUES (current_setting('synchronous_commit')); RETURN NULL; END $$;
    CREATE CONSTRAINT TRIGGER watch_flush AFTER UPDATE ON outbox.queue
        DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION watch_flush();)";

}  // namespace

TEST_CASE("a lease journals the attempt before it returns") {
    StoreFixture t;
    t.sql.run(
        "INSERT INTO outbox.operation (operation_id, tool, arguments, run_id, priority, "
        "max_attempts, expires_at, traceparent) VALUES ('op-1', 'ticket', "
        "'{\"n\": 9007199254740993, \"t\": \"a \\\"b\\\" \\\\ ü\"}', 'run-1', -3, 5, "
        "now() + interval '1 hour', '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01')"
    );
    auto leased = t.lease();
    REQUIRE(leased.size() == 1);
    const auto& a = leased[0];
    CHECK(a.intent.id.value == "op-1");
    CHECK(a.intent.tool == "ticket");
    CHECK(outbox::to_text(a.intent.arguments) == R"({"n":9007199254740993,"t":"a \"b\" \\ ü"})");
    CHECK(a.intent.run_id == "run-1");
    CHECK(a.intent.max_attempts == 5);
    CHECK(a.intent.expires_at.has_value());
    CHECK(a.intent.traceparent == "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    CHECK(a.intent.priority == -3);
    CHECK_FALSE(a.intent.compensates.has_value());
    CHECK(a.epoch.value == 1);
    CHECK(a.attempts == 1);
    CHECK_FALSE(a.ambiguous);
    CHECK(a.request_hash == 7);
    CHECK(a.deadline_at - a.leased_at == 20s);
    CHECK(a.first_attempt_at == a.leased_at);
    CHECK(a.eligible_since == a.intent.created_at);

    CHECK(
        t.sql.query("SELECT status, lease_epoch, attempt_epoch, attempts, leased_by, "
                    "attempted_at = started_at, deadline_at - attempted_at, due_at - deadline_at, "
                    "request_hash FROM outbox.queue"
        ) == Rows{{"attempting", "1", "1", "1", tests::kWorker, "t", "00:00:20", "00:00:10", "7"}}
    );
    CHECK(t.lease().empty());
    CHECK(t.events("op-1").empty());
}

TEST_CASE("the lease's own commit is flushed whatever the session, role or database say") {
    StoreFixture t;
    t.insert("op-", 4);
    t.sql.run(kWatchFlush);
    auto lease_with = [&](const std::string& setting) {
        auto session = t.database.connect();
        session.run("SET synchronous_commit = " + setting);
        auto text = outbox::sql::lease_operations;
        auto rows = session.query(
            text, {tests::kWorker, "10000", "{ticket}", "{1}", "{20000}", "{7}", "{-101}", "{0}"}
        );
        REQUIRE(rows.size() == 1);
        // For that transaction only.
        CHECK(session.text("SHOW synchronous_commit") == setting);
        return t.sql.text("SELECT string_agg(setting, ' ') FROM flush");
    };
    CHECK(lease_with("off") == "on");
    t.sql.run("TRUNCATE flush");
    CHECK(lease_with("local") == "on");
    t.sql.run("TRUNCATE flush");
    CHECK(lease_with("remote_apply") == "remote_apply");
    t.sql.run("TRUNCATE flush");
    t.sql.run("ALTER DATABASE " + t.database.name() + " SET synchronous_commit = off");
    outbox::pg::PgStore late(t.database.dsn(), WorkerId(tests::kWorker), nullptr);
    auto lanes =
        request({{.tool = "ticket", .limit = 1, .timeout = 1s, .request_hash = 1, .after = {}}});
    CHECK(wait_for(late.lease(lanes)).size() == 1);
    CHECK(t.sql.text("SELECT string_agg(setting, ' ') FROM flush") == "on");
}

TEST_CASE("several lanes in one lease keep their limits, order and marks") {
    StoreFixture t;
    t.insert("a", 5);
    t.insert("m", 3, "mail");
    t.insert("z", 3, "nobody-serves-this");
    t.sql.run(
        "INSERT INTO outbox.operation (operation_id, tool, priority) VALUES ('first', 'ticket', -1)"
    );
    auto both = request(
        {{.tool = "ticket", .limit = 2, .timeout = 1s, .request_hash = 1, .after = {}},
         {.tool = "mail", .limit = 5, .timeout = 2s, .request_hash = 2, .after = {}}}
    );
    auto leased = wait_for(t.store.lease(both));
    CHECK(ids(leased) == "first a1 m1 m2 m3");
    CHECK(leased[1].deadline_at - leased[1].leased_at == 1s);
    CHECK(leased[2].deadline_at - leased[2].leased_at == 2s);
    CHECK(leased[2].request_hash == 2);

    // Behind the mark; and a second lane of the same tool from the head, for what came late.
    auto mark = leased[1].intent.seq.value + 1;  // a2 is skipped
    auto marked = request(
        {{.tool = "ticket",
          .limit = 1,
          .timeout = 1s,
          .request_hash = 1,
          .after = {.priority = 0, .seq = mark}},
         {.tool = "ticket", .limit = 1, .timeout = 1s, .request_hash = 1, .after = {}}}
    );
    CHECK(ids(wait_for(t.store.lease(marked))) == "a2 a3");
    // Both lanes see the same rows: each is taken once.
    auto doubled = request(
        {{.tool = "ticket", .limit = 9, .timeout = 1s, .request_hash = 1, .after = {}},
         {.tool = "ticket", .limit = 9, .timeout = 1s, .request_hash = 1, .after = {}}}
    );
    CHECK(ids(wait_for(t.store.lease(doubled))) == "a4 a5");
    CHECK(t.state("a4") == "attempting 1 1");
}

TEST_CASE("paused tools, expired and scheduled operations are not leased") {
    StoreFixture t;
    t.insert("op-", 2);
    t.insert("m", 1, "mail");
    t.sql.run("UPDATE outbox.tool SET paused_at = now() WHERE tool = 'ticket'");
    CHECK(t.lease().empty());
    CHECK(t.lease("mail").size() == 1);
    t.sql.run("UPDATE outbox.tool SET paused_at = NULL");
    t.sql.run(
        "INSERT INTO outbox.operation (operation_id, tool, expires_at) "
        "VALUES ('old', 'ticket', now() - interval '1 second'); "
        "INSERT INTO outbox.operation (operation_id, tool, run_at) "
        "VALUES ('later', 'ticket', now() + interval '1 hour')"
    );
    CHECK(ids(t.lease()) == "op-1 op-2");
    CHECK(t.state("old") == "pending 0 0");
}

TEST_CASE("an odd row fails alone: the batch it comes with is leased and probed") {
    StoreFixture t;
    t.sql.run(
        "INSERT INTO outbox.operation (operation_id, tool, arguments) VALUES ('deep', 'ticket', "
        "('{\"x\":' || repeat('[', 520) || repeat(']', 520) || '}')::jsonb)"
    );
    t.sql.run(
        "INSERT INTO outbox.operation (operation_id, tool, expires_at, run_at) VALUES "
        "('far', 'ticket', '294276-12-31 23:59:59', '4713-01-01 BC')"
    );
    t.sql.run("INSERT INTO outbox.operation (operation_id, tool) VALUES ('plain', 'ticket')");
    auto leased = t.lease();
    CHECK(ids(leased) == "deep far plain");
    CHECK_THAT(leased[0].intent.unreadable, ContainsSubstring("arguments cannot be read"));
    CHECK(leased[1].intent.unreadable.empty());
    for (const auto& attempt : leased) {
        t.outlive_lease(attempt.intent.id.value);
    }
    wait_for(t.store.maintain(false));
    auto claims = wait_for(t.store.claim_probes(
        WorkerId(tests::kWorker), 10s, {{.tool = "ticket", .limit = 10, .timeout = 5s}}
    ));
    REQUIRE(claims.size() == 3);
    CHECK_FALSE(claims[0].intent.unreadable.empty());
    CHECK(claims[2].intent.unreadable.empty());
}

TEST_CASE("an operation that is armed again has no expires_at any more") {
    StoreFixture t;
    t.sql.run(
        "INSERT INTO outbox.operation (operation_id, tool, expires_at) "
        "VALUES ('op-1', 'ticket', now() + interval '1 hour')"
    );
    auto first = t.lease();
    REQUIRE(first.size() == 1);
    CHECK(first[0].intent.expires_at.has_value());
    REQUIRE(t.complete(tests::failed(first[0], "bad_title")) == outbox::Fate::applied);
    REQUIRE(t.sql.text("SELECT outbox.retry('op-1', 'mended')") == "armed");
    auto again = t.lease();
    REQUIRE(again.size() == 1);
    CHECK_FALSE(again[0].intent.expires_at.has_value());
}

TEST_CASE("a compensation is leased with its original's arguments and result") {
    StoreFixture t;
    auto original = t.lease_one("op-1");
    outbox::Json result;
    result.set("id", "T-1");
    REQUIRE(t.complete(tests::succeeded(original, result)) == outbox::Fate::applied);
    t.sql.run(
        "INSERT INTO outbox.operation (operation_id, tool, arguments, compensates) "
        "VALUES ('op-1:compensate:close', 'mail', '{\"x\": 1}', 'op-1')"
    );
    t.sql.run(
        "INSERT INTO outbox.operation (operation_id, tool, arguments, pruned_at) "
        "VALUES ('pruned', 't', '{}', now()); "
        "INSERT INTO outbox.operation (operation_id, tool, compensates) "
        "VALUES ('pruned:compensate:close', 'mail', 'pruned')"
    );
    auto leased = t.lease("mail");
    REQUIRE(leased.size() == 2);
    // Not an empty object that stands in for what is gone.
    CHECK(leased[1].intent.original_arguments.is_null());
    CHECK(leased[1].intent.original_result.is_null());
    CHECK(leased[0].intent.compensates->value == "op-1");
    CHECK(outbox::to_text(leased[0].intent.original_arguments) == "{}");
    CHECK(outbox::to_text(leased[0].intent.original_result) == R"({"id":"T-1"})");
}

TEST_CASE("rows that others hold are skipped, not waited for") {
    StoreFixture t;
    t.insert("op-", 3);
    auto other = t.database.connect();
    other.run("BEGIN; SELECT FROM outbox.queue WHERE seq = 1 FOR UPDATE");
    CHECK(ids(t.lease()) == "op-2 op-3");
    other.run("ROLLBACK");
    CHECK(ids(t.lease()) == "op-1");
}

TEST_CASE("lost leases are given back, those in flight are not") {
    StoreFixture t;
    t.insert("op-", 3);
    auto leased = t.lease();
    auto other = request(
        {{.tool = "mail", .limit = 1, .timeout = 1s, .request_hash = 1, .after = {}}},
        tests::kOtherWorker
    );
    t.insert("m", 1, "mail");
    REQUIRE(wait_for(t.store.lease(other)).size() == 1);

    CHECK(
        wait_for(t.store.release_lost_leases(WorkerId(tests::kWorker), {leased[1].intent.seq})) == 2
    );
    CHECK(t.state("op-1") == "pending 2 0");
    CHECK(t.state("op-2") == "attempting 1 1");
    CHECK(t.state("m1") == "attempting 1 1");
    CHECK(t.events("op-1") == "released");
    CHECK(
        wait_for(t.store.release_lost_leases(WorkerId(tests::kWorker), {leased[1].intent.seq})) == 0
    );
    // The fenced attempt cannot end it any more.
    CHECK(t.complete(tests::succeeded(leased[0], "x")) == outbox::Fate::fenced);
    CHECK(t.lease().size() == 2);
}

TEST_CASE("two stores on one database lease a thousand operations once each") {
    StoreFixture t;
    t.insert("op-", 1000);
    auto drain = [&](const std::string& worker) {
        outbox::pg::PgStore store(t.database.dsn(), WorkerId(worker), nullptr);
        std::vector<std::int64_t> taken;
        for (int empty = 0; empty < 3;) {
            auto lanes = request(
                {{.tool = "ticket", .limit = 7, .timeout = 60s, .request_hash = 1, .after = {}}},
                worker
            );
            auto leased = wait_for(store.lease(lanes));
            empty = leased.empty() ? empty + 1 : 0;
            std::vector<outbox::Transition> batch;
            for (const auto& attempt : leased) {
                taken.push_back(attempt.intent.seq.value);
                batch.push_back(tests::succeeded(attempt, worker));
            }
            for (auto fate : wait_for(store.complete(batch))) {
                if (fate != outbox::Fate::applied) {
                    taken.push_back(-1);
                }
            }
        }
        return taken;
    };
    std::vector<std::int64_t> theirs;
    std::thread other([&] { theirs = drain(tests::kOtherWorker); });
    auto ours = drain(tests::kWorker);
    other.join();

    std::set<std::int64_t> all(ours.begin(), ours.end());
    all.insert(theirs.begin(), theirs.end());
    CHECK(ours.size() + theirs.size() == 1000);
    CHECK(all.size() == 1000);
    CHECK(all.count(-1) == 0);
    CHECK_FALSE(ours.empty());
    CHECK_FALSE(theirs.empty());
    CHECK(
        t.sql.text(
            "SELECT count(*) FROM outbox.outcome WHERE outcome = 'succeeded' AND attempts = 1"
        ) == "1000"
    );
    CHECK(t.sql.text("SELECT count(*) FROM outbox.queue") == "0");
}

// A pooler answers with another server process than the one it introduced; here pg_backend_pid()
// itself does, in this database alone.
TEST_CASE("through a pooler, what a lease returned is committed") {
    StoreFixture t;
    t.insert("op-", 1);
    t.sql.run(
        "CREATE OR REPLACE FUNCTION pg_catalog.pg_backend_pid() RETURNS integer "
        "LANGUAGE sql STABLE AS 'SELECT 0'"
    );
    REQUIRE(outbox::pg::Session(t.database.dsn(), {}, nullptr).pooled());
    outbox::pg::PgStore pooled(t.database.dsn(), WorkerId(tests::kWorker), nullptr);
    auto lanes =
        request({{.tool = "ticket", .limit = 1, .timeout = 1s, .request_hash = 1, .after = {}}});
    const auto leased = wait_for(pooled.lease(lanes));
    REQUIRE(leased.size() == 1);
    CHECK(t.state("op-1") == "attempting 1 1");
    CHECK(wait_for(pooled.lease(lanes)).empty());
    const auto fates =
        wait_for(pooled.complete({tests::succeeded(leased[0], outbox::Json("T-1"))}));
    CHECK(fates == std::vector{outbox::Fate::applied});
    CHECK(t.state("op-1") == "succeeded 2 1");
}
