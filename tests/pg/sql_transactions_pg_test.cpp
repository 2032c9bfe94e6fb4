// What a planner's transaction may do around an enqueue: isolation levels, savepoints, two phases.
// Every case by both roads: the function and the plain insert.
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

// Both answer "new" or nothing new: what tells the roads apart is not the point here.
struct Road {
    std::string name;
    std::string call;  // ID stands for the id; answers one row 'f' when new
    bool replays;      // a duplicate answers 't', else no row

    [[nodiscard]] std::string of(const std::string& id) const {
        auto sql = call;
        sql.replace(sql.find("ID"), 2, id);
        return sql;
    }
    [[nodiscard]] Rows duplicate() const { return replays ? Rows{{"t"}} : Rows{}; }
};

const Rows kNew{{"f"}};
const std::vector<Road> kRoads{
    {"enqueue", "SELECT replayed FROM outbox.enqueue('t', '{\"a\": 1}', 'ID')", true},
    {"enqueue_many",
     "SELECT replayed FROM outbox.enqueue_many('[{\"tool\": \"t\", \"arguments\": {\"a\": 1}, "
     "\"operation_id\": \"ID\"}]')",
     true},
    {"insert",
     "INSERT INTO outbox.operation (operation_id, tool, arguments) VALUES ('ID', 't', '{\"a\": "
     "1}') "
     "ON CONFLICT (operation_id) DO NOTHING RETURNING false",
     false},
};
const std::vector<std::string> kLevels{"READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"};

std::string state_of(Session& session) {
    try {
        session.receive();
    } catch (const tests::SqlError& error) {
        return error.sqlstate;
    }
    return "00000";
}

// Operation and work, or neither.
std::string filed(Session& session, const std::string& id) {
    return session.text(
        "SELECT count(o.seq) || ' ' || count(q.seq) FROM outbox.operation o "
        "FULL JOIN outbox.queue q USING (seq) WHERE o.operation_id = $1",
        {id}
    );
}

}  // namespace

TEST_CASE("two transactions with one new id, at every level, by every pair of roads") {
    Database database;
    auto first = database.connect();
    auto second = database.connect();
    int count = 0;
    for (const auto& level : kLevels) {
        for (const auto& one : kRoads) {
            for (const auto& other : kRoads) {
                for (const bool commits : {true, false}) {
                    const auto id = "op-" + std::to_string(++count);
                    INFO(level << " " << one.name << " " << other.name << " commits " << commits);
                    first.run("BEGIN ISOLATION LEVEL " + level);
                    CHECK(first.query(one.of(id)) == kNew);
                    second.run("BEGIN ISOLATION LEVEL " + level);
                    second.query("SELECT count(*) FROM outbox.operation");  // the snapshot
                    second.send(other.of(id));
                    CHECK(second.still_running(30ms));
                    first.run(commits ? "COMMIT" : "ROLLBACK");
                    if (!commits) {
                        CHECK(second.receive() == kNew);
                        second.run("COMMIT");
                    } else if (level == "READ COMMITTED") {
                        CHECK(second.receive() == other.duplicate());
                        second.run("COMMIT");
                    } else {
                        CHECK(state_of(second) == "40001");
                        second.run("ROLLBACK");
                        // The standard retry succeeds.
                        second.run("BEGIN ISOLATION LEVEL " + level);
                        CHECK(second.query(other.of(id)) == other.duplicate());
                        second.run("COMMIT");
                    }
                    CHECK(filed(first, id) == "1 1");
                }
            }
        }
    }
}

TEST_CASE("a duplicate never aborts its caller's transaction, at any level") {
    Database database;
    auto session = database.connect();
    session.run("CREATE TABLE step (n integer)");
    int count = 0;
    for (const auto& level : kLevels) {
        for (const auto& road : kRoads) {
            for (std::string status :
                 {"pending",
                  "scheduled",
                  "attempting",
                  "unknown",
                  "succeeded",
                  "failed",
                  "cancelled"}) {
                const auto id = "op-" + std::to_string(++count);
                INFO(level << " " << road.name << " " << status);
                session.query(road.of(id));
                tests::bring_to(session, id, status);
                session.run("BEGIN ISOLATION LEVEL " + level + "; INSERT INTO step VALUES (1)");
                CHECK(session.query(road.of(id)) == road.duplicate());
                CHECK(session.query(road.of(id)) == road.duplicate());
                session.run("INSERT INTO step VALUES (2); COMMIT");
                CHECK(
                    session.text(
                        "SELECT status FROM outbox.operations WHERE operation_id = $1", {id}
                    ) == status
                );
            }
        }
    }
    CHECK(session.text("SELECT count(*) FROM step") == std::to_string(2 * count));
    // The same within one transaction, of a row of its own.
    for (const auto& level : kLevels) {
        for (const auto& road : kRoads) {
            const auto id = "own-" + std::to_string(++count);
            session.run("BEGIN ISOLATION LEVEL " + level);
            CHECK(session.query(road.of(id)) == kNew);
            CHECK(session.query(road.of(id)) == road.duplicate());
            session.run("COMMIT");
            CHECK(filed(session, id) == "1 1");
        }
    }
}

TEST_CASE("an intent goes with the savepoint it was made in") {
    Database database;
    auto session = database.connect();
    auto other = database.connect();
    int count = 0;
    for (const auto& road : kRoads) {
        INFO(road.name);
        const auto gone = "gone-" + std::to_string(++count);
        const auto kept = "kept-" + std::to_string(count);
        const auto again = "again-" + std::to_string(count);
        const auto nested = "nested-" + std::to_string(count);
        session.run("BEGIN");
        session.query(road.of(kept));
        session.run("SAVEPOINT s");
        session.query(road.of(gone));
        CHECK(session.query(road.of(again)) == kNew);
        // Somebody else's wait ends with the savepoint. (enqueue_many inserts in a subtransaction
        // of its own, for its index in DETAIL: there the server waits for the whole transaction.)
        const bool ends = road.name != "enqueue_many";
        if (ends) {
            other.run("BEGIN");
            other.send(road.of(gone));
            CHECK(other.still_running(50ms));
        }
        session.run("ROLLBACK TO s");
        if (ends) {
            CHECK(other.receive() == kNew);
            other.run("ROLLBACK");
        }
        CHECK(session.query(road.of(again)) == kNew);
        session.run("SAVEPOINT t; SAVEPOINT u");
        CHECK(session.query(road.of(nested)) == kNew);
        session.run("RELEASE t; COMMIT");
        CHECK(filed(session, gone) == "0 0");
        for (const auto& id : {kept, again, nested}) {
            INFO(id);
            CHECK(filed(session, id) == "1 1");
        }
    }
}

TEST_CASE("an exception block of the planner's own code takes its intents back") {
    Database database;
    auto session = database.connect();
    session.run(
        "DO $$ BEGIN "
        "PERFORM outbox.enqueue('t', operation_id => 'outer'); "
        "BEGIN PERFORM outbox.enqueue('t', operation_id => 'inner'); "
        "PERFORM 1 / 0; EXCEPTION WHEN division_by_zero THEN NULL; END; "
        "BEGIN PERFORM outbox.enqueue('t', '{\"other\": 1}', operation_id => 'outer'); "
        "EXCEPTION WHEN SQLSTATE 'OB422' THEN "
        "PERFORM outbox.enqueue('t', operation_id => 'after'); END; END $$"
    );
    CHECK(filed(session, "outer") == "1 1");
    CHECK(filed(session, "inner") == "0 0");
    CHECK(filed(session, "after") == "1 1");
    CHECK(session.text("SELECT count(*) FROM outbox.event") == "0");
}

TEST_CASE("a retry that is rolled back leaves the failure as it was") {
    Database database;
    auto session = database.connect();
    session.run("SELECT outbox.enqueue('t', operation_id => 'op-1')");
    tests::bring_to(session, "op-1", "failed");
    auto before = session.query("SELECT * FROM outbox.outcome");
    session.run("BEGIN; SAVEPOINT s");
    CHECK(
        session.text("SELECT status FROM outbox.enqueue('t', operation_id => 'op-1', "
                     "retry_failed => true)") == "pending"
    );
    session.run("ROLLBACK TO s; COMMIT");
    CHECK(session.query("SELECT * FROM outbox.outcome") == before);
    CHECK(session.text("SELECT count(*) FROM outbox.queue") == "0");
    CHECK(session.text("SELECT count(*) FROM outbox.event") == "0");
}

TEST_CASE("what is prepared runs when it is committed, and never when it is rolled back") {
    Database database;
    auto session = database.connect();
    auto other = database.connect();
    auto daemon = database.connect();
    daemon.run("SELECT pg_advisory_lock(1869968504, hashtext('t'))");  // it sleeps
    session.run("SET outbox.wakeup = 'off'");
    int count = 0;
    for (const auto& road : kRoads) {
        for (const bool commits : {true, false}) {
            INFO(road.name << " commits " << commits);
            const auto id = "op-" + std::to_string(++count);
            const auto name = "'" + database.name() + id + "'";
            session.run("BEGIN");
            CHECK(session.query(road.of(id)) == kNew);
            session.run("PREPARE TRANSACTION " + name);
            CHECK(filed(session, id) == "0 0");
            // A second one waits for its end, as for any transaction's.
            other.run("SET outbox.wakeup = 'off'");
            other.send(road.of(id));
            CHECK(other.still_running(50ms));
            session.run((commits ? "COMMIT PREPARED " : "ROLLBACK PREPARED ") + name);
            CHECK(other.receive() == (commits ? road.duplicate() : kNew));
            CHECK(filed(session, id) == "1 1");
        }
        // With nobody who asks meanwhile.
        const auto id = "alone-" + std::to_string(count);
        const auto name = "'" + database.name() + id + "'";
        session.run("BEGIN");
        session.query(road.of(id));
        session.run("PREPARE TRANSACTION " + name + "; ");
        session.run("ROLLBACK PREPARED " + name);
        CHECK(filed(session, id) == "0 0");
    }
}

TEST_CASE("the same two ids in opposite order: 40P01 or a wait, never two operations") {
    Database database;
    auto first = database.connect();
    auto second = database.connect();
    int count = 0;
    for (const auto& road : kRoads) {
        INFO(road.name);
        const auto a = "a-" + std::to_string(++count);
        const auto b = "b-" + std::to_string(count);
        first.run("BEGIN");
        second.run("BEGIN");
        first.query(road.of(a));
        second.query(road.of(b));
        first.send(road.of(b));
        CHECK(first.still_running(50ms));
        second.send(road.of(a));
        // The server ends either of the two; the other one goes on.
        const auto one = state_of(first);
        if (one == "40P01") first.run("ROLLBACK");
        const auto other = state_of(second);
        CHECK((one == "40P01") != (other == "40P01"));
        first.run(one == "00000" ? "COMMIT" : "SELECT 1");
        second.run(other == "00000" ? "COMMIT" : "ROLLBACK");
        for (const auto& id : {a, b}) CHECK(filed(first, id) == "1 1");
    }
}
