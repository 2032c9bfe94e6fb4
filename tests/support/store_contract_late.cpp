#include "tests/support/catch.hpp"
#include "tests/support/store_contract.hpp"

// record_late: what a fenced attempt's answer does to whatever the operation has become.
namespace tests {

using namespace outbox;
using namespace std::chrono_literals;

namespace {

void settles_unknown(StoreDriver& d) {
    const auto attempt = overslept(d, "op-1");
    const auto probe = claim_from(d).at(0);
    CHECK(late(d, success(attempt, "T-1")) == LateFate::settled);
    CHECK(state(d, "op-1") == "succeeded 4 1");
    CHECK(d.see("op-1").attention.empty());
    CHECK(d.see("op-1").result == "\"T-1\"");
    CHECK(write(d, verdict(probe, Status::scheduled)) == Fate::fenced);
    // The same answer again is an event; another one is a second effect, and undoes nothing.
    CHECK(late(d, success(attempt, "T-1")) == LateFate::stored);
    CHECK(d.see("op-1").attention.empty());
    CHECK(late(d, success(attempt, "T-2")) == LateFate::duplicate);
    CHECK(d.see("op-1").attention == "duplicate_effect");
    CHECK(d.see("op-1").result == "\"T-1\"");
    CHECK(d.see("op-1").status == "succeeded");
}

void overturns(StoreDriver& d, const std::function<void()>& then, const std::string& state_then) {
    const auto attempt = overslept(d, "op-1");
    then();
    REQUIRE(state(d, "op-1") == state_then);
    CHECK(late(d, success(attempt, "T-1")) == LateFate::flagged);
    const auto seen = d.see("op-1");
    CHECK(seen.status == "succeeded");
    CHECK(seen.attention == "late_effect");
    CHECK(seen.result == "\"T-1\"");
    CHECK(seen.error.empty());
    CHECK(lease_from(d).empty());
}

void believe_absent(StoreDriver& d, Status status) {
    REQUIRE(write(d, verdict(claim_from(d).at(0), status)) == Fate::applied);
}

void overturns_scheduled(StoreDriver& d) {
    overturns(d, [&] { believe_absent(d, Status::scheduled); }, "scheduled 4 1");
}

void overturns_pending(StoreDriver& d) {
    const auto then = [&] {
        believe_absent(d, Status::scheduled);
        maintain(d);
    };
    overturns(d, then, "pending 5 1");
}

void overturns_failed(StoreDriver& d) {
    overturns(d, [&] { believe_absent(d, Status::failed); }, "failed 4 1");
}

void overturns_cancelled(StoreDriver& d) {
    const auto then = [&] {
        believe_absent(d, Status::scheduled);
        CHECK(d.cancel("op-1"));
    };
    overturns(d, then, "cancelled 5 1");
}

// A later attempt is in flight: it may then only end succeeded.
LeasedAttempt proved_under_way(StoreDriver& d) {
    const auto first = overslept(d, "op-1");
    believe_absent(d, Status::scheduled);
    REQUIRE(maintain(d).promoted == 1);
    auto second = lease_from(d).at(0);
    REQUIRE(late(d, success(first, "T-1")) == LateFate::flagged);
    REQUIRE(state(d, "op-1") == "attempting 6 2");
    return second;
}

void ends_succeeded(StoreDriver& d, const std::string& result, const std::string& attention) {
    const auto seen = d.see("op-1");
    CHECK(seen.status == "succeeded");
    CHECK(seen.epoch == 7);
    CHECK(seen.result == result);
    CHECK(seen.attention == attention);
    CHECK(seen.error.empty());
}

void second_effect(StoreDriver& d) {
    const auto second = proved_under_way(d);
    CHECK(write(d, success(second, "T-2")) == Fate::duplicate);
    ends_succeeded(d, "\"T-2\"", "duplicate_effect");
    CHECK(write(d, success(second, "T-2")) == Fate::applied);
}

void same_effect(StoreDriver& d) {
    CHECK(write(d, success(proved_under_way(d), "T-1")) == Fate::applied);
    ends_succeeded(d, "\"T-1\"", "late_effect");
}

void other_ends(StoreDriver& d, const std::function<Transition(const LeasedAttempt&)>& end) {
    const auto second = proved_under_way(d);
    CHECK(write(d, end(second)) == Fate::applied);
    ends_succeeded(d, "\"T-1\"", "late_effect");
    CHECK(write(d, end(second)) == Fate::applied);
}

void no_effect(StoreDriver& d) {
    SECTION("refused") {
        CHECK(late(d, failure(overslept(d, "op-1"))) == LateFate::settled);
        CHECK(state(d, "op-1") == "failed 3 1");
        CHECK(d.see("op-1").error == "refused");
    }
    SECTION("not sent: the attempt is given back") {
        auto t = again(overslept(d, "op-1"), 1s);
        t.attempts_delta = -1;
        CHECK(late(d, t) == LateFate::settled);
        CHECK(state(d, "op-1") == "scheduled 3 0");
        CHECK_FALSE(d.see("op-1").ambiguous);
    }
    SECTION("without proof") {
        CHECK(late(d, doubt(overslept(d, "op-1"))) == LateFate::stored);
        CHECK(state(d, "op-1") == "unknown 2 1");
        CHECK(d.see("op-1").events == "lease_expired late_result");
    }
}

void no_effect_among_others(StoreDriver& d) {
    const auto first = overslept(d, "op-1");
    believe_absent(d, Status::scheduled);
    REQUIRE(maintain(d).promoted == 1);
    const auto second = lease_from(d).at(0);
    d.pass(31s);
    REQUIRE(maintain(d).lease_expired == 1);
    CHECK(late(d, failure(second)) == LateFate::stored);
    CHECK(late(d, failure(first)) == LateFate::stored);
    CHECK(state(d, "op-1") == "unknown 7 2");
}

void of_a_read(StoreDriver& d) {
    const auto attempt = overslept(d, "op-1", "look");
    CHECK(late(d, success(attempt, "seen")) == LateFate::settled);
    CHECK(d.see("op-1").status == "succeeded");
    CHECK(d.see("op-1").attention.empty());
}

}  // namespace

std::vector<StoreCase> late_contract() {
    return {
        {"late effect: unknown is settled, success is never undone", settles_unknown},
        {"late effect: scheduled is overturned", overturns_scheduled},
        {"late effect: pending is overturned", overturns_pending},
        {"late effect: failed is overturned", overturns_failed},
        {"late effect: cancelled is overturned", overturns_cancelled},
        {"late effect: the attempt in flight has an effect, too", second_effect},
        {"late effect: the attempt in flight says the same", same_effect},
        {"late effect: the attempt in flight is refused", [](auto& d) { other_ends(d, failure); }},
        {"late effect: the attempt in flight wants to be tried again",
         [](auto& d) { other_ends(d, [](const auto& a) { return again(a, 0ms); }); }},
        {"late effect: the attempt in flight ends in doubt", [](auto& d) { other_ends(d, doubt); }},
        {"late no effect: settles the only unresolved attempt", no_effect},
        {"late no effect: settles nothing among several", no_effect_among_others},
        {"late effect of a read is no alarm", of_a_read},
    };
}

}  // namespace tests
