#include <thread>

#include "outbox/pg/client.hpp"
#include "outbox/pg/migrator.hpp"
#include "outbox/pg/pg_error.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/database.hpp"

using outbox::StoreError;
using outbox::pg::migrate;
using outbox::pg::schema_state;
using outbox::pg::SchemaFit;
using outbox::sql::Migration;
using tests::Database;

namespace {

std::vector<Migration> known_and(std::vector<Migration> more) {
    std::vector<Migration> all(outbox::sql::migrations().begin(), outbox::sql::migrations().end());
    for (auto& migration : more) {
        migration.number = static_cast<int>(all.size()) + 1;
        all.push_back(std::move(migration));
    }
    return all;
}

}  // namespace

TEST_CASE("migrate applies everything once, and says what is missing before") {
    auto database = Database::empty();
    auto before = schema_state(database.dsn());
    CHECK(before.fit == SchemaFit::missing);
    CHECK(before.pending.size() == outbox::sql::migrations().size());
    CHECK_THAT(before.message, ContainsSubstring("outboxd migrate"));
    auto names = migrate(database.dsn());
    CHECK(names.size() == outbox::sql::migrations().size());
    CHECK(names.front() == "0001_tables");
    CHECK(schema_state(database.dsn()).fit == SchemaFit::fits);
    CHECK(migrate(database.dsn()).empty());
    CHECK(
        database.connect().text("SELECT count(*) FROM outbox.migration") ==
        std::to_string(names.size())
    );
}

TEST_CASE("four migrators at once apply each migration once") {
    auto database = Database::empty();
    std::vector<std::vector<std::string>> done(4);
    std::vector<std::thread> threads;
    for (auto& names : done) {
        threads.emplace_back([&] { names = migrate(database.dsn()); });
    }
    std::size_t sum = 0;
    for (std::size_t i = 0; i < threads.size(); ++i) {
        threads[i].join();
        sum += done[i].size();
    }
    CHECK(sum == outbox::sql::migrations().size());
    CHECK(schema_state(database.dsn()).fit == SchemaFit::fits);
}

TEST_CASE("too old, too new, altered") {
    auto database = Database::empty();
    migrate(database.dsn());
    auto next = known_and({{0, "x_more", "CREATE TABLE outbox.more (i int)", "c1", false}});
    auto old = schema_state(database.dsn(), next);
    CHECK(old.fit == SchemaFit::too_old);
    CHECK(old.pending == std::vector<std::string>{"x_more"});
    CHECK(migrate(database.dsn(), next) == std::vector<std::string>{"x_more"});
    // A newer one that breaks nothing is no obstacle to this build.
    CHECK(schema_state(database.dsn()).fit == SchemaFit::fits);

    auto breaking = known_and({next.back(), {0, "x_breaking", "SELECT 1", "c2", true}});
    migrate(database.dsn(), breaking);
    CHECK(schema_state(database.dsn()).fit == SchemaFit::too_new);
    CHECK_THROWS_AS(migrate(database.dsn()), StoreError);

    auto altered = breaking;
    altered[0].checksum = "other";
    CHECK(schema_state(database.dsn(), altered).fit == SchemaFit::altered);
    CHECK_THROWS_AS(migrate(database.dsn(), altered), StoreError);
}

TEST_CASE("a migration that fails leaves nothing behind") {
    auto database = Database::empty();
    migrate(database.dsn());
    auto bad =
        known_and({{0, "x_bad", "CREATE TABLE outbox.half (i int); SELECT 1/0", "c", false}});
    CHECK_THROWS_AS(migrate(database.dsn(), bad), StoreError);
    auto session = database.connect();
    CHECK(session.text("SELECT to_regclass('outbox.half') IS NULL") == "t");
    CHECK(session.text("SELECT count(*) FROM outbox.migration WHERE name = 'x_bad'") == "0");
}

TEST_CASE("a migration waits for a lock in short tries, and others pass in between") {
    auto database = Database::empty();
    migrate(database.dsn());
    auto next =
        known_and({{0, "x_alter", "ALTER TABLE outbox.tool ADD COLUMN extra int", "c", false}});
    auto reader = database.connect();
    reader.run("BEGIN; SELECT count(*) FROM outbox.tool");
    std::vector<std::string> names;
    std::thread migrator([&] { names = migrate(database.dsn(), next); });
    std::this_thread::sleep_for(std::chrono::milliseconds(2300));  // longer than lock_timeout
    reader.run("COMMIT");
    migrator.join();
    CHECK(names == std::vector<std::string>{"x_alter"});
}

TEST_CASE("the namespace is recorded at the first start and never changes") {
    Database database;
    outbox::pg::Client client(database.dsn());
    CHECK(client.claim_namespace("default") == "default");
    CHECK(client.claim_namespace("other") == "default");
}

TEST_CASE("the command line's calls") {
    Database database;
    outbox::pg::Client client(database.dsn());
    outbox::pg::EnqueueCall call;
    call.tool = "ticket";
    call.operation_id = "op-1";
    call.arguments = R"({"title": "disk full"})";
    CHECK_THAT(client.enqueue(call), ContainsSubstring("\"replayed\":false"));
    CHECK_THAT(client.enqueue(call), ContainsSubstring("\"replayed\":true"));
    auto row = client.get("op-1");
    REQUIRE(row.has_value());
    CHECK_THAT(*row, ContainsSubstring("\"status\":\"pending\""));
    CHECK_FALSE(client.get("nobody").has_value());
    CHECK(client.events("op-1").size() == 1);
    CHECK(client.list({}).size() == 1);
    CHECK(
        client
            .list(
                {.statuses = {"failed", "pending"}, .tool = "ticket", .older_than = {}, .after = {}}
            )
            .size() == 1
    );
    CHECK(client.list({.statuses = {"failed"}, .tool = {}, .older_than = {}, .after = {}}).empty());
    CHECK(
        client.list({.statuses = {}, .tool = {}, .older_than = std::chrono::hours(1), .after = {}}
        ).empty()
    );
    CHECK(
        client.list({.statuses = {}, .tool = {}, .older_than = {}, .attention = true, .after = {}}
        ).empty()
    );
    CHECK(client.derive_id("ticket", R"({"title": "x"})", "run-1", 1).size() == 64);

    call.arguments = R"({"title": "another"})";
    try {
        (void)client.enqueue(call);
        FAIL("no error");
    } catch (const outbox::pg::SqlError& error) {
        CHECK(error.sqlstate() == "OB422");
        CHECK_FALSE(error.detail().empty());
        CHECK_FALSE(error.hint().empty());
    }
    REQUIRE(client.get("op-1").has_value());
    CHECK_FALSE(client.last_error("op-1").has_value());
    auto owner = database.connect();
    owner.run("UPDATE outbox.queue SET error = '{\"code\": \"http_503\", \"message\": \"busy\"}'");
    CHECK_THAT(client.last_error("op-1").value(), ContainsSubstring("http_503"));
    try {
        outbox::pg::Client nobody("host=/nonexistent dbname=x");
        FAIL("no error");
    } catch (const StoreError& error) {
        CHECK(error.kind() == StoreError::Kind::unavailable);
    }
}

TEST_CASE("the command line's calls refuse a schema that does not fit") {
    Database database;
    auto owner = database.connect();
    owner.run(
        "INSERT INTO outbox.migration (number, name, checksum, breaking) "
        "VALUES (9999, 'later', 'x', false)"
    );
    CHECK_NOTHROW(outbox::pg::Client(database.dsn()));  // newer, and harmless
    owner.run("UPDATE outbox.migration SET breaking = true WHERE number = 9999");
    CHECK_THROWS_AS(outbox::pg::Client(database.dsn()), outbox::pg::SchemaMismatch);
    owner.run("DELETE FROM outbox.migration WHERE number >= 7");
    CHECK_THROWS_AS(outbox::pg::Client(database.dsn()), outbox::pg::SchemaMismatch);
    owner.run("DROP SCHEMA outbox CASCADE");
    CHECK_THROWS_AS(outbox::pg::Client(database.dsn()), outbox::pg::SchemaMismatch);
}
