#include <thread>

#include "tests/support/catch.hpp"
#include "tests/support/database.hpp"
#include "tests/support/operation_states.hpp"
#include "tests/support/refusal.hpp"

using namespace std::chrono_literals;
using tests::bring_to;
using tests::Database;
using tests::Row;
using tests::Rows;
using tests::Session;
using tests::SqlError;

namespace {

const std::string kEnqueue =
    "SELECT status, replayed FROM outbox.enqueue('create_ticket', '{\"title\": \"x\"}', 'op-1')";

std::string state_of(Session& session) {
    try {
        session.receive();
    } catch (const SqlError& error) {
        return error.sqlstate;
    }
    return "00000";
}

}  // namespace

TEST_CASE("the second of two new ones waits, then replays") {
    Database database;
    auto first = database.connect();
    auto second = database.connect();
    first.run("BEGIN");
    CHECK(first.query(kEnqueue) == Rows{{"pending", "f"}});
    second.send(kEnqueue);
    CHECK(second.still_running(300ms));
    first.run("COMMIT");
    CHECK(second.receive() == Rows{{"pending", "t"}});
    CHECK(first.text("SELECT count(*) FROM outbox.queue") == "1");
    CHECK(first.text("SELECT string_agg(kind, ',') FROM outbox.event") == "replayed");
}

TEST_CASE("the second inserts when the first rolls back") {
    Database database;
    auto first = database.connect();
    auto second = database.connect();
    first.run("BEGIN");
    first.query(kEnqueue);
    second.send(kEnqueue);
    CHECK(second.still_running(300ms));
    first.run("ROLLBACK");
    CHECK(second.receive() == Rows{{"pending", "f"}});
    CHECK(second.text("SELECT count(*) FROM outbox.queue") == "1");
    CHECK(second.text("SELECT count(*) FROM outbox.event") == "0");
}

TEST_CASE("a plain insert waits for an enqueue as well") {
    Database database;
    auto first = database.connect();
    auto second = database.connect();
    first.run("BEGIN");
    first.query(kEnqueue);
    second.send(
        "INSERT INTO outbox.operation (operation_id, tool) VALUES ('op-1', 'create_ticket') "
        "ON CONFLICT (operation_id) DO NOTHING RETURNING operation_id"
    );
    CHECK(second.still_running(300ms));
    first.run("COMMIT");
    CHECK(second.receive().empty());
}

TEST_CASE("a row committed after the snapshot of a repeatable read transaction is 40001") {
    Database database;
    auto first = database.connect();
    auto second = database.connect();
    second.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM outbox.operation");
    first.query(kEnqueue);
    CHECK(tests::refusal(second, kEnqueue).sqlstate == "40001");
    second.run("ROLLBACK; BEGIN ISOLATION LEVEL REPEATABLE READ");
    CHECK(second.query(kEnqueue) == Rows{{"pending", "t"}});
    second.run("ROLLBACK");

    // The same while it waits.
    first.run("BEGIN; SELECT outbox.enqueue('create_ticket', operation_id => 'op-2')");
    second.run("BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM outbox.operation");
    second.send("SELECT outbox.enqueue('create_ticket', operation_id => 'op-2')");
    CHECK(second.still_running(200ms));
    first.run("COMMIT");
    CHECK(state_of(second) == "40001");
}

TEST_CASE("batches in opposite order do not deadlock") {
    Database database;
    auto first = database.connect();
    auto second = database.connect();
    auto many = [](const std::string& a, const std::string& b) {
        return "SELECT replayed FROM outbox.enqueue_many('[{\"tool\": \"t\", \"operation_id\": \"" +
               a + "\"}, {\"tool\": \"t\", \"operation_id\": \"" + b + "\"}]')";
    };
    first.run("BEGIN");
    CHECK(first.query(many("a", "b")) == Rows{{"f"}, {"f"}});
    second.send(many("b", "a"));
    CHECK(second.still_running(200ms));
    first.run("COMMIT");
    CHECK(second.receive() == Rows{{"t"}, {"t"}});

    // One by one, in opposite order, the server ends one of the two: the caller's standard retry.
    first.run("BEGIN; SELECT outbox.enqueue('t', operation_id => 'c')");
    second.run("BEGIN; SELECT outbox.enqueue('t', operation_id => 'd')");
    first.send("SELECT outbox.enqueue('t', operation_id => 'd')");
    CHECK(first.still_running(100ms));
    second.send("SELECT outbox.enqueue('t', operation_id => 'c')");
    auto one = state_of(first);
    if (one == "40P01") {
        first.run("ROLLBACK");
    }
    auto other = state_of(second);
    CHECK((one == "40P01") != (other == "40P01"));
}

TEST_CASE("of two retries of a failed one, one arms it and one replays") {
    Database database;
    auto first = database.connect();
    auto second = database.connect();
    first.query(kEnqueue);
    bring_to(first, "op-1", "failed");
    const std::string retry =
        "SELECT status, replayed FROM outbox.enqueue('create_ticket', '{\"title\": \"x\"}', "
        "'op-1', "
        "retry_failed => true)";
    first.run("BEGIN");
    CHECK(first.query(retry) == Rows{{"pending", "f"}});
    second.send(retry);
    CHECK(second.still_running(200ms));
    first.run("COMMIT");
    CHECK(second.receive() == Rows{{"pending", "t"}});
    CHECK(first.text("SELECT count(*) FROM outbox.queue") == "1");

    // The first takes its retry back: the second arms it.
    bring_to(first, "op-1", "failed");
    first.run("BEGIN");
    first.query(retry);
    second.send("SELECT outbox.retry('op-1', 'again')");
    CHECK(second.still_running(200ms));
    first.run("ROLLBACK");
    CHECK(second.receive() == Rows{{"armed"}});
    CHECK(first.text("SELECT count(*) FROM outbox.queue") == "1");
    CHECK(first.text("SELECT count(*) FROM outbox.outcome") == "0");
}

TEST_CASE("eight planners, one id each time, one operation") {
    Database database;
    auto session = database.connect();
    std::vector<std::thread> planners;
    for (int p = 0; p < 8; ++p) {
        planners.emplace_back([&database, p] {
            auto own = database.connect();
            for (int i = 0; i < 50; ++i) {
                own.run("BEGIN");
                own.query("SELECT outbox.enqueue('t', run_id => $1)", {"run-" + std::to_string(i)});
                own.run((i + p) % 3 == 0 ? "ROLLBACK" : "COMMIT");
            }
        });
    }
    for (auto& planner : planners) {
        planner.join();
    }
    CHECK(session.text("SELECT count(*) FROM outbox.operation") == "50");
    CHECK(session.text("SELECT count(*) FROM outbox.queue") == "50");
    // Five or six of eight committed: all but the first of them replayed.
    CHECK(
        session.text("SELECT count(*) FROM (SELECT operation_id FROM outbox.event "
                     "WHERE kind = 'replayed' GROUP BY 1 HAVING count(*) IN (4, 5)) e") == "50"
    );
}
