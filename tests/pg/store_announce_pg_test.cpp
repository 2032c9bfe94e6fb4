// LISTEN outbox_done: every way in which an operation can end is told, whoever ends it; and nothing
// that has not ended is.
#include <algorithm>
#include <regex>
#include <set>

#include "sql/queries.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/store_fixture.hpp"

using namespace std::chrono_literals;
using outbox::Fate;
using outbox::LateFate;
using outbox::LeasedAttempt;
using outbox::Status;
using outbox::Transition;
using tests::Rows;
using tests::StoreFixture;
using tests::wait_for;

namespace {

using Ids = std::vector<std::string>;

const std::string kUndo = "op-1:compensate:undo";

struct Announcements : StoreFixture {
    tests::Session ear = database.connect();

    Announcements() {
        sql.run(
            "UPDATE outbox.tool SET compensations = '{undo}' WHERE tool = 'ticket'; "
            "INSERT INTO outbox.tool (tool, effect, revision, needs_original) "
            "VALUES ('ticket:undo', 'write', '1', '{}')"
        );
        ear.run("LISTEN outbox_done");
    }

    // The ids that were told since the last call, sorted. Whoever ended them has returned, and the
    // server hands on what was committed before the next answer.
    Ids told() {
        ear.run("SELECT 1");
        Ids ids;
        for (const auto& payload : ear.notifications()) {
            CHECK(payload.size() < 8000);
            for (const auto& row :
                 ear.query("SELECT * FROM jsonb_array_elements_text($1::jsonb)", {payload})) {
                ids.push_back(row[0].value());
            }
        }
        std::sort(ids.begin(), ids.end());
        return ids;
    }

    std::string call(const std::string& function) { return sql.text("SELECT outbox." + function); }

    LeasedAttempt overslept(const std::string& id) {
        auto attempt = lease_one(id);
        outlive_lease(id);
        wait_for(store.maintain(false));
        return attempt;
    }
    LateFate late(Transition transition) {
        return wait_for(store.record_late(std::move(transition)));
    }
    // unknown, with nothing that a verdict would come too early for.
    LeasedAttempt in_doubt(const std::string& id) {
        auto attempt = overslept(id);
        sql.run("UPDATE outbox.queue SET deadline_at = now() - interval '1 h'");
        return attempt;
    }
    std::string resolve(const std::string& verdict) {
        return call(
            "resolve('op-1', '" + verdict +
            "', 'looked', 'ann', (SELECT attempt_epoch FROM "
            "outbox.queue))"
        );
    }
};

}  // namespace

TEST_CASE("announced: what an attempt came to, in its own words or by an earlier one's answer") {
    Announcements t;
    SECTION("succeeded") {
        t.complete(tests::succeeded(t.lease_one("op-1"), "T-1"));
    }
    SECTION("failed") {
        t.complete(tests::failed(t.lease_one("op-1"), "refused"));
    }
    SECTION("written by an earlier try, whose acknowledgement was lost") {
        auto attempt = t.lease_one("op-1");
        REQUIRE(t.complete(tests::failed(attempt, "refused")) == Fate::applied);
        REQUIRE(t.told() == Ids{"op-1"});
        CHECK(t.complete(tests::failed(attempt, "refused")) == Fate::applied);
    }
    SECTION("a late answer proved an effect while the next attempt was under way") {
        auto first = t.overslept("op-1");
        t.sql.run("UPDATE outbox.queue SET status = 'pending', attention = NULL");
        auto second = t.lease();
        REQUIRE(second.size() == 1);
        REQUIRE(t.late(tests::succeeded(first, "T-1")) == LateFate::flagged);
        CHECK(t.told() == Ids{});  // it is still attempting
        SECTION("which then wanted to try again later") {
            CHECK(t.complete(tests::retried(second[0], 1s)) == Fate::applied);
        }
        SECTION("which had another effect") {
            CHECK(t.complete(tests::succeeded(second[0], "T-2")) == Fate::duplicate);
        }
    }
    CHECK(t.told() == Ids{"op-1"});
    CHECK(t.sql.text("SELECT count(*) FROM outbox.outcome") == "1");
}

TEST_CASE("announced: what a late answer settles, ends or overturns") {
    Announcements t;
    SECTION("unknown, an effect") {
        CHECK(t.late(tests::succeeded(t.overslept("op-1"), "T-1")) == LateFate::settled);
    }
    SECTION("unknown, certainly none") {
        CHECK(t.late(tests::failed(t.overslept("op-1"), "refused")) == LateFate::settled);
    }
    SECTION("pending again, and it had happened") {
        auto attempt = t.overslept("op-1");
        t.sql.run("UPDATE outbox.queue SET status = 'pending'");
        CHECK(t.late(tests::succeeded(attempt, "T-1")) == LateFate::flagged);
    }
    SECTION("failed, and it had happened") {
        auto attempt = t.in_doubt("op-1");
        t.sql.run("UPDATE outbox.tool SET max_attempts = 1");
        REQUIRE(t.resolve("not_applied") == "resolved");
        REQUIRE(t.state("op-1").starts_with("failed"));
        REQUIRE(t.told() == Ids{"op-1"});
        CHECK(t.late(tests::succeeded(attempt, "T-1")) == LateFate::flagged);
    }
    CHECK(t.told() == Ids{"op-1"});
    CHECK(t.sql.text("SELECT count(*) FROM outbox.outcome") == "1");
}

TEST_CASE("announced: expired, many in one payload") {
    Announcements t;
    t.sql.run(
        "INSERT INTO outbox.operation (operation_id, tool, expires_at) "
        "SELECT 'op-' || n, 'ticket', now() - interval '1 s' FROM generate_series(1, 3) n"
    );
    CHECK(wait_for(t.store.maintain(false)).expired == 3);
    t.ear.run("SELECT 1");
    CHECK(t.ear.notifications() == Ids{R"(["op-1","op-2","op-3"])"});
}

TEST_CASE("announced: cancelled, by whichever road, and only if the transaction commits") {
    Announcements t;
    t.insert("op-", 1);
    SECTION("cancel") {
        t.sql.run("BEGIN; SAVEPOINT s");
        CHECK(t.call("cancel('op-1')") == "cancelled");
        t.sql.run("ROLLBACK TO s; COMMIT");
        CHECK(t.told() == Ids{});
        t.sql.run("BEGIN");
        CHECK(t.call("cancel('op-1')") == "cancelled");
        CHECK(t.told() == Ids{});
        t.sql.run("COMMIT");
    }
    SECTION("compensate") {
        CHECK_THAT(t.call("compensate('op-1', 'undo')"), ContainsSubstring("cancelled"));
    }
    SECTION("a name that JSON must quote") {
        t.sql.query(
            "SELECT outbox.cancel(operation_id) FROM outbox.enqueue('ticket', operation_id => $1)",
            {R"(a "b" \ ü)"}
        );
        CHECK(t.told() == Ids{R"(a "b" \ ü)"});
        t.call("cancel('op-1')");
    }
    CHECK(t.told() == Ids{"op-1"});
    // Not twice, and never for what has not ended.
    CHECK(t.call("cancel('op-1')") == "already_cancelled");
    t.lease_one("op-2");
    CHECK(t.call("cancel('op-2')") == "too_late");
    CHECK(t.told() == Ids{});
}

TEST_CASE("announced: resolved by a person, and not what is tried again") {
    Announcements t;
    t.in_doubt("op-1");
    SECTION("applied") {
        CHECK(t.resolve("applied") == "resolved");
        CHECK(t.told() == Ids{"op-1"});
    }
    SECTION("not applied, attempts used up") {
        t.sql.run("UPDATE outbox.tool SET max_attempts = 1");
        CHECK(t.resolve("not_applied") == "resolved");
        CHECK(t.told() == Ids{"op-1"});
    }
    SECTION("not applied, to be tried again") {
        CHECK(t.resolve("not_applied") == "resolved");
        CHECK(t.told() == Ids{});
        CHECK(t.state("op-1").starts_with("scheduled"));
    }
}

TEST_CASE("announced: a compensation that has nothing to undo, and an original withdrawn for it") {
    Announcements t;
    auto attempt = t.lease_one("op-1");
    CHECK_THAT(t.call("compensate('op-1', 'undo')"), ContainsSubstring("scheduled"));
    CHECK(t.told() == Ids{});
    SECTION("the original failed") {
        t.complete(tests::failed(attempt, "refused"));
        CHECK(t.told() == Ids{"op-1"});
        wait_for(t.store.maintain(false));
        CHECK(t.told() == Ids{kUndo});
    }
    SECTION("the original went back to waiting: it is withdrawn") {
        t.complete(tests::retried(attempt, 0ms));
        wait_for(t.store.maintain(false));
        CHECK(t.told() == Ids{"op-1"});
        wait_for(t.store.maintain(false));
        CHECK(t.told() == Ids{kUndo});
    }
    SECTION("the original failed and is armed again before maintenance has seen it") {
        t.complete(tests::failed(attempt, "refused"));
        CHECK(t.told() == Ids{"op-1"});
        CHECK(t.call("retry('op-1', 'again')") == "armed");
        CHECK(t.told() == Ids{kUndo});
    }
    CHECK(t.outcome(kUndo, "c.outcome") == "cancelled");
}

TEST_CASE("SET outbox.wakeup = 'off' keeps every call of a planner free of NOTIFY") {
    Announcements t;
    t.insert("op-", 1);
    t.sql.run("SET outbox.wakeup = 'off'");
    CHECK(t.call("cancel('op-1')") == "cancelled");
    CHECK(t.told() == Ids{});
}

// Whoever adds another way to end must say how it is told, here and in a test above.
TEST_CASE("every statement that files an end is one whose ends are announced") {
    StoreFixture t;
    const std::regex files(R"((INSERT INTO|UPDATE)\s+outbox\.outcome\b)");
    std::set<std::string> queries;
    for (const auto& query : outbox::sql::queries()) {
        if (std::regex_search(*query.text, files)) queries.insert(std::string(query.name));
    }
    CHECK(
        queries ==
        std::set<std::string>{
            "expire_operations", "finish_operations", "record_late_result", "settle_compensations"
        }
    );
    // acknowledge clears a flag of what has ended already, prune_payloads takes its result.
    CHECK(
        t.sql.query("SELECT proname, prosrc ~ 'outbox\\.announce\\(' FROM pg_proc "
                    "WHERE pronamespace = 'outbox'::regnamespace "
                    "AND prosrc ~ '(INSERT INTO|UPDATE)\\s+outbox\\.outcome\\y' ORDER BY 1") ==
        Rows{
            {"acknowledge", "f"},
            {"cancel", "t"},
            {"cancel_waiting", "t"},
            {"prune_payloads", "f"},
            {"resolve", "t"}
        }
    );
}
