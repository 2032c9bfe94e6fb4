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

// Two late answers prove two effects while a third attempt is under way.
struct Three {
    LeasedAttempt first, second, third;
};

Three three_attempts(StoreDriver& d) {
    std::vector<LeasedAttempt> attempts{overslept(d, "op-1")};
    for (int i = 0; i < 2; ++i) {
        believe_absent(d, Status::scheduled);
        REQUIRE(maintain(d).promoted == 1);
        attempts.push_back(lease_from(d).at(0));
        if (i == 1) break;
        d.pass(31s);
        REQUIRE(maintain(d).lease_expired == 1);
    }
    REQUIRE(state(d, "op-1") == "attempting 11 3");
    return {attempts[0], attempts[1], attempts[2]};
}

void two_late_effects(StoreDriver& d, const std::string& of_the_third) {
    const auto a = three_attempts(d);
    CHECK(late(d, success(a.first, "T-1")) == LateFate::flagged);
    CHECK(late(d, success(a.first, "T-1")) == LateFate::stored);
    CHECK(state(d, "op-1") == "attempting 11 3");
    CHECK(late(d, success(a.second, "T-2")) == LateFate::duplicate);
    const auto says_two_effects = [&] {
        const auto seen = d.see("op-1");
        CHECK(seen.status == "succeeded");
        CHECK(seen.attention == "duplicate_effect");
        CHECK(seen.result == "\"T-1\"");
        CHECK(seen.error.empty());
    };
    says_two_effects();
    // The third attempt comes too late in its turn; what it says is kept, and undoes nothing.
    if (of_the_third == "refused") {
        CHECK(write(d, failure(a.third)) == Fate::fenced);
        CHECK(late(d, failure(a.third)) == LateFate::stored);
    } else if (of_the_third == "another") {
        CHECK(write(d, success(a.third, "T-3")) == Fate::fenced);
        CHECK(late(d, success(a.third, "T-3")) == LateFate::duplicate);
    } else {
        CHECK(write(d, success(a.third, "T-1")) == Fate::applied);
    }
    says_two_effects();
    CHECK(lease_from(d).empty());
}

// A read has no effect, so its late answer proves none: it ends what is open, and nothing else.
LeasedAttempt second_look(StoreDriver& d, LeasedAttempt& first) {
    first = overslept(d, "op-1", "look");
    maintain(d);
    return lease_from(d, "look").at(0);
}

void of_a_read(StoreDriver& d) {
    SECTION("open") {
        const auto attempt = overslept(d, "op-1", "look");
        CHECK(late(d, success(attempt, "seen")) == LateFate::settled);
        CHECK(d.see("op-1").status == "succeeded");
        CHECK(d.see("op-1").attention.empty());
    }
    LeasedAttempt first;
    SECTION("under way again") {
        const auto second = second_look(d, first);
        CHECK(late(d, success(first, "seen")) == LateFate::stored);
        CHECK(write(d, success(second, "seen anew")) == Fate::applied);
        CHECK(d.see("op-1").result == "\"seen anew\"");
        CHECK(d.see("op-1").attention.empty());
    }
    SECTION("succeeded with another answer") {
        REQUIRE(write(d, success(second_look(d, first), "seen anew")) == Fate::applied);
        CHECK(late(d, success(first, "seen")) == LateFate::stored);
        CHECK(d.see("op-1").result == "\"seen anew\"");
        CHECK(d.see("op-1").attention.empty());
    }
    SECTION("failed") {
        REQUIRE(write(d, failure(second_look(d, first))) == Fate::applied);
        CHECK(late(d, success(first, "seen")) == LateFate::stored);
        CHECK(d.see("op-1").status == "failed");
        CHECK(d.see("op-1").attention.empty());
    }
    SECTION("cancelled") {
        REQUIRE(write(d, again(second_look(d, first), 1h)) == Fate::applied);
        REQUIRE(d.cancel("op-1"));
        CHECK(late(d, success(first, "seen")) == LateFate::stored);
        CHECK(d.see("op-1").status == "cancelled");
        CHECK(d.see("op-1").attention.empty());
    }
}

// The name stands for a read by now; what was sent was a write, and its effect is one. And the
// other way round.
void of_what_was_sent(StoreDriver& d) {
    const auto changed = [&](const std::string& tool, Effect effect) {
        auto policy = contract_policy(tool, effect);
        policy.request_hash = 77;
        wait_for(d.store().publish_tools(WorkerId(kOther), {policy}));
    };
    SECTION("a write, whose tool is a read now: in flight again") {
        const auto first = overslept(d, "op-1");
        believe_absent(d, Status::scheduled);
        changed("ticket", Effect::read);
        REQUIRE(maintain(d).promoted == 1);
        lease_from(d);
        CHECK(late(d, success(first, "T-1")) == LateFate::flagged);
        CHECK(d.see("op-1").attention == "late_effect");
    }
    SECTION("a write, whose tool is a read now: succeeded with another result") {
        const auto second = proved_under_way(d);
        changed("ticket", Effect::read);
        CHECK(late(d, success(second, "T-2")) == LateFate::duplicate);
    }
    SECTION("a write, whose tool is a read now: failed") {
        const auto first = overslept(d, "op-1");
        believe_absent(d, Status::failed);
        changed("ticket", Effect::read);
        CHECK(late(d, success(first, "T-1")) == LateFate::flagged);
        CHECK(d.see("op-1").status == "succeeded");
    }
    SECTION("a read, whose tool is a write now") {
        LeasedAttempt first;
        const auto second = second_look(d, first);
        changed("look", Effect::write);
        CHECK(late(d, success(first, "seen")) == LateFate::stored);
        CHECK(write(d, success(second, "seen anew")) == Fate::applied);
        CHECK(d.see("op-1").attention.empty());
    }
}

// Nobody published its tool, or somebody took it out of the catalogue: it may have had an effect.
void of_an_unpublished_tool(StoreDriver& d) {
    const auto attempt = insert_and_lease(d, "op-1", "nobody");
    d.pass(31s);
    CHECK(maintain(d).lease_expired == 0);  // waits for a daemon that knows the tool
    CHECK(state(d, "op-1") == "attempting 1 1");
    REQUIRE(write(d, again(attempt, 0ms)) == Fate::applied);
    REQUIRE(d.cancel("op-1"));
    CHECK(late(d, success(attempt, "T-1")) == LateFate::flagged);
    CHECK(d.see("op-1").status == "succeeded");
    CHECK(d.see("op-1").attention == "late_effect");
    CHECK(late(d, success(attempt, "T-2")) == LateFate::duplicate);
    CHECK(d.see("op-1").attention == "duplicate_effect");
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
        {"late effects: two of them beside a third attempt that is refused",
         [](auto& d) { two_late_effects(d, "refused"); }},
        {"late effects: two of them beside a third attempt with its own",
         [](auto& d) { two_late_effects(d, "another"); }},
        {"late effects: two of them beside a third attempt that says the same",
         [](auto& d) { two_late_effects(d, "the same"); }},
        {"a late answer of a read is no alarm", of_a_read},
        {"a late answer counts as what was sent, not as what its tool is now", of_what_was_sent},
        {"a late answer of a tool that nobody published counts as a write's", of_an_unpublished_tool
        },
    };
}

}  // namespace tests
