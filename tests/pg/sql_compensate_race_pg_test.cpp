#include "sql/queries.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/database.hpp"
#include "tests/support/operation_states.hpp"
#include "tests/support/refusal.hpp"

using namespace std::chrono_literals;
using tests::begin_attempt;
using tests::bring_to;
using tests::Database;
using tests::Row;
using tests::Rows;
using tests::Session;
using tests::SqlError;

namespace {

const std::string kUndo = "op-1:compensate:undo";
const std::string kCompensate =
    "SELECT operation_id, status, replayed FROM outbox.compensate('op-1', 'undo')";

struct World {
    World() : worker(database.connect()), planner(database.connect()), other(database.connect()) {
        worker.run(
            "INSERT INTO outbox.tool (tool, effect, revision, compensations) VALUES "
            "('t', 'write', 'r1', '{undo}'), ('t:undo', 'write', 'r1', '{}'); "
            "INSERT INTO outbox.operation (operation_id, tool) VALUES ('op-1', 't')"
        );
    }
    // armed, cancelled
    Row settle() { return settle(worker); }
    static Row settle(Session& session) {
        const auto row = session.query(outbox::sql::settle_compensations, {"500", "0", "0"})[0];
        return {row[0], row[1]};
    }
    std::string status(const std::string& id) {
        return worker.text("SELECT status FROM outbox.get($1)", {id});
    }

    Database database;
    Session worker;
    Session planner;
    Session other;
};

std::string state_of(Session& session) {
    try {
        session.receive();
    } catch (const SqlError& error) {
        return error.sqlstate;
    }
    return "00000";
}

}  // namespace

TEST_CASE("compensate against a lease: the lease wins, or the cancel does") {
    World w;
    w.worker.run("BEGIN");
    begin_attempt(w.worker, "op-1");
    w.planner.run("BEGIN");
    w.planner.send(kCompensate);
    CHECK(w.planner.still_running(300ms));
    w.worker.run("COMMIT");
    CHECK(w.planner.receive() == Rows{{kUndo, "scheduled", "f"}});
    // The planner's transaction is open: neither the completion nor maintenance waits for it.
    w.worker.run("SET lock_timeout = '1s'");
    CHECK_NOTHROW(tests::end_operation(w.worker, "op-1", "succeeded", "{}"));
    CHECK(w.settle() == Row{"0", "0"});
    w.planner.run("COMMIT");
    CHECK(w.settle() == Row{"1", "0"});

    // The lease is rolled back: it is cancelled instead.
    World v;
    v.worker.run("BEGIN");
    begin_attempt(v.worker, "op-1");
    v.planner.send(kCompensate);
    CHECK(v.planner.still_running(200ms));
    v.worker.run("ROLLBACK");
    CHECK(v.planner.receive() == Rows{{"op-1", "cancelled", "f"}});
}

TEST_CASE("a lease skips what a compensate is cancelling") {
    World w;
    w.planner.run("BEGIN");
    CHECK(w.planner.query(kCompensate) == Rows{{"op-1", "cancelled", "f"}});
    CHECK(w.worker
              .query("SELECT 1 FROM outbox.queue WHERE status = 'pending' FOR UPDATE SKIP LOCKED")
              .empty());
    w.planner.run("ROLLBACK");
    CHECK(w.status("op-1") == "pending");
}

TEST_CASE("compensate against a cancel: one of them takes it") {
    World w;
    w.other.run("BEGIN");
    CHECK(w.other.text("SELECT outbox.cancel('op-1')") == "cancelled");
    w.planner.send(kCompensate);
    CHECK(w.planner.still_running(300ms));
    w.other.run("COMMIT");
    CHECK(w.planner.receive() == Rows{{"op-1", "cancelled", "t"}});

    World v;
    v.other.run("BEGIN");
    v.other.text("SELECT outbox.cancel('op-1')");
    v.planner.send(kCompensate);
    CHECK(v.planner.still_running(200ms));
    v.other.run("ROLLBACK");
    CHECK(v.planner.receive() == Rows{{"op-1", "cancelled", "f"}});
}

TEST_CASE("compensate against the completion of the original") {
    for (const std::string end : {"succeeded", "failed"}) {
        INFO(end);
        World w;
        begin_attempt(w.worker, "op-1");
        w.worker.run("BEGIN");
        tests::end_operation(
            w.worker, "op-1", end, {}, end == "failed" ? tests::Value("{}") : tests::Value()
        );
        // It does not wait for the completion: what it cannot know yet, maintenance will see.
        CHECK(w.planner.query(kCompensate) == Rows{{kUndo, "scheduled", "f"}});
        w.worker.run("COMMIT");
        CHECK(w.settle() == (end == "succeeded" ? Row{"1", "0"} : Row{"0", "1"}));
        CHECK(w.status(kUndo) == (end == "succeeded" ? "pending" : "cancelled"));
    }
}

TEST_CASE("two compensates at once: the second waits, then replays or records") {
    for (const bool commits : {true, false}) {
        INFO(commits);
        World w;
        bring_to(w.worker, "op-1", "succeeded");
        w.planner.run("BEGIN");
        CHECK(w.planner.query(kCompensate) == Rows{{kUndo, "pending", "f"}});
        w.other.send(kCompensate);
        CHECK(w.other.still_running(300ms));
        w.planner.run(commits ? "COMMIT" : "ROLLBACK");
        CHECK(w.other.receive() == Rows{{kUndo, "pending", commits ? "t" : "f"}});
        CHECK(w.worker.text("SELECT count(*) FROM outbox.queue") == "1");
    }
    // Of a pending original: one cancels it, the other finds nothing to undo.
    World w;
    w.planner.run("BEGIN");
    w.planner.query(kCompensate);
    w.other.send(kCompensate);
    CHECK(w.other.still_running(300ms));
    w.planner.run("COMMIT");
    CHECK(w.other.receive() == Rows{{"op-1", "cancelled", "t"}});
    CHECK(w.worker.text("SELECT count(*) FROM outbox.event WHERE kind = 'cancelled'") == "1");
}

TEST_CASE("two arm a cancelled compensation again: once") {
    World w;
    bring_to(w.worker, "op-1", "unknown");
    w.planner.query(kCompensate);
    tests::end_operation(w.worker, "op-1", "failed", {}, "{}");
    CHECK(w.settle() == Row{"0", "1"});
    w.worker.run(
        "UPDATE outbox.outcome SET outcome = 'succeeded', error = NULL WHERE outcome = 'failed'"
    );
    w.planner.run("BEGIN");
    CHECK(w.planner.query(kCompensate) == Rows{{kUndo, "pending", "f"}});
    w.other.send(kCompensate);
    CHECK(w.other.still_running(300ms));
    w.planner.run("COMMIT");
    CHECK(w.other.receive() == Rows{{kUndo, "pending", "t"}});
    CHECK(w.worker.text("SELECT count(*) FROM outbox.queue") == "1");
}

TEST_CASE("maintenance against a planner that arms the original again") {
    World w;
    bring_to(w.worker, "op-1", "unknown");
    w.other.query(kCompensate);
    tests::end_operation(w.worker, "op-1", "failed", {}, "{}");
    w.planner.run("BEGIN");
    CHECK(
        w.planner.text("SELECT status FROM outbox.enqueue('t', operation_id => 'op-1', "
                       "retry_failed => true)") == "pending"
    );
    // Locked by the planner: skipped, not waited for.
    CHECK(w.settle() == Row{"0", "0"});
    w.planner.run("COMMIT");
    CHECK(w.settle() == Row{"0", "0"});
    CHECK(w.status(kUndo) == "cancelled");
    CHECK(w.status("op-1") == "pending");
}

TEST_CASE("two daemons settle the same compensations once") {
    World w;
    w.worker.run("UPDATE outbox.tool SET compensations = '{undo,b,c}'");
    bring_to(w.worker, "op-1", "unknown");
    for (const std::string name : {"undo", "b", "c"}) {
        w.planner.query("SELECT outbox.compensate('op-1', $1)", {name});
    }
    tests::end_operation(w.worker, "op-1", "succeeded", "{}");
    w.worker.run("BEGIN");
    CHECK(w.settle() == Row{"3", "0"});
    CHECK(World::settle(w.other) == Row{"0", "0"});
    w.worker.run("COMMIT");
    CHECK(
        w.worker.text("SELECT string_agg(DISTINCT lease_epoch::text, ',') FROM outbox.queue") == "1"
    );
}

TEST_CASE("compensate in stricter isolation is the caller's standard retry") {
    for (const std::string level : {"REPEATABLE READ", "SERIALIZABLE"}) {
        INFO(level);
        World w;
        bring_to(w.worker, "op-1", "succeeded");
        w.planner.run("BEGIN ISOLATION LEVEL " + level + "; SELECT count(*) FROM outbox.operation");
        w.other.query(kCompensate);
        w.planner.send(kCompensate);
        CHECK(state_of(w.planner) == "40001");
        w.planner.run("ROLLBACK");

        // The original was leased after the snapshot.
        World v;
        v.planner.run("BEGIN ISOLATION LEVEL " + level + "; SELECT count(*) FROM outbox.queue");
        begin_attempt(v.worker, "op-1");
        v.planner.send(kCompensate);
        CHECK(state_of(v.planner) == "40001");
        v.planner.run("ROLLBACK");
        CHECK(v.planner.query(kCompensate) == Rows{{kUndo, "scheduled", "f"}});
    }
}

TEST_CASE("a compensation belongs to the planner's transaction and its savepoints") {
    World w;
    bring_to(w.worker, "op-1", "unknown");
    w.planner.run("BEGIN");
    w.planner.query(kCompensate);
    w.planner.run("ROLLBACK");
    CHECK(w.worker.text("SELECT count(*) FROM outbox.operation") == "1");
    w.planner.run("BEGIN; SAVEPOINT a");
    w.planner.query(kCompensate);
    w.planner.run("ROLLBACK TO a");
    CHECK(w.planner.query(kCompensate) == Rows{{kUndo, "scheduled", "f"}});
    w.planner.run("COMMIT");
    CHECK(w.worker.text("SELECT count(*) FROM outbox.queue") == "2");
}

TEST_CASE("pages of what waits go round, and reach everything") {
    World w;
    w.worker.run(
        "DELETE FROM outbox.queue; "
        "INSERT INTO outbox.operation (operation_id, tool) "
        "SELECT 'w' || n, 't' FROM generate_series(1, 25) n; "
        "UPDATE outbox.queue SET status = 'unknown', unknown_since = now(), due_at = now(); "
        "SELECT outbox.compensate('w' || n, 'undo') FROM generate_series(1, 25) n"
    );
    tests::end_operation(w.worker, "w24", "succeeded", "{}");
    Row at{"10", "0", "0"};
    std::vector<std::string> armed;
    for (int page = 0; page < 3; ++page) {
        const auto row = w.worker.query(outbox::sql::settle_compensations, at)[0];
        armed.push_back(*row[0]);
        at = row[3] ? Row{"10", row[2], row[3]} : Row{"10", "0", "0"};
    }
    CHECK(armed == std::vector<std::string>{"0", "0", "1"});
    CHECK(at == Row{"10", "0", "0"});
}
