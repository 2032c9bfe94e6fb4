#include "tests/support/catch.hpp"
#include "tests/support/store_contract.hpp"

// lease, release_lost_leases, complete: who may write, and what the write leaves.
namespace tests {

using namespace outbox;
using namespace std::chrono_literals;

namespace {

std::string ids(const std::vector<LeasedAttempt>& leased) {
    std::string all;
    for (const auto& attempt : leased) all += (all.empty() ? "" : " ") + attempt.intent.id.value;
    return all;
}

void journals(StoreDriver& d) {
    const auto a = insert_and_lease(d, "op-1");
    CHECK(a.epoch.value == 1);
    CHECK(a.attempts == 1);
    CHECK_FALSE(a.ambiguous);
    CHECK(a.request_hash == 7);
    CHECK(a.deadline_at - a.leased_at == 20s);
    CHECK(a.first_attempt_at == a.leased_at);
    CHECK(a.eligible_since == a.intent.created_at);
    CHECK_FALSE(a.intent.expires_at.has_value());
    CHECK(state(d, "op-1") == "attempting 1 1");
    CHECK(d.see("op-1").events.empty());
    CHECK(lease_from(d).empty());
}

void limits(StoreDriver& d) {
    for (const std::string id : {"a1", "a2", "a3"}) d.insert({.id = id});
    d.insert({.id = "m1", .tool = "mail"});
    d.insert({.id = "first", .priority = -1});
    d.insert({.id = "last", .priority = 1});
    CHECK(ids(lease_from(d, "ticket", 0)).empty());
    auto leased = lease_from(d, "ticket", 2);
    CHECK(ids(leased) == "first a1");
    CHECK(state(d, "m1") == "pending 0 0");
    // Behind the mark, then from the head again.
    const LeaseMark mark{.priority = 0, .seq = leased[1].intent.seq.value + 1};
    CHECK(ids(lease_from(d, "ticket", 1, kMe, mark)) == "a3");
    CHECK(ids(lease_from(d)) == "a2 last");
    LeaseRequest both{.worker = WorkerId(kMe), .margin = 10s, .lanes = {}};
    d.insert({.id = "a4"});
    for (const std::string tool : {"ticket", "mail", "nobody"}) {
        both.lanes.push_back(
            {.tool = tool, .limit = 5, .timeout = 1s, .request_hash = 9, .after = {}}
        );
    }
    auto two = wait_for(d.store().lease(both));
    CHECK(ids(two) == "m1 a4");
    CHECK(two.at(0).request_hash == 9);
    CHECK(two.at(0).deadline_at - two.at(0).leased_at == 1s);
}

void not_leased(StoreDriver& d) {
    d.insert({.id = "op-1"});
    d.pause("ticket", true);
    CHECK(lease_from(d).empty());
    d.pause("ticket", false);
    d.insert({.id = "later", .run_in = 1h});
    d.insert({.id = "old", .expires_in = 1s});
    d.pass(2s);
    CHECK(ids(lease_from(d)) == "op-1");
    CHECK(state(d, "old") == "pending 0 0");
    CHECK(state(d, "later") == "scheduled 0 0");
}

LeasedAttempt lease_as(StoreDriver& d, std::int64_t request_hash) {
    LeaseRequest request{.worker = WorkerId(kMe), .margin = 10s, .lanes = {}};
    request.lanes.push_back(
        {.tool = "ticket", .limit = 1, .timeout = 20s, .request_hash = request_hash, .after = {}}
    );
    return wait_for(d.store().lease(request)).at(0);
}

LeasedAttempt lease_again_as(StoreDriver& d, const LeasedAttempt& before, std::int64_t hash) {
    REQUIRE(write(d, again(before, 0ms)) == Fate::applied);
    d.pass(1s);
    REQUIRE(maintain(d).promoted == 1);
    return lease_as(d, hash);
}

void keeps_the_first(StoreDriver& d) {
    const auto first = insert_and_lease(d, "op-1");
    const auto second = lease_again_as(d, first, 7);
    CHECK(second.request_hash == 7);
    CHECK(second.attempts == 2);
    CHECK(second.epoch.value == 4);
    CHECK(second.leased_at - second.first_attempt_at >= 1s);
    CHECK_FALSE(second.eligible_since.has_value());
}

// Daemons with the old configuration (7) beside daemons with a new one: 8 has the same key
// settings, 9 others. What a look-up is compared with is what was sent last, and matches no
// configuration where the key is still the first attempt's; the key always is.
void other_requests(StoreDriver& d) {
    auto policy = contract_policy("ticket");
    for (const std::int64_t hash : {8, 9}) {
        policy.request_hash = hash;
        policy.key.prefix = hash == 9 ? "p-" : "";
        wait_for(d.store().publish_tools(WorkerId(kOther), {policy}));
    }
    const auto prefix = [&](const LeasedAttempt& attempt) {
        return wait_for(d.store().key_settings("ticket", attempt.request_hash)).value().prefix;
    };
    const auto matches_none = [](const LeasedAttempt& attempt) {
        return attempt.request_hash != 0 && attempt.request_hash != 7 &&
               attempt.request_hash != 8 && attempt.request_hash != 9;
    };
    SECTION("no attempt in doubt, the same key") {
        const auto second = lease_again_as(d, insert_and_lease(d, "op-1"), 8);
        CHECK(second.request_hash == 8);
        REQUIRE(write(d, doubt(second)) == Fate::applied);
        CHECK(claim_from(d).at(0).request_hash == 8);
    }
    SECTION("no attempt in doubt, another key") {
        const auto second = lease_again_as(d, insert_and_lease(d, "op-1"), 9);
        CHECK(matches_none(second));
        CHECK(prefix(second).empty());
        const auto third = lease_again_as(d, second, 9);
        CHECK(matches_none(third));
        CHECK(prefix(third).empty());
        CHECK(lease_again_as(d, third, 8).request_hash == 8);
    }
    SECTION("an attempt was in doubt: a later absent says nothing of that one") {
        REQUIRE(write(d, doubt(insert_and_lease(d, "op-1"))) == Fate::applied);
        REQUIRE(write(d, verdict(claim_from(d).at(0), Status::scheduled)) == Fate::applied);
        d.pass(1s);
        REQUIRE(maintain(d).promoted == 1);
        const auto second = lease_as(d, 8);
        CHECK(matches_none(second));
        CHECK(prefix(second).empty());
        REQUIRE(write(d, doubt(second)) == Fate::applied);
        CHECK(claim_from(d).at(0).request_hash == second.request_hash);
    }
}

void lost_leases(StoreDriver& d) {
    for (const std::string id : {"op-1", "op-2", "op-3"}) d.insert({.id = id});
    const auto leased = lease_from(d, "ticket", 2);
    REQUIRE(lease_from(d, "ticket", 1, kOther).size() == 1);
    const auto release = [&] {
        return wait_for(d.store().release_lost_leases(WorkerId(kMe), {leased[1].intent.seq}));
    };
    CHECK(release() == 1);
    CHECK(state(d, "op-1") == "pending 2 0");
    CHECK(state(d, "op-2") == "attempting 1 1");
    CHECK(state(d, "op-3") == "attempting 1 1");
    CHECK(d.see("op-1").events == "released");
    CHECK(release() == 0);
    CHECK(write(d, success(leased[0], "T-1")) == Fate::fenced);
    CHECK(state(d, "op-1") == "pending 2 0");
}

// A late answer proved an effect: what was leased once more must not be given back and run.
void lost_but_proved(StoreDriver& d) {
    const auto first = overslept(d, "op-1");
    REQUIRE(write(d, verdict(claim_from(d).at(0), Status::scheduled)) == Fate::applied);
    REQUIRE(maintain(d).promoted == 1);
    REQUIRE(lease_from(d).size() == 1);
    REQUIRE(late(d, success(first, "T-1")) == LateFate::flagged);
    CHECK(wait_for(d.store().release_lost_leases(WorkerId(kMe), {})) == 0);
    CHECK(state(d, "op-1") == "attempting 6 2");
}

}  // namespace

std::vector<StoreCase> lease_contract() {
    return {
        {"a lease journals the attempt", journals},
        {"a lease keeps to limits, priorities, lanes and marks", limits},
        {"paused, expired and scheduled operations are not leased", not_leased},
        {"the first attempt's request and start stay", keeps_the_first},
        {"an attempt that asks otherwise than the first one says so", other_requests},
        {"lost leases go back, those in flight and others' do not", lost_leases},
        {"a lost lease with a proved effect does not go back", lost_but_proved},
    };
}

}  // namespace tests
