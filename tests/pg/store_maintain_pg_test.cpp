#include <set>
#include <thread>

#include "tests/support/catch.hpp"
#include "tests/support/store_fixture.hpp"

using namespace std::chrono_literals;
using outbox::ClaimedProbe;
using outbox::Fate;
using outbox::Json;
using outbox::Status;
using outbox::Transition;
using outbox::WorkerId;
using tests::Rows;
using tests::StoreFixture;
using tests::wait_for;

namespace {

std::vector<ClaimedProbe> claim(
    StoreFixture& t, int limit = 10, const std::string& worker = tests::kWorker
) {
    return wait_for(t.store.claim_probes(
        WorkerId(worker), 10s, {{.tool = "ticket", .limit = limit, .timeout = 5s}}
    ));
}

Transition verdict(const ClaimedProbe& probe, Status to) {
    Transition transition;
    transition.writer = Transition::Writer::probe;
    transition.seq = probe.intent.seq;
    transition.id = probe.intent.id;
    transition.epoch = probe.epoch;
    transition.to = to;
    transition.events.push_back({outbox::EventKind::probe, Json::Object{}});
    return transition;
}

void beat(StoreFixture& t, const std::string& worker) {
    wait_for(t.store.heartbeat({WorkerId(worker), "test", "1", {"ticket"}}));
}

}  // namespace

TEST_CASE("an expired lease is unknown for a write and tried again for a read") {
    StoreFixture t;
    auto write = t.lease_one("op-1");
    auto read = t.lease_one("op-2", "look");
    t.lease_one("op-3");
    t.outlive_lease("op-1");
    t.outlive_lease("op-2");
    auto report = wait_for(t.store.maintain(false));
    CHECK(report.lease_expired == 2);
    CHECK_FALSE(report.more);
    CHECK(t.state("op-1") == "unknown 2 1");
    CHECK(
        t.queue(
            "op-1", "ambiguous AND due_at <= clock_timestamp() AND unknown_since IS NOT NULL"
        ) == "true"
    );
    CHECK(t.queue("op-1", "deadline_at > now()") == "true");  // the hard end is still the attempt's
    // Promotion comes after expiry in the same pass, so the read may already be pending.
    CHECK(t.state("op-2") == "pending 3 1");
    CHECK(t.queue("op-2", "ambiguous OR unknown_since IS NOT NULL") == "false");
    CHECK(t.state("op-3") == "attempting 1 1");
    CHECK(t.events("op-1") == "lease_expired");
    CHECK(t.events("op-2") == "lease_expired");
}

TEST_CASE("a worker without a heartbeat is judged, by those who may judge") {
    StoreFixture t;
    beat(t, tests::kWorker);
    beat(t, tests::kOtherWorker);
    t.insert("op-", 3);
    t.lease();
    CHECK(wait_for(t.store.maintain(true)).lease_expired == 0);
    t.sql.run(
        "UPDATE outbox.worker SET heartbeat_at = now() - interval '16 seconds' "
        "WHERE worker = '" +
        tests::kWorker + "'"
    );
    CHECK(wait_for(t.store.maintain(false)).lease_expired == 0);
    CHECK(wait_for(t.store.maintain(true)).lease_expired == 3);
    CHECK(t.state("op-1") == "unknown 2 1");
    // Nothing left of it: not looked at again, until it is back.
    CHECK(wait_for(t.store.maintain(true)).lease_expired == 0);
    CHECK(
        t.sql.text(
            "SELECT stopped_at IS NOT NULL FROM outbox.worker WHERE worker = '" + tests::kWorker +
            "'"
        ) == "t"
    );
    beat(t, tests::kWorker);
    CHECK(
        t.sql.text(
            "SELECT stopped_at IS NULL AND heartbeat_at > now() - interval '5 s' "
            "FROM outbox.worker WHERE worker = '" +
            tests::kWorker + "'"
        ) == "t"
    );
    wait_for(t.store.retire(WorkerId(tests::kWorker)));
    CHECK(t.sql.text("SELECT count(*) FROM outbox.worker WHERE stopped_at IS NULL") == "1");
    CHECK(
        t.sql.query("SELECT name, version, tools FROM outbox.worker LIMIT 1") ==
        Rows{{"test", "1", "{ticket}"}}
    );
}

TEST_CASE("what is due becomes pending, in pages, whoever serves the tool") {
    StoreFixture t;
    t.sql.run(
        "INSERT INTO outbox.operation (operation_id, tool, run_at) "
        "SELECT 'd' || n, CASE n % 2 WHEN 0 THEN 'mail' ELSE 'ticket' END, now() + interval '1 "
        "hour' "
        "FROM generate_series(1, 1200) n; "
        "INSERT INTO outbox.operation (operation_id, tool, run_at) "
        "VALUES ('later', 'mail', now() + interval '1 hour'); "
        "UPDATE outbox.queue SET due_at = now() - interval '1 minute' WHERE seq <= 1200"
    );
    auto first = wait_for(t.store.maintain(false));
    CHECK(first.promoted == 1000);
    CHECK(first.more);
    auto second = wait_for(t.store.maintain(false));
    CHECK(second.promoted == 200);
    CHECK_FALSE(second.more);
    CHECK(t.state("d1") == "pending 1 0");
    CHECK(t.state("later") == "scheduled 0 0");
    CHECK(t.lease("ticket", 1000).size() == 600);
}

TEST_CASE("expires_at ends what was not attempted, paused or not") {
    StoreFixture t;
    t.sql.run(
        "UPDATE outbox.tool SET paused_at = now() WHERE tool = 'ticket'; "
        "INSERT INTO outbox.operation (operation_id, tool, expires_at) VALUES "
        "('old', 'ticket', now() - interval '1 second'), ('new', 'ticket', now() + interval '1 "
        "hour'); "
        "INSERT INTO outbox.operation (operation_id, tool, run_at, expires_at) VALUES "
        "('both', 'nobody', now() + interval '1 hour', now() - interval '1 second')"
    );
    CHECK(wait_for(t.store.maintain(false)).expired == 2);
    CHECK(t.state("old") == "failed 1 0");
    CHECK(t.state("both") == "failed 1 0");
    CHECK(t.state("new") == "pending 0 0");
    CHECK(t.outcome("old", "c.error ->> 'code'") == "expired");
    CHECK(t.events("old") == "failed");
}

TEST_CASE("maintenance skips what others hold") {
    StoreFixture t;
    t.lease_one("op-1");
    t.lease_one("op-2");
    t.outlive_lease("op-1");
    t.outlive_lease("op-2");
    auto other = t.database.connect();
    other.run("BEGIN; SELECT FROM outbox.queue WHERE seq = 1 FOR UPDATE");
    CHECK(wait_for(t.store.maintain(false)).lease_expired == 1);
    other.run("ROLLBACK");
    CHECK(wait_for(t.store.maintain(false)).lease_expired == 1);
}

TEST_CASE("a probe is claimed by one prober, with all it needs to judge") {
    StoreFixture t;
    auto attempt = t.lease_one("op-1");
    REQUIRE(t.complete(tests::unknown(attempt)) == Fate::applied);
    auto claims = claim(t);
    REQUIRE(claims.size() == 1);
    const auto probe = claims[0];
    CHECK(probe.intent.id.value == "op-1");
    CHECK(probe.epoch.value == 3);
    CHECK(probe.attempt_epoch.value == 1);
    CHECK(probe.attempts == 1);
    CHECK(probe.request_hash == 7);
    CHECK(probe.deadline_at == attempt.deadline_at);
    CHECK(probe.first_attempt_at == attempt.first_attempt_at);
    CHECK(probe.probe_started_at >= probe.unknown_since);
    CHECK(probe.probes == 0);
    CHECK(probe.absent_count == 0);
    CHECK_FALSE(probe.asked);
    CHECK_FALSE(probe.flagged);
    CHECK(claim(t, 10, tests::kOtherWorker).empty());
    CHECK(t.queue("op-1", "due_at - now() BETWEEN interval '10 s' AND interval '15 s'") == "true");

    // Inconclusive: the next one knows what this one saw.
    auto again = verdict(probe, Status::unknown);
    again.due_in = 0ms;
    again.probe = outbox::ProbeMemory{3, 1, probe.probe_started_at};
    REQUIRE(t.complete(again) == Fate::applied);
    claims = claim(t);
    REQUIRE(claims.size() == 1);
    CHECK(claims[0].probes == 3);
    CHECK(claims[0].absent_count == 1);
    CHECK(claims[0].last_absent_at == probe.probe_started_at);
    CHECK(claims[0].unknown_since == probe.unknown_since);

    // The first claim's verdict is stale now.
    CHECK(t.complete(verdict(probe, Status::succeeded)) == Fate::fenced);

    // Flagged: not probed by itself; a person may ask, and the flag stays.
    auto flag = verdict(claims[0], Status::unknown);
    flag.attention = outbox::AttentionReason::give_up;
    REQUIRE(t.complete(flag) == Fate::applied);
    CHECK(claim(t).empty());
    CHECK(t.queue("op-1", "due_at::text || ' ' || attention") == "infinity give_up");
    t.sql.run("UPDATE outbox.queue SET due_at = now(), asked = true");
    claims = claim(t);
    REQUIRE(claims.size() == 1);
    CHECK(claims[0].asked);
    CHECK(claims[0].flagged);
    auto still = verdict(claims[0], Status::unknown);
    still.probe = outbox::ProbeMemory{4, 0, std::nullopt};
    REQUIRE(t.complete(still) == Fate::applied);
    CHECK(
        t.queue("op-1", "due_at::text || ' ' || attention || ' ' || asked") ==
        "infinity give_up false"
    );
}

TEST_CASE("found settles, believed absence schedules the next attempt under the same request") {
    StoreFixture t;
    REQUIRE(t.complete(tests::unknown(t.lease_one("op-1"))) == Fate::applied);
    auto absent = verdict(claim(t).at(0), Status::scheduled);
    absent.due_in = 0ms;
    REQUIRE(t.complete(absent) == Fate::applied);
    CHECK(t.queue("op-1", "unknown_since IS NULL AND attention IS NULL") == "true");
    wait_for(t.store.maintain(false));
    auto leased = t.lease();
    REQUIRE(leased.size() == 1);
    CHECK(leased[0].attempts == 2);
    CHECK(leased[0].ambiguous);
    CHECK(leased[0].first_attempt_at < leased[0].leased_at);
    CHECK_FALSE(leased[0].eligible_since.has_value());
    REQUIRE(t.complete(tests::unknown(leased[0])) == Fate::applied);
    auto found = verdict(claim(t).at(0), Status::succeeded);
    found.result = "T-1";
    CHECK(t.complete(found) == Fate::applied);
    CHECK(
        t.outcome("op-1", "c.outcome || ' ' || attempts || ' ' || ambiguous") == "succeeded 2 true"
    );
    CHECK(t.events("op-1") == "unknown probe unknown probe");
}

TEST_CASE("two probers at once never claim the same operation") {
    StoreFixture t;
    t.insert("op-", 300);
    t.lease("ticket", 300);
    t.sql.run("UPDATE outbox.queue SET due_at = now() - interval '1 s'");
    REQUIRE(wait_for(t.store.maintain(false)).lease_expired == 300);
    auto drain = [&](const std::string& worker) {
        outbox::pg::PgStore store(t.database.dsn(), WorkerId(worker), nullptr);
        std::vector<std::int64_t> seqs;
        for (int empty = 0; empty < 3;) {
            auto claims = wait_for(store.claim_probes(
                WorkerId(worker), 60s, {{.tool = "ticket", .limit = 7, .timeout = 5s}}
            ));
            empty = claims.empty() ? empty + 1 : 0;
            for (const auto& probe : claims) {
                seqs.push_back(probe.intent.seq.value);
            }
        }
        return seqs;
    };
    std::vector<std::int64_t> theirs;
    std::thread other([&] { theirs = drain(tests::kOtherWorker); });
    auto ours = drain(tests::kWorker);
    other.join();
    std::set<std::int64_t> all(ours.begin(), ours.end());
    all.insert(theirs.begin(), theirs.end());
    CHECK(ours.size() + theirs.size() == 300);
    CHECK(all.size() == 300);
}

TEST_CASE("the catalogue: own tools are published, others' and pauses left alone") {
    StoreFixture t;
    auto tool = tests::policy("ticket");
    tool.description = "Open a \"ticket\"";
    tool.revision = "2";
    tool.dedup_fields = {"title", "a,b"};
    tool.compensations = {"close"};
    tool.needs_original = {"result"};
    tool.retry.max_attempts = 3;
    tool.timeout = 1500ms;
    tool.reconcile.settle = 7s;
    tool.arguments_schema = R"({"type": "object"})";
    tool.request_hash = 8;
    tool.key.encoding = outbox::KeySettings::Encoding::short_;
    tool.key.prefix = "p-";
    tool.key.max_length = 40;
    tool.key.window.reset();
    t.sql.run("UPDATE outbox.tool SET paused_at = now(), paused_reason = 'why'");
    wait_for(t.store.publish_tools(WorkerId(tests::kOtherWorker), {tool}));
    CHECK(
        t.sql.query("SELECT description, effect, revision, dedup_fields, compensations, "
                    "needs_original, max_attempts, "
                    "timeout, settle, arguments_schema, published_by, paused_reason "
                    "FROM outbox.tool WHERE tool = 'ticket'") ==
        Rows{
            {"Open a \"ticket\"",
             "write",
             "2",
             "{title,\"a,b\"}",
             "{close}",
             "{result}",
             "3",
             "00:00:01.5",
             "00:00:07",
             "{\"type\": \"object\"}",
             tests::kOtherWorker,
             "why"}
        }
    );
    CHECK(t.sql.text("SELECT count(*) FROM outbox.tool") == "3");

    auto old = wait_for(t.store.key_settings("ticket", 7));
    REQUIRE(old.has_value());
    CHECK(old->encoding == outbox::KeySettings::Encoding::hex);
    CHECK(old->window == 86'400'000ms);
    auto present = wait_for(t.store.key_settings("ticket", 8));
    REQUIRE(present.has_value());
    CHECK(present->encoding == outbox::KeySettings::Encoding::short_);
    CHECK(present->prefix == "p-");
    CHECK(present->max_length == 40);
    CHECK_FALSE(present->window.has_value());
    CHECK_FALSE(wait_for(t.store.key_settings("ticket", 9)).has_value());
    CHECK_FALSE(wait_for(t.store.key_settings("nobody", 7)).has_value());
}

TEST_CASE("samples count the open operations per tool and status") {
    StoreFixture t;
    t.insert("op-", 5);
    t.insert("m", 2, "mail");
    t.lease("ticket", 2);
    t.sql.run(
        "UPDATE outbox.operation SET created_at = now() - interval '1 minute' WHERE operation_id = "
        "'m1'"
    );
    auto samples = wait_for(t.store.sample());
    REQUIRE(samples.size() == 3);
    for (const auto& s : samples) {
        INFO(s.tool << " " << to_string(s.status));
        if (s.tool == "mail") {
            CHECK(s.count == 2);
            CHECK(s.oldest_seconds >= 60);
        } else {
            CHECK(s.count == (s.status == Status::pending ? 3 : 2));
            CHECK(s.oldest_seconds < 60);
        }
    }
}

TEST_CASE("a tool that another living daemon published otherwise is found; a sibling's is not") {
    StoreFixture t;
    beat(t, tests::kOtherWorker);
    wait_for(t.store.publish_tools(WorkerId(tests::kOtherWorker), {tests::policy("ticket")}));
    auto changed = tests::policy("ticket");
    const auto drifts = [&](const std::string& sibling) {
        return wait_for(t.store.find_drift({changed}, {WorkerId(sibling)}));
    };
    CHECK(drifts(tests::kWorker).empty());
    changed.revision = "2";
    const auto found = drifts(tests::kWorker);
    REQUIRE(found.size() == 1);
    CHECK(found[0].kind == outbox::Drift::revision);
    CHECK(found[0].worker == "test");
    CHECK(drifts(tests::kOtherWorker).empty());
    // Nobody is left who would run it so.
    t.sql.run("UPDATE outbox.worker SET heartbeat_at = now() - interval '16 seconds'");
    CHECK(drifts(tests::kWorker).empty());
}

TEST_CASE("a request once called a write stays one, whoever publishes it last") {
    StoreFixture t;
    const auto doubt = [&] {
        return t.sql.text("SELECT leaves_doubt FROM outbox.request WHERE tool = 'ticket'");
    };
    const auto publish = [&](outbox::Effect effect) {
        wait_for(t.store.publish_tools(WorkerId(tests::kWorker), {tests::policy("ticket", effect)})
        );
    };
    CHECK(doubt() == "t");
    publish(outbox::Effect::read);
    CHECK(doubt() == "t");
    // As a daemon older than the column left it.
    t.sql.run("UPDATE outbox.request SET leaves_doubt = NULL WHERE tool = 'ticket'");
    publish(outbox::Effect::read);
    CHECK(doubt() == "f");
    publish(outbox::Effect::write);
    CHECK(doubt() == "t");
}
