#include "tests/support/catch.hpp"
#include "tests/support/store_contract.hpp"

// compensate: when it may run, what it sees of its original, and when there is nothing to undo.
namespace tests {

using namespace outbox;
using namespace std::chrono_literals;

namespace {

const std::string kUndo = "op-1:compensate:undo";

std::vector<LeasedAttempt> lease_undo(StoreDriver& d) {
    return lease_from(d, "ticket:undo");
}

void of_a_success(StoreDriver& d) {
    REQUIRE(write(d, success(insert_and_lease(d, "op-1"), "T-1")) == Fate::applied);
    CHECK(d.compensate("op-1") == kUndo);
    CHECK(state(d, kUndo) == "pending 0 0");
    CHECK(d.compensate("op-1") == kUndo);
    CHECK(d.see(kUndo).events == "replayed");
    const auto leased = lease_undo(d).at(0);
    CHECK(leased.intent.id.value == kUndo);
    CHECK(leased.intent.compensates == OperationId("op-1"));
    CHECK(to_text(leased.intent.original_arguments) == "{}");
    CHECK(to_text(leased.intent.original_result) == "\"T-1\"");
    // … and the one who looks for it sees the same.
    REQUIRE(write(d, doubt(leased)) == Fate::applied);
    const auto claims = wait_for(d.store().claim_probes(
        WorkerId(kMe), 10s, {{.tool = "ticket:undo", .limit = 10, .timeout = 5s}}
    ));
    REQUIRE(claims.size() == 1);
    CHECK(claims[0].intent.compensates == OperationId("op-1"));
    CHECK(to_text(claims[0].intent.original_result) == "\"T-1\"");
    REQUIRE(write(d, verdict(claims[0], Status::succeeded)) == Fate::applied);
    CHECK(d.compensate("op-1") == kUndo);
    CHECK(state(d, "op-1") == "succeeded 2 1");
}

void instead(StoreDriver& d) {
    d.insert({.id = "op-1"});
    d.insert({.id = "op-2", .run_in = 1h});
    for (const std::string id : {"op-1", "op-2"}) {
        CHECK(d.compensate(id) == id);
        CHECK(state(d, id) == "cancelled 1 0");
        CHECK(d.see(id).events == "cancelled");
        CHECK(d.compensate(id) == id);
    }
    CHECK(lease_from(d).empty());
    CHECK(lease_undo(d).empty());
}

void nothing_to_undo(StoreDriver& d) {
    REQUIRE(write(d, failure(insert_and_lease(d, "op-1"))) == Fate::applied);
    CHECK(d.compensate("op-1") == "op-1");
    CHECK(state(d, "op-1") == "failed 2 1");
    d.pass(1h);
    maintain(d);
    CHECK(lease_undo(d).empty());
}

void waits_for_success(StoreDriver& d) {
    const auto attempt = insert_and_lease(d, "op-1");
    CHECK(d.compensate("op-1") == kUndo);
    CHECK(state(d, kUndo) == "scheduled 0 0");
    d.pass(1s);
    CHECK(maintain(d).promoted == 0);
    REQUIRE(write(d, doubt(attempt)) == Fate::applied);
    d.pass(24h);
    CHECK(maintain(d).promoted == 0);
    CHECK(state(d, kUndo) == "scheduled 0 0");
    CHECK(lease_undo(d).empty());
    auto found = verdict(claim_from(d).at(0), Status::succeeded);
    found.result = Json("T-1");
    REQUIRE(write(d, found) == Fate::applied);
    CHECK(lease_undo(d).empty());
    CHECK(maintain(d).promoted == 1);
    CHECK(state(d, kUndo) == "pending 1 0");
    CHECK(maintain(d).promoted == 0);
    CHECK(to_text(lease_undo(d).at(0).intent.original_result) == "\"T-1\"");
}

void no_effect(StoreDriver& d) {
    const auto attempt = insert_and_lease(d, "op-1");
    d.compensate("op-1");
    REQUIRE(write(d, failure(attempt)) == Fate::applied);
    CHECK(maintain(d).promoted == 0);
    CHECK(state(d, kUndo) == "cancelled 1 0");
    CHECK(d.see(kUndo).error == "nothing_to_compensate");
    CHECK(d.see(kUndo).events == "cancelled");
    CHECK(d.compensate("op-1") == "op-1");
    // There was an effect after all: it is not undone by itself, but when it is asked for again.
    CHECK(late(d, success(attempt, "T-1")) == LateFate::flagged);
    maintain(d);
    CHECK(state(d, kUndo) == "cancelled 1 0");
    CHECK(d.compensate("op-1") == kUndo);
    CHECK(state(d, kUndo) == "pending 2 0");
    CHECK(d.see(kUndo).events == "cancelled retried");
    CHECK(lease_undo(d).at(0).epoch.value == 3);
}

void not_run_to_be_undone(StoreDriver& d) {
    const auto attempt = insert_and_lease(d, "op-1");
    d.compensate("op-1");
    REQUIRE(write(d, again(attempt, 5s)) == Fate::applied);
    d.pass(6s);
    CHECK(maintain(d).promoted == 0);  // due at the same moment
    CHECK(state(d, "op-1") == "cancelled 3 1");
    maintain(d);
    CHECK(state(d, kUndo) == "cancelled 1 0");
    CHECK(lease_from(d).empty());
}

void armed_again(StoreDriver& d) {
    const auto attempt = insert_and_lease(d, "op-1");
    d.compensate("op-1");
    REQUIRE(write(d, failure(attempt)) == Fate::applied);
    CHECK(d.retry("op-1"));
    CHECK(state(d, "op-1") == "pending 3 0");
    CHECK(state(d, kUndo) == "cancelled 1 0");
    maintain(d);
    const auto second = lease_from(d).at(0);
    // Asked for again, it waits again.
    CHECK(d.compensate("op-1") == kUndo);
    CHECK(state(d, kUndo) == "scheduled 2 0");
    REQUIRE(write(d, success(second, "T-1")) == Fate::applied);
    CHECK(maintain(d).promoted == 1);
    const auto undo = lease_undo(d).at(0);
    REQUIRE(write(d, failure(undo)) == Fate::applied);
    CHECK(d.compensate("op-1") == kUndo);  // a replay
    CHECK(d.retry(kUndo));
    CHECK(lease_undo(d).size() == 1);
}

void cancelled_by_somebody(StoreDriver& d) {
    const auto attempt = insert_and_lease(d, "op-1");
    d.compensate("op-1");
    CHECK(d.cancel(kUndo));
    REQUIRE(write(d, success(attempt, "T-1")) == Fate::applied);
    maintain(d);
    CHECK(d.compensate("op-1") == kUndo);
    CHECK(state(d, kUndo) == "cancelled 1 0");
    CHECK(lease_undo(d).empty());
}

}  // namespace

std::vector<StoreCase> compensation_contract() {
    return {
        {"a compensation of a success runs once, with the original at hand", of_a_success},
        {"what was not attempted is cancelled instead", instead},
        {"a failed operation leaves nothing to undo", nothing_to_undo},
        {"a compensation waits until its original has succeeded", waits_for_success},
        {"a compensation ends with an original without effect", no_effect},
        {"an original does not run only to be undone", not_run_to_be_undone},
        {"an earlier wish does not undo what is armed again", armed_again},
        {"a compensation that somebody cancelled stays cancelled", cancelled_by_somebody},
    };
}

}  // namespace tests
