#include <algorithm>

#include "tests/support/catch.hpp"
#include "tests/support/store_contract.hpp"

// What an attempt sent decides what its lost end means: expiry, resends, changed configurations.
namespace tests {

using namespace outbox;
using namespace std::chrono_literals;

namespace {

void publish(StoreDriver& d, const ToolPolicy& policy) {
    wait_for(d.store().publish_tools(WorkerId(kOther), {policy}));
}

ToolPolicy own(std::int64_t request_hash) {
    auto policy = contract_policy("ticket");
    policy.own_transaction = true;
    policy.request_hash = request_hash;
    return policy;
}

void lease_under(StoreDriver& d, const std::string& id, const ToolPolicy& policy) {
    d.insert({.id = id, .tool = policy.name});
    LeaseRequest request{.worker = WorkerId(kMe), .margin = 10s, .lanes = {}};
    request.lanes.push_back(
        {.tool = policy.name,
         .limit = 1,
         .timeout = 20s,
         .request_hash = policy.request_hash,
         .after = {}}
    );
    REQUIRE(wait_for(d.store().lease(std::move(request))).size() == 1);
}

void expire(StoreDriver& d) {
    d.pass(31s);
    REQUIRE(maintain(d).lease_expired == 1);
}

// No commit, no effect: nothing is in doubt, so nobody is asked.
void own_transaction(StoreDriver& d) {
    publish(d, own(9));
    lease_under(d, "op-1", own(9));
    expire(d);
    CHECK(state(d, "op-1") == "pending 3 1");  // expiry, then promotion, in one pass
    CHECK_FALSE(d.see("op-1").ambiguous);
    CHECK(d.see("op-1").error == "lease_expired");
    CHECK(d.see("op-1").events == "lease_expired");
    CHECK(claim_from(d).empty());
}

// The name stands for something else by now; the attempt was what it was.
void changed_meanwhile(StoreDriver& d) {
    lease_under(d, "was-write", contract_policy("ticket"));  // hash 7
    publish(d, own(9));
    expire(d);
    CHECK(state(d, "was-write") == "unknown 2 1");
    CHECK(d.see("was-write").ambiguous);

    lease_under(d, "was-own", own(9));
    publish(d, contract_policy("ticket"));
    expire(d);
    CHECK(state(d, "was-own") == "pending 3 1");

    auto read = contract_policy("mail", Effect::read);
    read.request_hash = 11;
    lease_under(d, "was-mail", contract_policy("mail"));
    publish(d, read);
    expire(d);
    CHECK(state(d, "was-mail") == "unknown 2 1");

    lease_under(d, "was-read", contract_policy("look", Effect::read));
    auto write = contract_policy("look");
    write.request_hash = 12;
    publish(d, write);
    expire(d);
    CHECK(state(d, "was-read") == "pending 3 1");
}

// One and the same request, called a write by one file and a read by another.
void called_both(StoreDriver& d) {
    publish(d, contract_policy("mail", Effect::read));
    lease_under(d, "op-1", contract_policy("mail"));
    expire(d);
    CHECK(state(d, "op-1") == "unknown 2 1");
}

void never_published(StoreDriver& d) {
    auto policy = contract_policy("ticket");
    policy.request_hash = 99;
    lease_under(d, "op-1", policy);
    expire(d);
    CHECK(state(d, "op-1") == "unknown 2 1");
}

std::optional<ResentAttempt> resend(StoreDriver& d, const ClaimedProbe& claim) {
    return wait_for(d.store().journal_resend(WorkerId(kMe), claim.intent.seq, claim.epoch, 20s, 10s)
    );
}

// Journaled like an attempt: counted, with an epoch and a hard deadline of its own.
void resends(StoreDriver& d) {
    const auto attempt = insert_and_lease(d, "op-1");
    REQUIRE(write(d, doubt(attempt)) == Fate::applied);
    auto claim = claim_from(d).at(0);
    CHECK(claim.key_since == attempt.first_attempt_at);
    d.pass(1s);
    const auto sent = resend(d, claim);
    REQUIRE(sent.has_value());
    CHECK(sent->epoch.value == claim.epoch.value + 1);
    CHECK(sent->attempts == 2);
    CHECK(state(d, "op-1") == "unknown 4 2");
    CHECK(d.see("op-1").events == "unknown probe");
    CHECK_FALSE(resend(d, claim).has_value());  // once per claim
    // Nobody else asks before its lease has run out.
    d.pass(29s);
    CHECK(claim_from(d, 10, kOther).empty());
    d.pass(2s);
    const auto next = claim_from(d, 10, kOther).at(0);
    CHECK(next.attempts == 2);
    CHECK(next.attempt_epoch == sent->epoch);
    // A driver may pass time by moving what was noted into the past: differences are what counts.
    CHECK(next.first_attempt_at <= claim.first_attempt_at);
    CHECK(next.deadline_at - next.first_attempt_at > claim.deadline_at - claim.first_attempt_at);
    // The first prober's answer is too late for a verdict, not for evidence.
    claim.epoch = sent->epoch;
    auto found = verdict(claim, Status::succeeded);
    found.result = Json("made");
    found.evidence = Transition::Evidence::effect;
    CHECK(write(d, found) == Fate::fenced);
    CHECK(late(d, found) == LateFate::settled);
    CHECK(d.see("op-1").status == "succeeded");
    CHECK(d.see("op-1").result == R"("made")");
}

void resend_while_paused(StoreDriver& d) {
    REQUIRE(write(d, doubt(insert_and_lease(d, "op-1"))) == Fate::applied);
    d.pause("ticket", true);
    const auto claim = [&](bool resend) {
        const ReconcileLane lane{.tool = "ticket", .limit = 1, .timeout = 5s, .resend = resend};
        return wait_for(d.store().claim_probes(WorkerId(kMe), 10s, {lane}));
    };
    CHECK(claim(true).empty());
    d.pause("ticket", false);
    CHECK(claim(true).size() == 1);
    d.pause("ticket", true);
    d.pass(16s);
    CHECK(claim(false).size() == 1);  // a look-up goes on
}

std::vector<ToolDrift> drift(StoreDriver& d, const ToolPolicy& policy) {
    auto drifts = wait_for(d.store().find_drift({policy}, {WorkerId(kMe), WorkerId(kOther)}));
    std::erase_if(drifts, [](const auto& one) { return one.kind == Drift::revision; });
    return drifts;
}

void drifts(StoreDriver& d) {
    insert_and_lease(d, "one");
    REQUIRE(write(d, doubt(insert_and_lease(d, "two"))) == Fate::applied);
    insert_and_lease(d, "other", "mail");
    d.insert({.id = "fresh"});
    auto changed = contract_policy("ticket");
    CHECK(drift(d, changed).empty());
    changed.request_hash = 8;
    const auto found = drift(d, changed);
    REQUIRE(found.size() == 1);
    CHECK(found[0].tool == "ticket");
    CHECK(found[0].open == 2);
    CHECK(found[0].kind == Drift::request);
    changed.key.prefix = "p-";
    CHECK(drift(d, changed).at(0).kind == Drift::key);
}

}  // namespace

std::vector<StoreCase> request_contract() {
    return {
        {"a lease that ran out: again where effect and record are one transaction", own_transaction
        },
        {"a lease that ran out: what was sent decides, not what the tool is now", changed_meanwhile
        },
        {"a lease that ran out: a request that anybody calls a write is one", called_both},
        {"a lease that ran out: a request that nobody published may have had an effect",
         never_published},
        {"a resend is journaled like an attempt, and its late answer is evidence", resends},
        {"a resend waits while its tool is paused", resend_while_paused},
        {"open operations that were sent under another request are found", drifts},
    };
}

}  // namespace tests
