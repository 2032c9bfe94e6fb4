#include "tests/support/catch.hpp"
#include "tests/support/store_contract.hpp"

// claim_probes, maintain, heartbeat, retire, key_settings, sample.
namespace tests {

using namespace outbox;
using namespace std::chrono_literals;

namespace {

void beat(StoreDriver& d, const std::string& worker) {
    wait_for(d.store().heartbeat({WorkerId(worker), "test", "1", {"ticket"}}));
}

void expiry(StoreDriver& d) {
    insert_and_lease(d, "write");
    insert_and_lease(d, "read", "look");
    d.pass(29s);
    CHECK(maintain(d).lease_expired == 0);
    insert_and_lease(d, "fresh");
    d.pass(2s);
    CHECK(maintain(d).lease_expired == 2);
    CHECK(state(d, "write") == "unknown 2 1");
    CHECK(d.see("write").ambiguous);
    CHECK(d.see("write").error == "lease_expired");
    CHECK(d.see("write").events == "lease_expired");
    CHECK(state(d, "read") == "pending 3 1");  // expiry, then promotion, in one pass
    CHECK_FALSE(d.see("read").ambiguous);
    CHECK(state(d, "fresh") == "attempting 1 1");
    const auto claim = claim_from(d).at(0);
    // Waiting counts from the attempt's own deadline, not from the lease's end.
    CHECK(claim.probe_started_at - claim.deadline_at >= 10s);
}

void stale(StoreDriver& d) {
    beat(d, kMe);
    beat(d, kOther);
    d.insert({.id = "op-1"});
    d.insert({.id = "op-2"});
    lease_from(d, "ticket", 1, kMe);
    lease_from(d, "ticket", 1, kOther);
    d.pass(14s);
    CHECK(maintain(d, true).lease_expired == 0);
    beat(d, kOther);
    d.pass(2s);
    CHECK(maintain(d, false).lease_expired == 0);
    CHECK(maintain(d, true).lease_expired == 1);
    CHECK(state(d, "op-1") == "unknown 2 1");
    CHECK(state(d, "op-2") == "attempting 1 1");
    // Judged once; a heartbeat brings it back, a graceful stop takes it out.
    CHECK(maintain(d, true).lease_expired == 0);
    beat(d, kMe);
    d.insert({.id = "op-3"});
    lease_from(d, "ticket", 1, kMe);
    wait_for(d.store().retire(WorkerId(kMe)));
    beat(d, kOther);
    d.pass(16s);
    beat(d, kOther);
    CHECK(maintain(d, true).lease_expired == 1);  // op-2, whose own lease ran out
    CHECK(state(d, "op-3") == "attempting 1 1");
    d.pass(15s);
    CHECK(maintain(d, false).lease_expired == 1);
}

// Declared dead long before its attempt's own deadline: until then it may still send.
void stale_and_waited_for(StoreDriver& d) {
    beat(d, kMe);
    const auto attempt = insert_and_lease(d, "op-1");
    d.pass(16s);
    beat(d, kOther);
    REQUIRE(maintain(d, true).lease_expired == 1);
    const auto claim = claim_from(d, 1, kOther).at(0);
    // As long after its start as ever: a driver's clock is moved by moving the rows.
    CHECK(
        claim.deadline_at - claim.first_attempt_at == attempt.deadline_at - attempt.first_attempt_at
    );
    CHECK(claim.unknown_since <= claim.probe_started_at);
}

void promotion(StoreDriver& d) {
    d.insert({.id = "soon", .run_in = 5s});
    d.insert({.id = "late", .run_in = 1h});
    d.insert({.id = "unserved", .tool = "nobody", .run_in = 5s});
    CHECK(maintain(d).promoted == 0);
    d.pass(6s);
    CHECK(maintain(d).promoted == 1);
    CHECK(state(d, "soon") == "pending 1 0");
    CHECK(state(d, "late") == "scheduled 0 0");
    CHECK(state(d, "unserved") == "scheduled 0 0");  // not in the catalogue
}

void expires_at(StoreDriver& d) {
    d.pause("ticket", true);
    d.insert({.id = "pending", .expires_in = 5s});
    d.insert({.id = "scheduled", .tool = "nobody", .run_in = 1h, .expires_in = 5s});
    d.insert({.id = "both", .tool = "mail", .run_in = 5s, .expires_in = 5s});
    d.insert({.id = "attempted", .tool = "look", .expires_in = 5s});
    REQUIRE(lease_from(d, "look").size() == 1);
    d.insert({.id = "new", .expires_in = 1h});
    d.pass(6s);
    CHECK(maintain(d).expired == 3);
    for (const std::string id : {"pending", "scheduled", "both"}) {
        CHECK(state(d, id) == "failed 1 0");
        CHECK(d.see(id).error == "expired");
        CHECK(d.see(id).events == "failed");
    }
    CHECK(state(d, "attempted") == "attempting 1 1");
    CHECK(state(d, "new") == "pending 0 0");
}

void claims(StoreDriver& d) {
    const auto attempt = insert_and_lease(d, "op-1");
    REQUIRE(write(d, doubt(attempt)) == Fate::applied);
    CHECK(claim_from(d, 0).empty());
    const auto first = claim_from(d).at(0);
    CHECK(first.epoch.value == 3);
    CHECK(first.attempt_epoch.value == 1);
    CHECK(first.attempts == 1);
    CHECK(first.request_hash == 7);
    CHECK(first.deadline_at == attempt.deadline_at);
    CHECK(first.first_attempt_at == attempt.first_attempt_at);
    CHECK(first.probes == 0);
    CHECK_FALSE(first.flagged);
    // One prober at a time, until its claim has run out.
    CHECK(claim_from(d, 10, kOther).empty());
    d.pass(14s);
    CHECK(claim_from(d, 10, kOther).empty());
    d.pass(2s);
    const auto second = claim_from(d, 10, kOther).at(0);
    CHECK(second.epoch.value == 4);
    CHECK(write(d, verdict(first, Status::succeeded)) == Fate::fenced);
    CHECK(state(d, "op-1") == "unknown 4 1");
    // What it saw is there for the next one.
    auto seen = verdict(second, Status::unknown);
    seen.due_in = 5s;
    seen.probe = ProbeMemory{3, 1, second.probe_started_at};
    REQUIRE(write(d, seen) == Fate::applied);
    CHECK(claim_from(d).empty());
    d.pass(6s);
    const auto third = claim_from(d).at(0);
    CHECK(third.probes == 3);
    CHECK(third.absent_count == 1);
    CHECK(third.last_absent_at.has_value());
    CHECK(third.probe_started_at - third.unknown_since >= 22s);
}

// What was seen of one attempt says nothing of the next one; that one was in doubt does.
void begins_anew(StoreDriver& d) {
    REQUIRE(write(d, doubt(insert_and_lease(d, "op-1"))) == Fate::applied);
    const auto first = claim_from(d).at(0);
    auto seen = verdict(first, Status::unknown);
    seen.probe = ProbeMemory{3, 1, first.probe_started_at};
    REQUIRE(write(d, seen) == Fate::applied);
    const auto second = claim_from(d).at(0);
    REQUIRE(second.absent_count == 1);
    REQUIRE(write(d, verdict(second, Status::scheduled)) == Fate::applied);
    REQUIRE(maintain(d).promoted == 1);
    const auto attempt = lease_from(d).at(0);
    CHECK(attempt.ambiguous);
    REQUIRE(write(d, again(attempt, 0ms)) == Fate::applied);
    REQUIRE(maintain(d).promoted == 1);
    const auto another = lease_from(d).at(0);
    CHECK(another.ambiguous);
    REQUIRE(write(d, doubt(another)) == Fate::applied);
    const auto third = claim_from(d).at(0);
    CHECK(third.probes == 0);
    CHECK(third.absent_count == 0);
    CHECK_FALSE(third.last_absent_at.has_value());
}

void flagged(StoreDriver& d) {
    REQUIRE(write(d, doubt(insert_and_lease(d, "op-1"))) == Fate::applied);
    auto flag = verdict(claim_from(d).at(0), Status::unknown);
    flag.due_in.reset();
    flag.attention = AttentionReason::give_up;
    REQUIRE(write(d, flag) == Fate::applied);
    d.pass(24h);
    CHECK(claim_from(d).empty());
    CHECK(d.see("op-1").attention == "give_up");
    d.ask("op-1");
    const auto asked = claim_from(d).at(0);
    CHECK(asked.asked);
    CHECK(asked.flagged);
    auto still = verdict(asked, Status::unknown);
    still.due_in.reset();
    REQUIRE(write(d, still) == Fate::applied);
    CHECK(d.see("op-1").attention == "give_up");
    CHECK(claim_from(d).empty());
    d.ask("op-1");
    REQUIRE(write(d, verdict(claim_from(d).at(0), Status::scheduled)) == Fate::applied);
    CHECK(d.see("op-1").attention.empty());
}

// Where an absent was believed, two matches are two effects: the claim says so.
void believed_before(StoreDriver& d) {
    REQUIRE(write(d, doubt(insert_and_lease(d, "op-1"))) == Fate::applied);
    auto first = claim_from(d).at(0);
    CHECK_FALSE(first.absent_believed);
    auto absent = verdict(first, Status::scheduled);
    absent.events.at(0).detail.set("believed", true);
    REQUIRE(write(d, absent) == Fate::applied);
    REQUIRE(maintain(d).promoted == 1);
    REQUIRE(write(d, doubt(lease_from(d).at(0))) == Fate::applied);
    CHECK(claim_from(d).at(0).absent_believed);
    // A person's verdict, or one that was not believed, is none.
    REQUIRE(write(d, doubt(insert_and_lease(d, "op-2"))) == Fate::applied);
    REQUIRE(write(d, verdict(claim_from(d).at(0), Status::scheduled)) == Fate::applied);
    REQUIRE(maintain(d).promoted == 1);
    REQUIRE(write(d, doubt(lease_from(d).at(0))) == Fate::applied);
    CHECK_FALSE(claim_from(d).at(0).absent_believed);
}

// What an attempt can be asked about by: kept beside it, whoever has the operation by then.
void handles(StoreDriver& d) {
    const auto attempt = insert_and_lease(d, "op-1");
    const OperationId id("op-1");
    CHECK_FALSE(wait_for(d.store().find_handle(id, attempt.epoch)).has_value());
    wait_for(d.store().keep_handle(id, attempt.epoch, "task-1"));
    wait_for(d.store().keep_handle(id, attempt.epoch, "task 2 {ä}"));
    CHECK(wait_for(d.store().find_handle(id, attempt.epoch)) == "task 2 {ä}");
    REQUIRE(write(d, doubt(attempt)) == Fate::applied);
    const auto claim = claim_from(d).at(0);
    CHECK(wait_for(d.store().find_handle(id, claim.attempt_epoch)) == "task 2 {ä}");
    // Too late to write anything, and worth all the more.
    wait_for(d.store().keep_handle(id, attempt.epoch, "task-3"));
    CHECK(wait_for(d.store().find_handle(id, claim.attempt_epoch)) == "task-3");
    CHECK_FALSE(wait_for(d.store().find_handle(id, claim.epoch)).has_value());
    CHECK_FALSE(wait_for(d.store().find_handle(OperationId("op-2"), attempt.epoch)).has_value());
}

void catalogue(StoreDriver& d) {
    auto changed = contract_policy("ticket");
    changed.request_hash = 8;
    changed.key.prefix = "p-";
    wait_for(d.store().publish_tools(WorkerId(kOther), {changed}));
    CHECK(wait_for(d.store().key_settings("ticket", 7)).value().prefix.empty());
    CHECK(wait_for(d.store().key_settings("ticket", 8)).value().prefix == "p-");
    CHECK_FALSE(wait_for(d.store().key_settings("ticket", 9)).has_value());
    for (const std::string id : {"1", "2", "3"}) d.insert({.id = id});
    lease_from(d, "ticket", 1);
    d.pass(10s);
    auto samples = wait_for(d.store().sample());
    REQUIRE(samples.size() == 2);
    for (const auto& one : samples) {
        CHECK(one.tool == "ticket");
        CHECK(one.count == (one.status == Status::pending ? 2 : 1));
        CHECK(one.oldest_seconds >= 10);
    }
}

}  // namespace

std::vector<StoreCase> maintenance_contract() {
    return {
        {"a lease that ran out: unknown for a write, again for a read", expiry},
        {"a worker without a heartbeat is judged, once", stale},
        {"a worker without a heartbeat is judged, and its attempt waited for", stale_and_waited_for
        },
        {"what is due becomes pending, for every tool of the catalogue", promotion},
        {"expires_at ends what was not attempted", expires_at},
        {"a probe is claimed by one prober at a time", claims},
        {"an attempt anew begins the count of absents again, and knows of the doubt", begins_anew},
        {"a flagged operation is probed only when a person asks", flagged},
        {"a claim knows whether an absent was believed before", believed_before},
        {"what an attempt can be asked about by is kept with it", handles},
        {"key settings of every request, samples of what is open", catalogue},
    };
}

}  // namespace tests
