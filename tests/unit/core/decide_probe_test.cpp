#include <string>
#include <vector>

#include "outbox/decide.hpp"
#include "tests/support/catch.hpp"

using namespace outbox;
using namespace std::chrono_literals;

namespace {

constexpr DbTime kNow{1'000'000s};

ToolPolicy tool() {
    ToolPolicy policy;
    policy.name = "create_ticket";
    policy.retry.jitter = 0;
    policy.request_hash = 7;
    policy.reconcile.settle = 10s;
    policy.reconcile.interval = 4s;
    return policy;
}

// Unknown for a minute; the last attempt's deadline + settle passed half a minute ago.
ClaimedProbe claim() {
    ClaimedProbe claimed;
    claimed.intent.seq = Seq(42);
    claimed.intent.id = OperationId("op-1");
    claimed.intent.tool = "create_ticket";
    claimed.epoch = Epoch(6);
    claimed.attempt_epoch = Epoch(5);
    claimed.attempts = 1;
    claimed.request_hash = 7;
    claimed.probe_started_at = kNow - 100ms;
    claimed.deadline_at = kNow - 40s;
    claimed.first_attempt_at = kNow - 60s;
    claimed.unknown_since = kNow - 60s;
    return claimed;
}

Transition decide(const ClaimedProbe& claimed, Verdict verdict, ToolPolicy policy = tool()) {
    auto next = decide_probe(claimed, verdict, policy, kNow, 0.5);
    CHECK(next.writer == Transition::Writer::probe);
    CHECK(next.seq == Seq(42));
    CHECK(next.epoch == Epoch(6));
    CHECK(next.attempts_delta == 0);
    return next;
}

std::string kinds(const Transition& next) {
    std::string text;
    for (const auto& event : next.events) {
        if (!text.empty()) text += ' ';
        text += to_string(event.kind);
    }
    return text;
}

}  // namespace

TEST_CASE("found settles an unknown whenever it was asked") {
    auto claimed = claim();
    claimed.deadline_at = kNow + 20s;
    const auto next = decide(claimed, Found{.result = Json(9), .note = ""});
    CHECK(next.to == Status::succeeded);
    CHECK(to_text(next.result) == "9");
    CHECK(kinds(next) == "probe");
}

TEST_CASE("absent, believed: tried again after the back-off") {
    const auto next = decide(claim(), Absent{});
    CHECK(next.to == Status::scheduled);
    CHECK(next.due_in == 2s);
    CHECK(kinds(next) == "probe");
    CHECK(*next.events[0].detail.find("believed")->as_bool());
}

TEST_CASE("absent, believed, attempts used up: failed") {
    auto claimed = claim();
    claimed.attempts = 8;
    const auto next = decide(claimed, Absent{});
    CHECK(next.to == Status::failed);
    CHECK(next.error->code == "attempts_used_up");
    CHECK(kinds(next) == "probe");

    claimed.intent.max_attempts = 9;
    CHECK(decide(claimed, Absent{}).to == Status::scheduled);
    claimed.attempts = 1;
    claimed.intent.max_attempts = 1;
    CHECK(decide(claimed, Absent{}).to == Status::failed);
}

TEST_CASE("absent, believed, no attempt may begin any more: failed") {
    auto claimed = claim();
    claimed.intent.expires_at = kNow + 2s;
    CHECK(decide(claimed, Absent{}).error->code == "expired");
    claimed = claim();
    claimed.first_attempt_at = kNow - 24h;
    CHECK(decide(claimed, Absent{}).error->code == "gave_up");
}

TEST_CASE("absent before deadline + settle is not believed, and asked again when it can count") {
    auto claimed = claim();
    claimed.deadline_at = claimed.probe_started_at - 10s;
    CHECK(decide(claimed, Absent{}).to == Status::scheduled);  // exactly then it counts

    claimed.deadline_at = kNow - 7s;
    auto next = decide(claimed, Absent{});
    CHECK(next.to == Status::unknown);
    CHECK(next.due_in == 3s);
    CHECK(next.probe->absent_count == 0);
    CHECK(next.probe->probes == 1);
    CHECK(kinds(next) == "probe");

    claimed.deadline_at = kNow + 60s;  // the interval comes first: found may be there by then
    next = decide(claimed, Absent{});
    CHECK(next.due_in == 4s);
}

TEST_CASE("absent counts confirmations times, far enough apart") {
    auto policy = tool();
    policy.reconcile.confirmations = 2;
    auto first = decide(claim(), Absent{}, policy);
    CHECK(first.to == Status::unknown);
    CHECK(first.probe->absent_count == 1);
    CHECK(first.probe->last_absent_at == claim().probe_started_at);
    CHECK(first.due_in == 4900ms);  // settle / 2 after that probe began

    auto claimed = claim();
    claimed.probes = 1;
    claimed.absent_count = 1;
    claimed.last_absent_at = claimed.probe_started_at - 4s;  // closer than settle / 2
    auto close = decide(claimed, Absent{}, policy);
    CHECK(close.to == Status::unknown);
    CHECK(close.probe->absent_count == 1);
    CHECK(close.probe->last_absent_at == claimed.last_absent_at);
    CHECK(close.due_in == 900ms);

    claimed.last_absent_at = claimed.probe_started_at - 5s;
    CHECK(decide(claimed, Absent{}, policy).to == Status::scheduled);
}

TEST_CASE("found, pending and conflict reset the count; inconclusive leaves it") {
    auto policy = tool();
    policy.reconcile.confirmations = 3;
    auto claimed = claim();
    claimed.absent_count = 2;
    claimed.last_absent_at = kNow - 20s;
    for (const Verdict& verdict : std::vector<Verdict>{Pending{}, Conflict{}}) {
        const auto next = decide(claimed, verdict, policy);
        CHECK(next.probe->absent_count == 0);
        CHECK_FALSE(next.probe->last_absent_at.has_value());
    }
    const auto next = decide(claimed, Inconclusive{}, policy);
    CHECK(next.probe->absent_count == 2);
    CHECK(next.probe->last_absent_at == claimed.last_absent_at);
}

TEST_CASE("a probe that failed is never absent") {
    auto claimed = claim();
    claimed.probes = 1'000;
    claimed.attempts = 8;
    const auto next = decide(claimed, Inconclusive{.error = {"status_503", "busy"}});
    CHECK(next.to == Status::unknown);
    CHECK(next.probe->absent_count == 0);
    CHECK(next.error->code == "status_503");
}

TEST_CASE("absent of another request than the one that was sent is inconclusive") {
    auto claimed = claim();
    claimed.request_hash = 8;
    const auto next = decide(claimed, Absent{});
    CHECK(next.to == Status::unknown);
    CHECK(next.error->code == "request_changed");
    CHECK(next.probe->absent_count == 0);
    CHECK(next.due_in == 4s);
}

TEST_CASE("pending and inconclusive are asked again, at a doubling interval") {
    for (const Verdict& verdict :
         std::vector<Verdict>{Pending{.note = "processing"}, Inconclusive{}}) {
        auto claimed = claim();
        CHECK(decide(claimed, verdict).due_in == 4s);
        claimed.probes = 1;
        const auto next = decide(claimed, verdict);
        CHECK(next.to == Status::unknown);
        CHECK(next.due_in == 8s);
        CHECK(next.probe->probes == 2);
        CHECK(kinds(next) == "probe");
        claimed.probes = 30;
        CHECK(decide(claimed, verdict).due_in == 600s);
    }
}

TEST_CASE("past give_up_after they wait for a person") {
    for (const Verdict& verdict : std::vector<Verdict>{Pending{}, Inconclusive{}}) {
        auto claimed = claim();
        claimed.unknown_since = kNow - 24h;
        const auto next = decide(claimed, verdict);
        CHECK(next.to == Status::unknown);
        CHECK(next.attention == AttentionReason::give_up);
        CHECK_FALSE(next.due_in.has_value());
        CHECK(kinds(next) == "probe attention");
    }
}

TEST_CASE("two matches where an absent was believed are two effects") {
    auto after = claim();
    after.absent_believed = true;
    CHECK(
        decide(after, Conflict{.error = {"found_twice", "2 tickets"}}).attention ==
        AttentionReason::duplicate_effect
    );
    CHECK(
        decide(after, Conflict{.error = {"different", "another title"}}).attention ==
        AttentionReason::conflict
    );
    CHECK(
        decide(claim(), Conflict{.error = {"found_twice", "2 tickets"}}).attention ==
        AttentionReason::conflict
    );
}

TEST_CASE("a conflict waits for a person") {
    const auto next = decide(claim(), Conflict{.error = {"two_matches", "2 tickets"}});
    CHECK(next.to == Status::unknown);
    CHECK(next.attention == AttentionReason::conflict);
    CHECK_FALSE(next.due_in.has_value());
    CHECK(next.error->code == "two_matches");
    CHECK(kinds(next) == "probe attention");
}

TEST_CASE("absent with after_absent: hold waits for a person") {
    auto policy = tool();
    policy.reconcile.after_absent = AfterAbsent::hold;
    const auto next = decide(claim(), Absent{}, policy);
    CHECK(next.to == Status::unknown);
    CHECK(next.attention == AttentionReason::hold);
    CHECK_FALSE(next.due_in.has_value());
}

TEST_CASE("what waits for a person is probed once when asked; settling it is allowed") {
    auto claimed = claim();
    claimed.flagged = true;
    claimed.asked = true;
    claimed.unknown_since = kNow - 48h;
    CHECK(decide(claimed, Found{}).to == Status::succeeded);
    CHECK(decide(claimed, Absent{}).to == Status::scheduled);
    for (const Verdict& verdict : std::vector<Verdict>{Pending{}, Inconclusive{}}) {
        const auto next = decide(claimed, verdict);
        CHECK(next.to == Status::unknown);
        CHECK_FALSE(next.due_in.has_value());
        CHECK_FALSE(next.attention.has_value());  // the one that is there stays
    }
}

TEST_CASE("an unknown of what is a read now is tried again, unless something else was sent") {
    auto policy = tool();
    policy.effect = Effect::read;
    const auto as_read = [&](const ClaimedProbe& claimed) {
        return decide_read(claimed, policy, kNow, 0.5);
    };
    auto claimed = claim();
    claimed.request_hash = 0;  // no attempt: the database came back on another timeline
    claimed.attempts = 0;
    claimed.deadline_at = kNow + 20s;  // there is nothing to wait for
    auto next = as_read(claimed);
    CHECK(next.to == Status::scheduled);
    CHECK(kinds(next) == "probe");
    CHECK(next.events[0].detail.find("believed") == nullptr);
    claimed.request_hash = 7;
    claimed.attempts = 8;
    next = as_read(claimed);
    CHECK(next.to == Status::failed);
    CHECK(next.error->code == "attempts_used_up");

    // Its configuration was another one then, maybe a write's.
    claimed.request_hash = 8;
    next = as_read(claimed);
    CHECK(next.to == Status::unknown);
    CHECK(next.error->code == "request_changed");
    CHECK(next.due_in.has_value());
    claimed.unknown_since = kNow - 24h;
    CHECK(as_read(claimed).attention == AttentionReason::give_up);
}
