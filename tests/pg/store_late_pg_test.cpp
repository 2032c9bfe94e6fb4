#include "sql/queries.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/store_fixture.hpp"

using namespace std::chrono_literals;
using outbox::Fate;
using outbox::Json;
using outbox::LateFate;
using outbox::LeasedAttempt;
using outbox::Status;
using outbox::Transition;
using tests::StoreFixture;
using tests::wait_for;

// The evidence matrix of contract/states.md: what a fenced attempt's answer does to whatever the
// operation has become meanwhile.
namespace {

LateFate late(StoreFixture& t, Transition transition) {
    return wait_for(t.store.record_late(std::move(transition)));
}

// Leased by a worker that then overslept its lease: unknown, and the attempt fenced.
LeasedAttempt overslept(
    StoreFixture& t, const std::string& id, const std::string& tool = "ticket"
) {
    auto attempt = t.lease_one(id, tool);
    t.outlive_lease(id);
    wait_for(t.store.maintain(false));
    return attempt;
}

outbox::ClaimedProbe claim(StoreFixture& t, const std::string& tool = "ticket") {
    auto claims = wait_for(t.store.claim_probes(
        outbox::WorkerId(tests::kWorker), 10s, {{.tool = tool, .limit = 10, .timeout = 5s}}
    ));
    REQUIRE(claims.size() == 1);
    return claims[0];
}

// A probe believed that nothing happened.
void settle(StoreFixture& t, const outbox::ClaimedProbe& probe, Status to) {
    Transition transition;
    transition.writer = Transition::Writer::probe;
    transition.seq = probe.intent.seq;
    transition.id = probe.intent.id;
    transition.epoch = probe.epoch;
    transition.to = to;
    transition.events.push_back({outbox::EventKind::probe, Json::Object{}});
    if (to == Status::scheduled) {
        transition.due_in = 0ms;
    } else {
        transition.error = outbox::Error{"attempts_used_up", "absent"};
    }
    REQUIRE(t.complete(transition) == Fate::applied);
}

}  // namespace

TEST_CASE("late effect: unknown is settled") {
    StoreFixture t;
    auto attempt = overslept(t, "op-1");
    REQUIRE(t.state("op-1") == "unknown 2 1");
    CHECK(late(t, tests::succeeded(attempt, "T-1")) == LateFate::settled);
    CHECK(t.state("op-1") == "succeeded 3 1");
    CHECK(t.outcome("op-1", "c.result #>> '{}'") == "T-1");
    CHECK(t.outcome("op-1", "attention") == "NULL");
    CHECK(t.events("op-1") == "lease_expired late_result");
    CHECK_THAT(t.detail("op-1", "late_result"), ContainsSubstring("\"attempt_epoch\": 1"));
    // The same answer again changes nothing.
    CHECK(late(t, tests::succeeded(attempt, "T-1")) == LateFate::stored);
    CHECK(t.state("op-1") == "succeeded 3 1");
}

TEST_CASE("late effect: a claimed probe does not hinder it, and comes too late itself") {
    StoreFixture t;
    auto attempt = overslept(t, "op-1");
    auto probe = claim(t);
    CHECK(late(t, tests::succeeded(attempt, "T-1")) == LateFate::settled);
    Transition verdict;
    verdict.writer = Transition::Writer::probe;
    verdict.seq = probe.intent.seq;
    verdict.id = probe.intent.id;
    verdict.epoch = probe.epoch;
    verdict.to = Status::scheduled;
    verdict.due_in = 0ms;
    CHECK(t.complete(verdict) == Fate::fenced);
    CHECK(t.state("op-1") == "succeeded 4 1");
}

TEST_CASE("late effect: what was declared without effect becomes succeeded and is flagged") {
    StoreFixture t;
    SECTION("scheduled") {
        auto attempt = overslept(t, "op-1");
        settle(t, claim(t), Status::scheduled);
        CHECK(late(t, tests::succeeded(attempt, "T-1")) == LateFate::flagged);
    }
    SECTION("pending") {
        auto attempt = overslept(t, "op-1");
        settle(t, claim(t), Status::scheduled);
        REQUIRE(wait_for(t.store.maintain(false)).promoted == 1);
        CHECK(late(t, tests::succeeded(attempt, "T-1")) == LateFate::flagged);
    }
    SECTION("failed") {
        auto attempt = overslept(t, "op-1");
        settle(t, claim(t), Status::failed);
        REQUIRE(t.state("op-1") == "failed 4 1");
        CHECK(late(t, tests::succeeded(attempt, "T-1")) == LateFate::flagged);
        CHECK(t.state("op-1") == "succeeded 5 1");
    }
    CHECK(
        t.outcome("op-1", "c.outcome || ' ' || attention || ' ' || (c.result #>> '{}')") ==
        "succeeded late_effect T-1"
    );
    CHECK(t.outcome("op-1", "c.error") == "NULL");
    CHECK_THAT(t.events("op-1"), ContainsSubstring("late_result"));
    CHECK(t.sql.text("SELECT count(*) FROM outbox.queue") == "0");
    CHECK(t.lease().empty());
}

TEST_CASE("late effect: a later attempt in flight can then only end succeeded") {
    StoreFixture t;
    auto first = overslept(t, "op-1");
    settle(t, claim(t), Status::scheduled);
    wait_for(t.store.maintain(false));
    auto second = t.lease();
    REQUIRE(second.size() == 1);
    REQUIRE(second[0].attempts == 2);
    CHECK(late(t, tests::succeeded(first, "T-1")) == LateFate::flagged);
    CHECK(t.state("op-1") == "attempting 6 2");  // its epoch is still the second attempt's

    SECTION("it had an effect of its own") {
        CHECK(t.complete(tests::succeeded(second[0], "T-2")) == Fate::duplicate);
        CHECK(t.outcome("op-1", "attention") == "duplicate_effect");
        CHECK(t.outcome("op-1", "c.result #>> '{}'") == "T-2");
        CHECK_THAT(t.detail("op-1", "late_result"), ContainsSubstring("T-1"));
    }
    SECTION("the provider recognised the key and answered the same") {
        CHECK(t.complete(tests::succeeded(second[0], "T-1")) == Fate::applied);
        CHECK(t.outcome("op-1", "attention") == "late_effect");
    }
    SECTION("refused") {
        CHECK(t.complete(tests::failed(second[0], "exists")) == Fate::applied);
        CHECK(t.outcome("op-1", "attention || ' ' || (c.result #>> '{}')") == "late_effect T-1");
    }
    SECTION("retry later") {
        CHECK(t.complete(tests::retried(second[0], 0ms)) == Fate::applied);
        CHECK(t.outcome("op-1", "attention || ' ' || (c.result #>> '{}')") == "late_effect T-1");
        CHECK(t.complete(tests::retried(second[0], 0ms)) == Fate::applied);
    }
    SECTION("unknown") {
        CHECK(t.complete(tests::unknown(second[0])) == Fate::applied);
        CHECK(t.outcome("op-1", "attention || ' ' || (c.result #>> '{}')") == "late_effect T-1");
    }
    CHECK(t.outcome("op-1", "c.outcome") == "succeeded");
    CHECK(t.outcome("op-1", "c.error") == "NULL");
    CHECK(t.sql.text("SELECT count(*) FROM outbox.queue") == "0");
}

TEST_CASE("late effect: the attempt in flight ends unknown in its turn, and its late answer counts"
) {
    StoreFixture t;
    auto first = overslept(t, "op-1");
    settle(t, claim(t), Status::scheduled);
    wait_for(t.store.maintain(false));
    auto second = t.lease();
    REQUIRE(second.size() == 1);
    REQUIRE(late(t, tests::succeeded(first, "T-1")) == LateFate::flagged);
    t.outlive_lease("op-1");
    wait_for(t.store.maintain(false));

    SECTION("another result is a second effect, and is said") {
        CHECK(late(t, tests::succeeded(second[0], "T-2")) == LateFate::duplicate);
        CHECK(
            t.outcome("op-1", "attention || ' ' || (c.result #>> '{}')") == "duplicate_effect T-1"
        );
    }
    SECTION("the same result is the provider's own replay") {
        CHECK(late(t, tests::succeeded(second[0], "T-1")) == LateFate::flagged);
        CHECK(t.outcome("op-1", "attention || ' ' || (c.result #>> '{}')") == "late_effect T-1");
    }
    CHECK(t.outcome("op-1", "c.outcome") == "succeeded");
}

TEST_CASE("late effect: already succeeded") {
    StoreFixture t;
    auto attempt = overslept(t, "op-1");
    REQUIRE(late(t, tests::succeeded(attempt, "T-1")) == LateFate::settled);
    CHECK(late(t, tests::succeeded(attempt, "T-1")) == LateFate::stored);
    CHECK(t.outcome("op-1", "attention") == "NULL");
    CHECK(late(t, tests::succeeded(attempt, "T-2")) == LateFate::duplicate);
    CHECK(t.outcome("op-1", "attention") == "duplicate_effect");
    CHECK(t.outcome("op-1", "c.result #>> '{}'") == "T-1");  // a success is never undone
    CHECK_THAT(t.detail("op-1", "late_result"), ContainsSubstring("T-2"));
}

TEST_CASE("late effect of a read is no alarm") {
    StoreFixture t;
    auto attempt = overslept(t, "op-1", "look");
    REQUIRE(t.state("op-1") == "pending 3 1");
    CHECK(late(t, tests::succeeded(attempt, "seen")) == LateFate::settled);
    CHECK(t.outcome("op-1", "attention") == "NULL");
    CHECK(t.state("op-1") == "succeeded 4 1");
}

TEST_CASE("late no-effect settles unknown only for the only unresolved attempt") {
    StoreFixture t;
    SECTION("refused: failed") {
        auto attempt = overslept(t, "op-1");
        CHECK(late(t, tests::failed(attempt, "refused")) == LateFate::settled);
        CHECK(t.state("op-1") == "failed 3 1");
        CHECK(t.outcome("op-1", "c.error ->> 'code'") == "refused");
    }
    SECTION("not sent: scheduled, the attempt given back, nothing ambiguous left") {
        auto attempt = overslept(t, "op-1");
        auto retry = tests::retried(attempt, 1s);
        retry.attempts_delta = -1;
        CHECK(late(t, retry) == LateFate::settled);
        CHECK(t.state("op-1") == "scheduled 3 0");
        CHECK(t.queue("op-1", "ambiguous OR unknown_since IS NOT NULL") == "false");
    }
    SECTION("an earlier attempt is in doubt, too") {
        auto first = overslept(t, "op-1");
        settle(t, claim(t), Status::scheduled);
        wait_for(t.store.maintain(false));
        auto second = t.lease();
        REQUIRE(second.size() == 1);
        t.outlive_lease("op-1");
        wait_for(t.store.maintain(false));
        CHECK(late(t, tests::failed(second[0], "exists")) == LateFate::stored);
        CHECK(t.state("op-1") == "unknown 7 2");
        // And the first one's is not the last attempt's.
        CHECK(late(t, tests::failed(first, "refused")) == LateFate::stored);
        CHECK(t.state("op-1") == "unknown 7 2");
    }
    SECTION("no longer unknown") {
        auto attempt = overslept(t, "op-1");
        settle(t, claim(t), Status::failed);
        CHECK(late(t, tests::failed(attempt, "refused")) == LateFate::stored);
        CHECK(t.outcome("op-1", "c.error ->> 'code'") == "attempts_used_up");
    }
    CHECK_THAT(t.events("op-1"), ContainsSubstring("late_result"));
}

TEST_CASE("late and without proof: an event, nothing else") {
    StoreFixture t;
    auto attempt = overslept(t, "op-1");
    CHECK(late(t, tests::unknown(attempt)) == LateFate::stored);
    CHECK(t.state("op-1") == "unknown 2 1");
    CHECK(t.events("op-1") == "lease_expired late_result");
}

TEST_CASE("late and unstorable: the effect still counts") {
    StoreFixture t;
    auto attempt = overslept(t, "op-1");
    Json result;
    result.set("text", std::string("a\0b", 3));
    CHECK(late(t, tests::succeeded(attempt, result)) == LateFate::settled);
    CHECK(t.state("op-1") == "succeeded 3 1");
    CHECK(t.outcome("op-1", "c.result ->> 'truncated'") == "true");
}

// A lease is committed between the snapshot of the statement and its lock: what counts is that an
// attempt is in flight now, not that the operation was pending a moment ago.
TEST_CASE("late effect: an operation that moves under the statement is judged as it is then") {
    StoreFixture t;
    const auto first = overslept(t, "op-1");
    settle(t, claim(t), Status::scheduled);
    REQUIRE(wait_for(t.store.maintain(false)).promoted == 1);
    auto leasing = t.database.connect();
    auto filing = t.database.connect();
    const std::string file = outbox::sql::record_late_result;
    const auto seq = std::to_string(first.intent.seq.value);
    const tests::Row evidence{
        seq,
        "op-1",
        "1",
        "effect",
        "\"T-1\"",
        std::nullopt,
        "succeeded",
        std::nullopt,
        "0",
        tests::kWorker
    };
    leasing.run(
        "BEGIN; UPDATE outbox.queue SET status = 'attempting', lease_epoch = lease_epoch + 1, "
        "attempt_epoch = lease_epoch + 1, attempts = attempts + 1, due_at = now() + '1 h', "
        "deadline_at = now() + '1 h', leased_by = '" +
        tests::kOtherWorker + "'"
    );
    filing.send(file, evidence);
    REQUIRE(filing.still_running(200ms));
    leasing.run("COMMIT");
    auto fate = filing.receive();
    if (fate.empty()) fate = filing.query(file, evidence);  // as the store does
    REQUIRE(fate.size() == 1);
    CHECK(fate[0][0].value() == "flagged");
    CHECK(t.state("op-1") == "attempting 6 2");
    CHECK(t.queue("op-1", "attention") == "late_effect");
}
