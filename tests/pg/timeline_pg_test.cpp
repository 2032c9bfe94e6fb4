#include <atomic>
#include <thread>

#include "tests/support/catch.hpp"
#include "tests/support/store_fixture.hpp"

using namespace std::chrono_literals;
using outbox::Fate;
using outbox::LeasedAttempt;
using outbox::Status;
using outbox::TimelineChange;
using outbox::WorkerId;
using outbox::pg::PgStore;
using tests::StoreFixture;
using tests::wait_for;

namespace {

const std::string kNobody = "00000000-0000-0000-0000-000000000000";

// What a daemon sees that connects anew: a store with sessions of its own.
class Daemon {
 public:
    Daemon(StoreFixture& t, std::string worker)
        : worker_(std::move(worker)), store(t.database.dsn(), WorkerId(worker_), nullptr) {
        store.on_timeline = [this](const TimelineChange& change) {
            ++changes;
            for (const auto& [tool, count] : change.unknown) unknown += count;
        };
    }
    std::vector<LeasedAttempt> lease(const std::string& tool = "ticket", int limit = 100) {
        outbox::LeaseRequest request;
        request.worker = WorkerId(worker_);
        request.margin = 10s;
        request.lanes.push_back(
            {.tool = tool, .limit = limit, .timeout = 20s, .request_hash = 7, .after = {}}
        );
        return wait_for(store.lease(std::move(request)));
    }

 private:
    std::string worker_;

 public:
    PgStore store;
    int changes = 0;
    int unknown = 0;
};

// The database as it is after a failover or a restore: what is recorded is the old timeline.
void come_back(StoreFixture& t, const std::string& was = "1:1:0000000A") {
    t.sql.query("UPDATE outbox.setting SET value = $1 WHERE name = 'timeline'", {was});
}

// The leases are lost with the old timeline.
void lose_leases(StoreFixture& t) {
    t.sql.run(
        "UPDATE outbox.queue SET status = 'pending', lease_epoch = 0, attempts = 0, "
        "attempt_epoch = NULL, started_at = NULL, deadline_at = NULL, request_hash = NULL, "
        "attempted_at = NULL, leased_by = NULL"
    );
}

std::string recorded(StoreFixture& t) {
    return t.sql.text(
        "SELECT coalesce(max(value), 'NULL') FROM outbox.setting "
        "WHERE name = 'timeline'"
    );
}

std::vector<outbox::ClaimedProbe> claim(StoreFixture& t) {
    return wait_for(t.store.claim_probes(
        WorkerId(tests::kWorker), 10s, {{.tool = "ticket", .limit = 100, .timeout = 5s}}
    ));
}

outbox::Transition believed_absent(const outbox::ClaimedProbe& probe) {
    outbox::Transition next;
    next.writer = outbox::Transition::Writer::probe;
    next.seq = probe.intent.seq;
    next.id = probe.intent.id;
    next.tool = probe.intent.tool;
    next.epoch = probe.epoch;
    next.to = Status::scheduled;
    next.due_in = 0ms;
    next.events.push_back({outbox::EventKind::probe, outbox::Json::Object{}});
    return next;
}

}  // namespace

TEST_CASE("the first lease records where the outbox is, and nothing moves") {
    StoreFixture t;
    t.insert("op", 3);
    CHECK(recorded(t) == "NULL");
    CHECK(t.lease().size() == 3);
    CHECK(
        recorded(t) == t.sql.text("SELECT system_identifier || ':' || oid || ':00000001' "
                                  "FROM pg_control_system(), pg_database "
                                  "WHERE datname = current_database()")
    );
    Daemon second(t, tests::kOtherWorker);
    CHECK(second.lease().empty());
    CHECK(second.changes == 0);
    CHECK(t.events("op1").empty());
}

TEST_CASE("after a timeline change what was open is unknown before anything is leased") {
    StoreFixture t;
    auto flying = t.lease_one("attempting");
    auto lost = t.lease_one("lost");
    REQUIRE(t.complete(tests::unknown(t.lease_one("unknown"))) == Fate::applied);
    auto probed = claim(t).at(0);
    REQUIRE(t.complete(tests::retried(t.lease_one("retried"), 1h)) == Fate::applied);
    t.insert("pending", 2);
    t.insert("look", 1, "look");
    t.insert("nobody", 1, "nobody");
    t.sql.run(
        "INSERT INTO outbox.operation (operation_id, tool, run_at) "
        "VALUES ('later', 'mail', now() + interval '1 h')"
    );
    const auto hash = t.queue("retried", "request_hash");
    come_back(t);

    Daemon daemon(t, tests::kOtherWorker);
    CHECK(daemon.lease().empty());
    CHECK(daemon.changes == 1);
    CHECK(daemon.unknown == 5);
    for (const auto* id : {"pending1", "pending2", "nobody1", "later"}) {
        INFO(id);
        CHECK(t.state(id) == "unknown 1000 0");
        CHECK(t.events(id) == "timeline");
        CHECK(
            t.queue(
                id,
                "unknown_since > now() - interval '1 min' AND due_at <= now() AND ambiguous "
                "AND request_hash IS NULL AND attempt_epoch = 0 AND attention IS NULL "
                "AND deadline_at = unknown_since + interval '20 s'"
            ) == "true"
        );
    }
    CHECK(t.detail("later", "timeline").find("1:1:0000000A") != std::string::npos);
    // Where an attempt is recorded, its request stays the one that is looked for.
    CHECK(t.state("retried") == "unknown 1002 1");
    CHECK(t.queue("retried", "request_hash") == hash);
    CHECK(t.queue("retried", "attempt_epoch") == "1");
    CHECK(t.events("retried") == "retry timeline");
    CHECK(t.queue("retried", "deadline_at >= unknown_since + interval '20 s'") == "true");
    // Reads have no unknown.
    CHECK(t.state("look1") == "pending 0 0");
    CHECK(daemon.lease("look").size() == 1);
    // A probe under way proves nothing about what was lost: its verdict is too late.
    CHECK(t.complete(believed_absent(probed)) == Fate::fenced);
    CHECK(t.state("unknown").starts_with("unknown 100"));
    CHECK(t.queue("unknown", "deadline_at > now() + interval '15 s'") == "true");
    // An attempt under way ends as ever, and is no longer one that may be given back as unsent.
    CHECK(t.queue("lost", "leased_by") == kNobody);
    CHECK(
        wait_for(t.store.release_lost_leases(WorkerId(tests::kWorker), {flying.intent.seq})) == 0
    );
    CHECK(t.state("lost") == "attempting 1 1");
    CHECK(t.complete(tests::succeeded(flying, "T-1")) == Fate::applied);
    CHECK(t.state("attempting") == "succeeded 2 1");
    CHECK(t.complete(tests::succeeded(lost, "T-2")) == Fate::applied);

    // What comes later is attempted as ever.
    t.insert("new", 1);
    CHECK(daemon.lease().size() == 1);
    CHECK(t.events("new1").empty());
}

TEST_CASE("a timeline change counts as a write what was sent as one, whatever its tool is now") {
    StoreFixture t;
    REQUIRE(t.complete(tests::retried(t.lease_one("sent"), 1h)) == Fate::applied);
    t.insert("fresh", 1);
    t.sql.run("UPDATE outbox.request SET leaves_doubt = true WHERE tool = 'ticket'");
    t.sql.run("UPDATE outbox.tool SET effect = 'read' WHERE tool = 'ticket'");
    come_back(t);
    Daemon daemon(t, tests::kOtherWorker);
    CHECK(daemon.lease().size() == 1);
    CHECK(t.state("sent").starts_with("unknown 100"));
    CHECK(t.events("sent") == "retry timeline");
    // Nothing was sent for it but what the tool is now.
    CHECK(t.state("fresh1") == "attempting 1 1");
}

TEST_CASE("a timeline change is settled once, whoever connects later") {
    StoreFixture t;
    t.lease();
    t.insert("op", 1);
    come_back(t);
    Daemon first(t, tests::kWorker);
    REQUIRE(first.lease().empty());
    REQUIRE(t.state("op1") == "unknown 1000 0");
    auto probe = claim(t).at(0);
    CHECK(probe.request_hash == 0);
    CHECK(probe.deadline_at == probe.unknown_since + 20s);
    REQUIRE(t.complete(believed_absent(probe)) == Fate::applied);
    wait_for(t.store.maintain(false));
    CHECK(t.state("op1") == "pending 1003 0");

    Daemon second(t, tests::kOtherWorker);
    auto leased = second.lease();
    REQUIRE(leased.size() == 1);
    CHECK(second.changes == 0);
    CHECK(leased[0].ambiguous);
    CHECK(leased[0].epoch.value == 1004);
    CHECK(t.events("op1") == "timeline probe");
    CHECK(t.complete(tests::succeeded(leased[0], "T-1")) == Fate::applied);
}

TEST_CASE("an attempt that the new timeline does not know cannot write over it") {
    StoreFixture t;
    auto attempt = t.lease_one("op");
    lose_leases(t);
    come_back(t);
    Daemon daemon(t, tests::kOtherWorker);
    REQUIRE(daemon.lease().empty());
    SECTION("no effect: an event, nothing more") {
        CHECK(t.complete(tests::retried(attempt, 0ms)) == Fate::fenced);
        CHECK(
            wait_for(t.store.record_late(tests::retried(attempt, 0ms))) == outbox::LateFate::stored
        );
        CHECK(t.state("op") == "unknown 1000 0");
    }
    SECTION("an effect settles it") {
        CHECK(t.complete(tests::succeeded(attempt, "T-1")) == Fate::fenced);
        CHECK(
            wait_for(t.store.record_late(tests::succeeded(attempt, "T-1"))) ==
            outbox::LateFate::settled
        );
        CHECK(t.state("op") == "succeeded 1001 0");
        CHECK(t.outcome("op", "attention") == "NULL");
    }
}

TEST_CASE("a late answer waits until a change is settled, and then no person is called") {
    StoreFixture t;
    auto attempt = t.lease_one("op");
    lose_leases(t);
    come_back(t);
    const auto late = tests::succeeded(attempt, "T-1");
    for (int i = 0; i < 2; ++i) {
        CHECK_THROWS_AS(wait_for(t.store.record_late(late)), outbox::StoreError);
        CHECK(t.state("op") == "pending 0 0");
        CHECK(t.events("op").empty());
    }
    Daemon daemon(t, tests::kOtherWorker);
    REQUIRE(daemon.lease().empty());
    CHECK(wait_for(t.store.record_late(late)) == outbox::LateFate::settled);
    CHECK(t.state("op") == "succeeded 1001 0");
    CHECK(t.outcome("op", "attention") == "NULL");
}

TEST_CASE("several daemons settle a change together, each operation once, in pages") {
    StoreFixture t;
    t.lease();
    t.insert("op", 9000);
    come_back(t);
    std::atomic<int> unknown = 0;
    std::atomic<int> leased = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&, i] {
            Daemon daemon(t, "00000000-0000-0000-0000-00000000001" + std::to_string(i));
            for (int tries = 0; tries < 20; ++tries) {
                leased += static_cast<int>(daemon.lease().size());
            }
            unknown += daemon.unknown;
        });
    }
    // Planners and maintenance go on meanwhile.
    for (int i = 0; i < 20; ++i) {
        t.sql.query(
            "INSERT INTO outbox.operation (operation_id, tool) VALUES ('new' || $1, 'mail')",
            {std::to_string(i)}
        );
        wait_for(t.store.maintain(false));
    }
    for (auto& thread : threads) thread.join();
    // The mails that were in time for the first page are as old as the change, and looked up too.
    const auto mails = std::stoi(
        t.sql.text("SELECT count(*) FROM outbox.queue WHERE tool = 'mail' AND status = 'unknown'")
    );
    // Maintenance did its share of the pages, and tells with the next claim.
    t.store.on_timeline = [&](const TimelineChange& change) {
        for (const auto& [tool, count] : change.unknown) unknown += count;
    };
    claim(t);
    CHECK(unknown == 9000 + mails);
    CHECK(leased == 0);
    CHECK(
        t.sql.text("SELECT count(*) || ' ' || count(DISTINCT operation_id) FROM outbox.event "
                   "WHERE kind = 'timeline'"
        ) == std::to_string(9000 + mails) + " " + std::to_string(9000 + mails)
    );
    CHECK(
        t.sql.text("SELECT count(*) FROM outbox.queue WHERE status = 'unknown'") ==
        std::to_string(9000 + mails)
    );
}

TEST_CASE("a change that was half settled goes on, or begins anew on yet another timeline") {
    StoreFixture t;
    t.lease();
    const auto here = recorded(t);
    t.insert("op", 4);
    SECTION("goes on behind the cursor") {
        come_back(t, "1:1:0000000A " + here + " 2 4");
        Daemon daemon(t, tests::kWorker);
        auto leased = daemon.lease();
        CHECK(daemon.unknown == 2);
        REQUIRE(leased.size() == 2);
        CHECK(leased[0].intent.id.value == "op1");
    }
    SECTION("begins anew") {
        come_back(t, "1:1:0000000A 1:1:0000000B 4 4");
        Daemon daemon(t, tests::kWorker);
        CHECK(daemon.lease().empty());
        CHECK(daemon.unknown == 4);
    }
    CHECK(recorded(t) == here);
}

TEST_CASE("nothing expires and nothing is probed before a change is settled") {
    StoreFixture t;
    t.lease();
    REQUIRE(t.complete(tests::unknown(t.lease_one("unknown"))) == Fate::applied);
    t.sql.run(
        "INSERT INTO outbox.operation (operation_id, tool, expires_at) "
        "VALUES ('expiring', 'ticket', now() - interval '1 s')"
    );
    come_back(t);
    auto planner = t.database.connect();
    planner.run("BEGIN; SELECT FROM outbox.queue WHERE seq = 2 FOR UPDATE");
    Daemon daemon(t, tests::kOtherWorker);
    CHECK(wait_for(daemon.store.maintain(false)).expired == 0);
    CHECK(wait_for(daemon.store.claim_probes(
                       WorkerId(tests::kOtherWorker),
                       10s,
                       {{.tool = "ticket", .limit = 10, .timeout = 5s}}
                   ))
              .empty());
    planner.run("ROLLBACK");
    CHECK(wait_for(daemon.store.maintain(false)).expired == 0);
    CHECK(t.state("expiring") == "unknown 1000 0");
    CHECK(
        wait_for(
            daemon.store.claim_probes(
                WorkerId(tests::kOtherWorker), 10s, {{.tool = "ticket", .limit = 10, .timeout = 5s}}
            )
        )
            .size() == 2
    );
    CHECK(daemon.changes == 1);
}

TEST_CASE("an operation that a planner holds is waited for, and leases with it") {
    StoreFixture t;
    t.lease();
    t.insert("op", 2);
    come_back(t);
    auto planner = t.database.connect();
    planner.run("BEGIN; SELECT outbox.cancel('op1')");
    Daemon daemon(t, tests::kWorker);
    t.insert("new", 1);
    CHECK(daemon.lease().empty());
    CHECK(t.state("op2") == "pending 0 0");
    planner.run("ROLLBACK");
    CHECK(daemon.lease().empty());
    CHECK(t.state("op1") == "unknown 1000 0");
    CHECK(t.state("op2") == "unknown 1000 0");
}

TEST_CASE("the statements that lease and beat tell both clocks") {
    StoreFixture t;
    t.insert("op", 1);
    std::vector<outbox::ClockSample> samples;
    t.store.on_clock = [&](const outbox::ClockSample& sample) { samples.push_back(sample); };
    wait_for(t.store.heartbeat({WorkerId(tests::kWorker), "test", "1", {}}));
    CHECK(t.lease().size() == 1);
    CHECK(t.lease().empty());
    t.outlive_lease("op1");
    wait_for(t.store.maintain(false));
    CHECK(claim(t).size() == 1);
    REQUIRE(samples.size() == 3);
    for (const auto& sample : samples) {
        CHECK(sample.before < sample.after);
        CHECK(sample.after - sample.before < 5s);
        CHECK(sample.database - samples[0].database < 60s);
    }
}

TEST_CASE("a compensation that waited is looked for first, and still waits for its original") {
    StoreFixture t;
    auto undo = tests::policy("ticket:undo");
    undo.compensation = true;
    wait_for(t.store.publish_tools(WorkerId(tests::kWorker), {undo}));
    t.sql.run("UPDATE outbox.tool SET compensations = '{undo}' WHERE tool = 'ticket'");
    REQUIRE(t.complete(tests::unknown(t.lease_one("op-1"))) == Fate::applied);
    const std::string id = "op-1:compensate:undo";
    CHECK(t.sql.text("SELECT status FROM outbox.compensate('op-1')") == "scheduled");
    come_back(t);

    // On the lost end it may have been armed and attempted.
    Daemon daemon(t, tests::kOtherWorker);
    CHECK(daemon.lease("ticket:undo").empty());
    CHECK(t.state(id) == "unknown 1000 0");
    CHECK(t.events(id) == "timeline");
    const auto look = [&](const std::string& tool) {
        return wait_for(daemon.store.claim_probes(
            WorkerId(tests::kOtherWorker), 10s, {{.tool = tool, .limit = 10, .timeout = 5s}}
        ));
    };
    const auto probe = look("ticket:undo").at(0);
    CHECK(probe.intent.compensates == outbox::OperationId("op-1"));
    CHECK(probe.intent.original_result.is_null());
    REQUIRE(wait_for(daemon.store.complete({believed_absent(probe)})).at(0) == Fate::applied);
    // Its time has come, but not its original's.
    for (int i = 0; i < 2; ++i) CHECK(wait_for(daemon.store.maintain(false)).promoted == 0);
    CHECK(t.state(id) == "scheduled 1002 0");
    CHECK(daemon.lease("ticket:undo").empty());

    auto found = believed_absent(look("ticket").at(0));
    found.to = Status::succeeded;
    found.due_in.reset();
    found.result = outbox::Json("T-1");
    REQUIRE(wait_for(daemon.store.complete({found})).at(0) == Fate::applied);
    CHECK(wait_for(daemon.store.maintain(false)).promoted == 1);
    const auto leased = daemon.lease("ticket:undo");
    REQUIRE(leased.size() == 1);
    CHECK(outbox::to_text(leased[0].intent.original_result) == "\"T-1\"");
}

TEST_CASE("no original is withdrawn while a timeline change is not settled") {
    StoreFixture t;
    t.lease();
    t.sql.run(
        "INSERT INTO outbox.tool (tool, effect, revision, compensations) "
        "VALUES ('u', 'write', '1', '{undo}')"
    );
    t.insert("op", 2, "u");
    t.sql.run(
        "UPDATE outbox.queue SET status = 'unknown', unknown_since = now(), due_at = now(); "
        "SELECT outbox.compensate('op1'); "
        "UPDATE outbox.queue SET status = 'scheduled', unknown_since = NULL, "
        "due_at = now() + '1 h' WHERE waits_for IS NULL"
    );
    come_back(t);
    // A planner holds another one, so the page cannot be made; this one is anybody's.
    auto other = t.database.connect();
    other.run(
        "BEGIN; SELECT 1 FROM outbox.queue q JOIN outbox.operation o USING (seq) "
        "WHERE operation_id = 'op2' FOR UPDATE OF q"
    );
    Daemon daemon(t, tests::kOtherWorker);
    CHECK(wait_for(daemon.store.maintain(false)).promoted == 0);
    CHECK(t.state("op1") == "scheduled 0 0");
    other.run("COMMIT");
    wait_for(daemon.store.maintain(false));
    CHECK(t.state("op1") == "unknown 1000 0");
    CHECK(t.state("op1:compensate:undo") == "unknown 1000 0");
}
