#include <future>
#include <thread>

#include "sql/queries.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/store_fixture.hpp"

using namespace std::chrono_literals;
using outbox::EventKind;
using outbox::Fate;
using outbox::Json;
using outbox::Status;
using outbox::StoreError;
using outbox::Transition;
using tests::Rows;
using tests::StoreFixture;
using tests::wait_for;

namespace {

Json object(std::string key, Json value) {
    Json json;
    json.set(std::move(key), std::move(value));
    return json;
}

std::vector<Fate> all(std::size_t count, Fate fate) {
    return std::vector<Fate>(count, fate);
}

StoreError::Kind kind_of_failure(StoreFixture& t, std::vector<Transition> batch) {
    try {
        wait_for(t.store.complete(std::move(batch)));
    } catch (const StoreError& error) {
        return error.kind();
    }
    FAIL("complete() did not throw");
    return StoreError::Kind::bug;
}

// Ends every server process of the database that waits as described, once there is one.
void terminate_when(tests::Session& session, const std::string& condition) {
    for (int tries = 0; tries < 200; ++tries) {
        auto ended = session.text(
            "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid() AND " +
            condition
        );
        if (ended != "0") {
            return;
        }
        std::this_thread::sleep_for(20ms);
    }
    throw std::runtime_error("nobody waits: " + condition);
}

}  // namespace

TEST_CASE("a success takes the queue row and files the outcome") {
    StoreFixture t;
    auto attempt = t.lease_one("op-1");
    auto result = object("text", "quote \" backslash \\ {brace} , NULL ü \u2028 'x'");
    result.set("n", Json::Number{"20.0"});
    CHECK(t.complete(tests::succeeded(attempt, result)) == Fate::applied);
    CHECK(t.state("op-1") == "succeeded 2 1");
    auto stored = outbox::parse_json(t.outcome("op-1", "result"));
    REQUIRE(stored.value.has_value());
    CHECK(stored.value->equals(result));
    CHECK(t.outcome("op-1", "c.result ->> 'n'") == "20.0");
    CHECK(t.outcome("op-1", "attempt_epoch") == "1");
    CHECK(t.outcome("op-1", "request_hash") == "7");
    CHECK(t.outcome("op-1", "started_at IS NOT NULL AND finished_at >= started_at") == "true");
    CHECK(t.outcome("op-1", "c.error") == "NULL");
    CHECK(t.sql.text("SELECT count(*) FROM outbox.queue") == "0");
    CHECK(t.events("op-1").empty());
}

TEST_CASE("a batch of every kind of end keeps its order") {
    StoreFixture t;
    t.insert("op-", 6);
    auto a = t.lease();
    REQUIRE(a.size() == 6);
    auto released = tests::transition_of(a[3], Status::pending);
    released.attempts_delta = -1;
    released.events.push_back({EventKind::released, Json::Object{}});
    auto given_back = tests::retried(a[4], 5s);
    given_back.attempts_delta = -1;
    std::vector<Transition> batch{
        tests::unknown(a[0]),
        tests::succeeded(a[1], Json()),
        tests::retried(a[2], 60s),
        released,
        given_back,
        tests::failed(a[5], "refused")
    };
    batch[4].epoch = outbox::Epoch(99);
    auto fates = wait_for(t.store.complete(batch));
    CHECK(
        fates ==
        std::vector<Fate>{
            Fate::applied, Fate::applied, Fate::applied, Fate::applied, Fate::fenced, Fate::applied
        }
    );
    CHECK(t.state("op-1") == "unknown 2 1");
    CHECK(
        t.queue(
            "op-1",
            "ambiguous AND unknown_since IS NOT NULL AND due_at <= clock_timestamp() "
            "AND NOT accepted AND leased_by IS NULL"
        ) == "true"
    );
    CHECK(t.queue("op-1", "q.error ->> 'code'") == "timeout");
    CHECK(t.state("op-2") == "succeeded 2 1");
    CHECK(t.outcome("op-2", "c.result") == "NULL");
    CHECK(t.state("op-3") == "scheduled 2 1");
    CHECK(t.queue("op-3", "due_at - now() BETWEEN interval '50 s' AND interval '60 s'") == "true");
    CHECK(t.state("op-4") == "pending 2 0");
    CHECK(t.queue("op-4", "due_at") == "NULL");
    CHECK(t.state("op-5") == "attempting 1 1");
    CHECK(t.state("op-6") == "failed 2 1");
    CHECK(t.outcome("op-6", "c.error ->> 'code'") == "refused");
    CHECK(t.events("op-1") == "unknown");
    CHECK(t.events("op-3") == "retry");
    CHECK(t.events("op-4") == "released");
    CHECK(t.events("op-5").empty());
    CHECK(t.events("op-6") == "failed");
    CHECK(
        t.sql.query("SELECT epoch, worker FROM outbox.event WHERE operation_id IN ('op-1', 'op-6')"
        ) == Rows{{"2", tests::kWorker}, {"2", tests::kWorker}}
    );
    // All of it once more, as after a lost acknowledgement: found, not written twice.
    CHECK(wait_for(t.store.complete(batch)) == fates);
    CHECK(t.sql.text("SELECT count(*) FROM outbox.event") == "4");
}

TEST_CASE("a stale epoch writes nothing, whatever it says") {
    StoreFixture t;
    auto attempt = t.lease_one("op-1");
    t.outlive_lease("op-1");
    REQUIRE(wait_for(t.store.maintain(false)).lease_expired == 1);
    REQUIRE(t.state("op-1") == "unknown 2 1");
    CHECK(t.complete(tests::succeeded(attempt, "x")) == Fate::fenced);
    CHECK(t.complete(tests::failed(attempt, "x")) == Fate::fenced);
    CHECK(t.complete(tests::retried(attempt, 1s)) == Fate::fenced);
    CHECK(t.complete(tests::transition_of(attempt, Status::pending)) == Fate::fenced);
    CHECK(t.state("op-1") == "unknown 2 1");
    CHECK(t.events("op-1") == "lease_expired");
    CHECK(t.sql.text("SELECT count(*) FROM outbox.outcome") == "0");
}

TEST_CASE("accepted waits for a probe without being an anomaly; manual waits for a person") {
    StoreFixture t;
    auto attempt = t.lease_one("op-1");
    auto accepted = tests::transition_of(attempt, Status::unknown);
    accepted.result = object("job", "j-1");
    accepted.ambiguous = true;
    accepted.due_in = 0ms;
    CHECK(t.complete(accepted) == Fate::applied);
    CHECK(t.queue("op-1", "accepted AND ambiguous AND q.result ->> 'job' = 'j-1'") == "true");

    auto other = t.lease_one("op-2");
    auto manual = tests::unknown(other);
    manual.due_in.reset();
    manual.attention = outbox::AttentionReason::manual;
    CHECK(t.complete(manual) == Fate::applied);
    CHECK(t.queue("op-2", "due_at") == "infinity");
    CHECK(t.queue("op-2", "attention") == "manual");
}

TEST_CASE("five hundred ends are one statement") {
    StoreFixture t;
    t.insert("op-", 500);
    auto leased = t.lease("ticket", 500);
    REQUIRE(leased.size() == 500);
    std::vector<Transition> batch;
    for (const auto& attempt : leased) {
        batch.push_back(tests::succeeded(attempt, object("id", attempt.intent.id.value)));
    }
    CHECK(wait_for(t.store.complete(batch)) == all(500, Fate::applied));
    CHECK(
        t.sql.text("SELECT count(*) FROM outbox.outcome c JOIN outbox.operation o USING (seq) "
                   "WHERE c.result ->> 'id' = o.operation_id") == "500"
    );
    CHECK(t.sql.text("SELECT count(DISTINCT xmin::text) FROM outbox.outcome") == "1");
}

TEST_CASE("ends are announced after their commit, in payloads of less than 8000 bytes") {
    StoreFixture t;
    t.sql.run("LISTEN outbox_done");
    t.insert(std::string(180, 'x') + "-", 100);
    auto leased = t.lease("ticket", 100);
    std::vector<Transition> batch;
    for (const auto& attempt : leased) {
        batch.push_back(tests::succeeded(attempt, "done"));
    }
    batch[0] = tests::retried(leased[0], 1s);
    batch[1].epoch = outbox::Epoch(99);
    wait_for(t.store.complete(batch));
    t.sql.run("SELECT 1");
    std::size_t ids = 0;
    auto payloads = t.sql.notifications();
    CHECK(payloads.size() >= 3);
    for (const auto& payload : payloads) {
        CHECK(payload.size() < 8000);
        auto parsed = outbox::parse_json(payload);
        REQUIRE(parsed.value.has_value());
        ids += parsed.value->as_array()->size();
    }
    CHECK(ids == 98);
}

TEST_CASE("nothing is announced while the notification queue is over half full") {
    StoreFixture t;
    t.sql.run("LISTEN outbox_done; CREATE SCHEMA fake");
    for (const auto& [usage, heard] : {std::pair{"0.49", true}, {"0.5", false}, {"1", false}}) {
        INFO(usage);
        t.sql.run(
            "CREATE OR REPLACE FUNCTION fake.pg_notification_queue_usage() RETURNS double "
            "precision "
            "LANGUAGE sql AS 'SELECT " +
            std::string(usage) + "::double precision'"
        );
        t.sql.run("SET search_path = fake, pg_catalog");
        t.sql.query(outbox::sql::announce_done, {"[\"op-1\"]"});
        t.sql.run("SELECT 1");
        CHECK(t.sql.notifications().size() == (heard ? 1 : 0));
    }
}

TEST_CASE("an odd row takes the last resort and the others go on") {
    StoreFixture t;
    t.insert("op-", 20);
    auto leased = t.lease("ticket", 20);
    std::vector<Transition> batch;
    for (const auto& attempt : leased) {
        batch.push_back(tests::succeeded(attempt, object("id", attempt.intent.id.value)));
    }
    batch[3].result = object("text", std::string("a\0b", 3));    // no jsonb holds \u0000
    batch[7].result = object("n", Json::Number{"1e999999"});     // nor this number
    batch[11].result = object("text", std::string("\xff\xfe"));  // nor broken UTF-8
    batch[12] = tests::failed(leased[12], std::string("co\0de", 5));
    batch[15] = tests::unknown(leased[15]);
    batch[15].error = outbox::Error{"timeout", std::string("a\0b", 3)};
    batch[16] = tests::unknown(leased[16]);
    CHECK(wait_for(t.store.complete(batch)) == all(20, Fate::applied));
    for (const std::string id : {"op-4", "op-8", "op-12"}) {
        INFO(id);
        CHECK(t.state(id) == "succeeded 2 1");
        CHECK(t.outcome(id, "c.result ->> 'truncated'") == "true");
        CHECK(t.outcome(id, "length(c.result ->> 'sha256')") == "64");
        CHECK(t.events(id) == "result_lost");
    }
    CHECK(t.state("op-13") == "failed 2 1");
    CHECK(t.outcome("op-13", "c.error ->> 'code'") == "co?de");
    CHECK(t.events("op-13") == "failed result_lost");
    CHECK(t.state("op-16") == "unknown 2 1");
    CHECK(t.events("op-16") == "unknown result_lost");
    CHECK(t.state("op-17") == "unknown 2 1");
    CHECK(
        t.sql.text("SELECT count(*) FROM outbox.outcome WHERE outcome = 'succeeded' AND "
                   "result ? 'id'") == "14"
    );
    // Again, as after a lost acknowledgement: found under the digest.
    CHECK(wait_for(t.store.complete(batch)) == all(20, Fate::applied));
    CHECK(t.sql.text("SELECT count(*) FROM outbox.event WHERE kind = 'result_lost'") == "5");
}

TEST_CASE("a row that somebody locked waits alone") {
    StoreFixture t;
    t.insert("op-", 9);
    auto leased = t.lease();
    std::vector<Transition> batch;
    for (const auto& attempt : leased) {
        batch.push_back(tests::succeeded(attempt, "done"));
    }
    batch[1] = tests::retried(leased[1], 1s);
    auto other = t.database.connect();
    other.run("BEGIN; SELECT FROM outbox.queue WHERE seq IN (2, 5) FOR UPDATE");
    CHECK(kind_of_failure(t, batch) == StoreError::Kind::conflict);
    CHECK(t.sql.text("SELECT count(*) FROM outbox.outcome") == "7");
    other.run("ROLLBACK");
    CHECK(wait_for(t.store.complete(batch)) == all(9, Fate::applied));
    CHECK(t.state("op-5") == "succeeded 2 1");
    CHECK(t.state("op-2") == "scheduled 2 1");
}

TEST_CASE("the server ends the session before the commit: in doubt, and nothing was written") {
    StoreFixture t;
    auto attempt = t.lease_one("op-1");
    t.sql.run(
        "CREATE FUNCTION stall() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
        "PERFORM pg_sleep(30); RETURN NULL; END $$; "
        "CREATE TRIGGER stall AFTER DELETE ON outbox.queue EXECUTE FUNCTION stall()"
    );
    auto killer = std::async(std::launch::async, [&] {
        auto session = t.database.connect();
        terminate_when(session, "wait_event = 'PgSleep'");
    });
    CHECK(kind_of_failure(t, {tests::succeeded(attempt, "x")}) == StoreError::Kind::in_doubt);
    killer.get();
    t.sql.run("DROP TRIGGER stall ON outbox.queue");
    CHECK(t.state("op-1") == "attempting 1 1");
    CHECK(t.complete(tests::succeeded(attempt, "x")) == Fate::applied);
}

TEST_CASE("the acknowledgement of a commit is lost: in doubt, and the next try finds its own work"
) {
    StoreFixture t;
    t.insert("op-", 3);
    auto leased = t.lease();
    std::vector<Transition> batch{
        tests::succeeded(leased[0], object("id", "T-1")),
        tests::retried(leased[1], 60s),
        tests::failed(leased[2], "no")
    };
    // A commit that waits for a standby nobody has is on disk already; ending the session then
    // loses the answer and nothing else.
    auto settings = t.database.connect();
    settings.run("SET synchronous_commit = local");
    auto standbys = [&](const std::string& names) {
        settings.run("ALTER SYSTEM SET synchronous_standby_names = '" + names + "'");
        settings.run("SELECT pg_reload_conf()");
        while (settings.text("SHOW synchronous_standby_names") != names) {
            std::this_thread::sleep_for(10ms);
        }
    };
    standbys("nobody");
    auto killer = std::async(std::launch::async, [&] {
        auto session = t.database.connect();
        terminate_when(session, "wait_event = 'SyncRep'");
    });
    auto kind = kind_of_failure(t, batch);
    killer.get();
    standbys("");
    CHECK(kind == StoreError::Kind::in_doubt);
    CHECK(t.state("op-1") == "succeeded 2 1");
    CHECK(t.state("op-2") == "attempting 1 1");  // its statement never ran
    CHECK(wait_for(t.store.complete(batch)) == all(3, Fate::applied));
    CHECK(t.state("op-1") == "succeeded 2 1");
    CHECK(t.state("op-2") == "scheduled 2 1");
    CHECK(t.state("op-3") == "failed 2 1");
    CHECK(t.events("op-3") == "failed");
    // Another result under the same epoch is not mine.
    CHECK(t.complete(tests::succeeded(leased[0], object("id", "T-2"))) == Fate::fenced);
}

TEST_CASE("a lease whose acknowledgement was lost is given back") {
    StoreFixture t;
    REQUIRE(t.lease().empty());  // a new session records the timeline first
    t.insert("op-", 3);
    auto settings = t.database.connect();
    settings.run("SET synchronous_commit = local");
    settings.run("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
    settings.run("SELECT pg_reload_conf()");
    std::this_thread::sleep_for(100ms);
    auto killer = std::async(std::launch::async, [&] {
        auto session = t.database.connect();
        terminate_when(session, "wait_event = 'SyncRep'");
    });
    auto kind = StoreError::Kind::bug;
    try {
        t.lease();
    } catch (const StoreError& error) {
        kind = error.kind();
    }
    killer.get();
    settings.run("ALTER SYSTEM RESET synchronous_standby_names");
    settings.run("SELECT pg_reload_conf()");
    CHECK(kind == StoreError::Kind::in_doubt);
    CHECK(t.state("op-1") == "attempting 1 1");
    auto worker = outbox::WorkerId(tests::kWorker);
    CHECK(wait_for(t.store.release_lost_leases(worker, {})) == 3);
    CHECK(t.lease().size() == 3);
}
