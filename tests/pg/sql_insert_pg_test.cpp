#include "tests/support/catch.hpp"
#include "tests/support/database.hpp"

using tests::Database;
using tests::Row;
using tests::Rows;
using tests::SqlError;

TEST_CASE("a plain insert files the work in the same transaction") {
    Database database;
    auto session = database.connect();
    session.run("BEGIN; INSERT INTO outbox.operation (operation_id, tool) VALUES ('op-1', 'echo')");
    CHECK(session.text("SELECT count(*) FROM outbox.queue") == "1");
    session.run("ROLLBACK");
    CHECK(session.text("SELECT count(*) FROM outbox.queue") == "0");

    session.run(
        "INSERT INTO outbox.operation (operation_id, tool, priority, run_at, expires_at) VALUES "
        "('op-1', 'echo', 3, NULL, 'tomorrow'), ('op-2', 'mail', 0, now() + interval '1 hour', NULL)");
    CHECK(session.query("SELECT tool, status, priority, expires_at IS NOT NULL, lease_epoch, attempts "
                        "FROM outbox.queue ORDER BY seq") ==
          Rows{{"echo", "pending", "3", "t", "0", "0"}, {"mail", "scheduled", "0", "f", "0", "0"}});

    // A known id files nothing.
    session.run("INSERT INTO outbox.operation (operation_id, tool) VALUES ('op-1', 'echo') "
                "ON CONFLICT (operation_id) DO NOTHING");
    CHECK(session.text("SELECT count(*) FROM outbox.queue") == "2");
}
