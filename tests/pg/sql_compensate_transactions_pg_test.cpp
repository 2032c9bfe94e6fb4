// What a planner's transaction may do around outbox.compensate: savepoints, two phases; and what a
// failover makes of a compensation that waits.
#include "sql/queries.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/database.hpp"
#include "tests/support/operation_states.hpp"
#include "tests/support/refusal.hpp"

using namespace std::chrono_literals;
using tests::Database;
using tests::refusal;
using tests::Row;
using tests::Rows;
using tests::Session;

namespace {

// Operation and work, or neither.
std::string filed(Session& session, const std::string& id) {
    return session.text(
        "SELECT count(o.seq) || ' ' || count(q.seq) FROM outbox.operation o "
        "FULL JOIN outbox.queue q USING (seq) WHERE o.operation_id = $1",
        {id}
    );
}

// Tool t with one compensation, and the operations "done" (succeeded) and "open" (pending) of it.
void prepare_originals(Session& session) {
    session.run(
        "INSERT INTO outbox.tool (tool, effect, revision, compensations, needs_original) VALUES "
        "('t', 'write', 'r1', '{undo}', '{}'), ('t:undo', 'write', 'r1', '{}', '{}'); "
        "SELECT outbox.enqueue('t', operation_id => 'done'), "
        "outbox.enqueue('t', operation_id => 'open')"
    );
    tests::bring_to(session, "done", "succeeded");
}

// operation_id, status, replayed
Row undo(Session& session, const std::string& id) {
    return session.query(
        "SELECT operation_id, status, replayed FROM outbox.compensate($1, 'undo')", {id}
    )[0];
}

const std::string kUndo = "done:compensate:undo";
const Row kFiled{kUndo, "pending", "f"};
const Row kReplayed{kUndo, "pending", "t"};
const Row kInstead{"open", "cancelled", "f"};

// Whether a daemon could lease it at this moment.
bool free_to_lease(Session& session, const std::string& id) {
    return session
               .query(
                   "SELECT FROM outbox.queue WHERE status = 'pending' AND seq = (SELECT o.seq FROM "
                   "outbox.operation o WHERE o.operation_id = $1) FOR UPDATE SKIP LOCKED",
                   {id}
               )
               .size() == 1;
}

std::string status_of(Session& session, const std::string& id) {
    return session.text("SELECT status FROM outbox.get($1)", {id});
}

}  // namespace

TEST_CASE("a prepared compensation exists once it is committed, and never when it is rolled back") {
    for (const bool commits : {true, false}) {
        INFO("commits " << commits);
        Database database;
        auto session = database.connect();
        auto other = database.connect();
        prepare_originals(session);
        const auto name = "'" + database.name() + "'";
        session.run("SET outbox.wakeup = 'off'; BEGIN");
        CHECK(undo(session, "done") == kFiled);
        CHECK(undo(session, "done") == kReplayed);
        CHECK(undo(session, "open") == kInstead);
        session.run("PREPARE TRANSACTION " + name);
        CHECK(filed(other, kUndo) == "0 0");
        // Nobody sees that the original is to be cancelled, and no daemon can take it meanwhile.
        CHECK(status_of(other, "open") == "pending");
        CHECK_FALSE(free_to_lease(other, "open"));
        other.send("SELECT operation_id, status, replayed FROM outbox.compensate('done', 'undo')");
        CHECK(other.still_running(50ms));
        session.run((commits ? "COMMIT PREPARED " : "ROLLBACK PREPARED ") + name);
        CHECK(other.receive() == Rows{commits ? kReplayed : kFiled});
        CHECK(filed(session, kUndo) == "1 1");
        CHECK(status_of(session, "open") == (commits ? "cancelled" : "pending"));
        CHECK(free_to_lease(session, "open") == !commits);
        CHECK(
            session.text("SELECT count(*) FROM outbox.event WHERE kind = 'cancelled'") ==
            (commits ? "1" : "0")
        );
    }
}

// The announcement on outbox_done is a NOTIFY. Refused, the transaction is gone as a whole.
TEST_CASE("without outbox.wakeup = 'off' a transaction that cancels cannot be prepared") {
    Database database;
    auto session = database.connect();
    prepare_originals(session);
    session.run("BEGIN");
    CHECK(undo(session, "open") == kInstead);
    CHECK(refusal(session, "PREPARE TRANSACTION '" + database.name() + "'").sqlstate == "0A000");
    session.run("ROLLBACK");
    CHECK(status_of(session, "open") == "pending");
    CHECK(free_to_lease(session, "open"));
}

TEST_CASE("a compensation goes with the savepoint it was made in") {
    Database database;
    auto session = database.connect();
    auto other = database.connect();
    prepare_originals(session);
    session.run("BEGIN; SAVEPOINT s");
    CHECK(undo(session, "done") == kFiled);
    CHECK(undo(session, "open") == kInstead);
    session.run("ROLLBACK TO s");
    CHECK(filed(session, kUndo) == "0 0");
    CHECK(status_of(session, "open") == "pending");
    CHECK(free_to_lease(other, "open"));  // its lock went with the savepoint
    // A refusal takes its savepoint back and nothing else.
    session.run("SAVEPOINT t");
    CHECK(refusal(session, "SELECT outbox.compensate('done', 'burn')").sqlstate == "OB404");
    session.run("ROLLBACK TO t; SAVEPOINT u");
    CHECK(undo(session, "done") == kFiled);
    session.run("SAVEPOINT v");
    CHECK(undo(session, "done") == kReplayed);
    session.run("ROLLBACK TO v; RELEASE u; COMMIT");
    CHECK(filed(other, kUndo) == "1 1");
    CHECK(status_of(other, "open") == "pending");
    CHECK(
        other.text("SELECT count(*) FROM outbox.event WHERE kind IN ('cancelled', 'replayed')") ==
        "0"
    );
}

// On the lost end the original may have succeeded and the compensation may have run, so it is in
// doubt like everything else; where its look-up cannot even be formed, only a person can tell.
// Nothing turns it from unknown into cancelled without a verdict.
TEST_CASE("a failover finds a compensation that waits for an original which has failed") {
    Database database;
    auto session = database.connect();
    prepare_originals(session);
    tests::bring_to(session, "open", "unknown");
    const std::string id = "open:compensate:undo";
    CHECK(undo(session, "open") == Row{id, "scheduled", "f"});
    tests::end_operation(session, "open", "failed", {}, R"({"code": "refused"})");
    session.run(
        "INSERT INTO outbox.setting (name, value) VALUES ('timeline', 'the lost end') "
        "ON CONFLICT (name) DO UPDATE SET value = excluded.value"
    );
    const auto maintain = [&] {
        session.query(outbox::sql::settle_timeline, {"500"});
        return *session.query(outbox::sql::settle_compensations, {"500", "0", "0"})[0][1];
    };
    CHECK(maintain() == "0");
    CHECK(maintain() == "0");
    CHECK(status_of(session, id) == "unknown");
    const auto resolve = [&](const std::string& verdict) {
        return session.text(
            "SELECT outbox.resolve($1, $2, 'looked', 'ann', (SELECT attempt_epoch FROM "
            "outbox.queue WHERE waits_for IS NOT NULL))",
            {id, verdict}
        );
    };
    // As long as an attempt that nobody remembers could still be under way.
    CHECK(resolve("not_applied") == "too_early");
    session.run("UPDATE outbox.queue SET deadline_at = now() - interval '1 h'");
    SECTION("it did not run: nothing to undo") {
        CHECK(resolve("not_applied") == "resolved");
        CHECK(status_of(session, id) == "scheduled");
        CHECK(maintain() == "1");
        CHECK(
            session.text("SELECT status || ' ' || (error ->> 'code') FROM outbox.get($1)", {id}) ==
            "cancelled nothing_to_compensate"
        );
    }
    SECTION("it ran: then its original had an effect, which is for that person to say, too") {
        CHECK(resolve("applied") == "resolved");
        CHECK(maintain() == "0");
        CHECK(status_of(session, id) == "succeeded");
        CHECK(session.text("SELECT compensated_by FROM outbox.get('open')") == id);
    }
}
