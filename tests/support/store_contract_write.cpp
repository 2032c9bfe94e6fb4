#include "tests/support/catch.hpp"
#include "tests/support/store_contract.hpp"

// complete: every end, the epoch of every writer, the lost acknowledgement.
namespace tests {

using namespace outbox;
using namespace std::chrono_literals;

namespace {

void every_end(StoreDriver& d) {
    for (const std::string id : {"1", "2", "3", "4", "5", "6", "7"}) d.insert({.id = id});
    const auto a = lease_from(d);
    REQUIRE(a.size() == 7);
    auto released = to(a[3], Status::pending);
    released.attempts_delta = -1;
    released.events.push_back({EventKind::released, Json::Object{}});
    auto given_back = again(a[4], 5s);
    given_back.attempts_delta = -1;
    auto flagged = doubt(a[6]);
    flagged.due_in.reset();
    flagged.attention = AttentionReason::manual;
    std::vector<Transition> batch{
        doubt(a[0]),
        success(a[1], "T-1"),
        again(a[2], 60s),
        released,
        given_back,
        failure(a[5]),
        flagged,
    };
    batch[4].epoch = Epoch(99);
    std::vector<Fate> fates(7, Fate::applied);
    fates[4] = Fate::fenced;
    // Twice, as after a lost acknowledgement: found, not written again.
    for (int i = 0; i < 2; ++i) {
        CHECK(wait_for(d.store().complete(batch)) == fates);
        CHECK(state(d, "1") == "unknown 2 1");
        CHECK(state(d, "2") == "succeeded 2 1");
        CHECK(state(d, "3") == "scheduled 2 1");
        CHECK(state(d, "4") == "pending 2 0");
        CHECK(state(d, "5") == "attempting 1 1");
        CHECK(state(d, "6") == "failed 2 1");
        CHECK(state(d, "7") == "unknown 2 1");
    }
    CHECK(d.see("1").ambiguous);
    CHECK(d.see("1").error == "timeout");
    CHECK(d.see("1").events == "unknown");
    CHECK(d.see("2").result == "\"T-1\"");
    CHECK(d.see("2").events.empty());
    CHECK(d.see("3").events == "retry");
    CHECK(d.see("6").error == "refused");
    CHECK(d.see("7").attention == "manual");
    CHECK(claim_from(d).size() == 1);  // what waits for a person is not probed
}

void fenced(StoreDriver& d) {
    const auto attempt = overslept(d, "op-1");
    CHECK(write(d, success(attempt, "x")) == Fate::fenced);
    CHECK(write(d, failure(attempt)) == Fate::fenced);
    CHECK(write(d, again(attempt, 1s)) == Fate::fenced);
    CHECK(write(d, to(attempt, Status::pending)) == Fate::fenced);
    CHECK(state(d, "op-1") == "unknown 2 1");
    CHECK(d.see("op-1").events == "lease_expired");
    // The right status under a wrong epoch is somebody else's work.
    const auto other = insert_and_lease(d, "op-2");
    REQUIRE(write(d, success(other, "T-1")) == Fate::applied);
    CHECK(write(d, success(other, "T-2")) == Fate::fenced);
    CHECK(write(d, failure(other)) == Fate::fenced);
    CHECK(d.see("op-2").result == "\"T-1\"");
}

// Another writer's end with the same status and result: after a lost acknowledgement only my own
// epoch + 1 is mine.
void not_mine(StoreDriver& d) {
    const auto settle = [&](const std::string& id, Status status) {
        auto verdict_of = verdict(claim_from(d).at(0), status);
        if (status == Status::succeeded) verdict_of.result = Json("T-1");
        REQUIRE(verdict_of.id.value == id);
        REQUIRE(write(d, verdict_of) == Fate::applied);
    };
    const auto failed = overslept(d, "op-1");
    settle("op-1", Status::failed);
    CHECK(write(d, failure(failed)) == Fate::fenced);
    const auto succeeded = overslept(d, "op-2");
    settle("op-2", Status::succeeded);
    CHECK(write(d, success(succeeded, "T-1")) == Fate::fenced);
    const auto scheduled = overslept(d, "op-3");
    settle("op-3", Status::scheduled);
    CHECK(write(d, again(scheduled, 0ms)) == Fate::fenced);
    CHECK(state(d, "op-3") == "scheduled 4 1");
}

void fenced_by_cancel(StoreDriver& d) {
    const auto attempt = insert_and_lease(d, "op-1");
    CHECK_FALSE(d.cancel("op-1"));
    REQUIRE(write(d, again(attempt, 0ms)) == Fate::applied);
    CHECK(d.cancel("op-1"));
    CHECK_FALSE(d.cancel("op-1"));
    CHECK(state(d, "op-1") == "cancelled 3 1");
    CHECK(write(d, success(attempt, "x")) == Fate::fenced);
    CHECK(state(d, "op-1") == "cancelled 3 1");
}

void armed_again(StoreDriver& d) {
    const auto first = insert_and_lease(d, "op-1");
    CHECK_FALSE(d.retry("op-1"));
    REQUIRE(write(d, failure(first)) == Fate::applied);
    CHECK(d.retry("op-1"));
    CHECK(state(d, "op-1") == "pending 3 0");  // the epoch goes on, the budget is fresh
    const auto second = lease_from(d).at(0);
    CHECK(second.epoch.value == 4);
    CHECK(second.attempts == 1);
    CHECK(write(d, success(first, "x")) == Fate::fenced);
    CHECK(write(d, success(second, "T-1")) == Fate::applied);
    CHECK_FALSE(d.retry("op-1"));
}

void accepted(StoreDriver& d) {
    auto t = to(insert_and_lease(d, "op-1"), Status::unknown);
    t.ambiguous = true;
    t.due_in = 0ms;
    t.result = Json("job-1");
    CHECK(write(d, t) == Fate::applied);
    CHECK(d.see("op-1").result == "\"job-1\"");
    auto pending = verdict(claim_from(d).at(0), Status::unknown);
    CHECK(write(d, pending) == Fate::applied);
    CHECK(d.see("op-1").result == "\"job-1\"");
    auto found = verdict(claim_from(d).at(0), Status::succeeded);
    found.result = Json("T-1");
    CHECK(write(d, found) == Fate::applied);
    CHECK(d.see("op-1").result == "\"T-1\"");
}

}  // namespace

std::vector<StoreCase> write_contract() {
    return {
        {"every kind of end, and once more after a lost acknowledgement", every_end},
        {"a stale epoch writes nothing, whatever it says", fenced},
        {"a write that somebody else did as well is not taken for mine", not_mine},
        {"cancel takes only what is not attempted, and fences", fenced_by_cancel},
        {"armed again: the epoch goes on, the budget is fresh", armed_again},
        {"accepted keeps its answer until the probe finds", accepted},
    };
}

}  // namespace tests
