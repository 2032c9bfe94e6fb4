#include <signal.h>

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <functional>
#include <map>
#include <thread>

#include "outbox/pg/done_listener.hpp"
#include "outbox/pg/listener.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/store_fixture.hpp"

using namespace std::chrono_literals;
using outbox::pg::Listener;
using tests::Database;

namespace {

// A listener whose wake-ups are counted on this thread.
class Ears {
 public:
    explicit Ears(const std::string& dsn)
        : listener(
              {dsn, {"ticket", "mail"}, 300ms},
              context.get_executor(),
              [this](const std::string& tool) { ++woken[tool]; }
          ) {
        listener.start();
    }
    bool until(const std::function<bool()>& condition, std::chrono::milliseconds limit = 30s) {
        auto end = std::chrono::steady_clock::now() + limit;
        while (std::chrono::steady_clock::now() < end) {
            context.restart();
            context.run_for(5ms);
            if (condition()) {
                return true;
            }
        }
        return false;
    }
    boost::asio::io_context context;
    std::map<std::string, int> woken;
    Listener listener;
};

bool sleeps(tests::Session& session, const std::string& tool) {
    return session.text(
               "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND "
               "mode = 'ExclusiveLock' AND granted AND classid = 1869968504 AND "
               "objid = (hashtext($1)::bigint & 4294967295)::oid AND database = "
               "(SELECT oid FROM pg_database WHERE datname = current_database())",
               {tool}
           ) == "1";
}

void insert(tests::Session& session, const std::string& id, const std::string& tool) {
    session.query("INSERT INTO outbox.operation (operation_id, tool) VALUES ($1, $2)", {id, tool});
}

}  // namespace

TEST_CASE("a tool without work falls asleep, is polled once more, and an insert wakes it") {
    Database database;
    auto session = database.connect();
    Ears ears(database.dsn());
    REQUIRE(ears.until([&] { return ears.woken["ticket"] == 1 && ears.woken["mail"] == 1; }));
    CHECK(ears.listener.listening());
    CHECK_FALSE(sleeps(session, "ticket"));  // nobody said that there is no work

    auto start = std::chrono::steady_clock::now();
    ears.listener.polled("ticket", false);
    REQUIRE(ears.until([&] { return ears.woken["ticket"] == 2; }));
    CHECK(std::chrono::steady_clock::now() - start >= 100ms);
    CHECK(sleeps(session, "ticket"));
    CHECK_FALSE(sleeps(session, "mail"));

    insert(session, "op-1", "ticket");
    REQUIRE(ears.until([&] { return ears.woken["ticket"] == 3; }));
    CHECK(ears.until([&] { return !sleeps(session, "ticket"); }));
    // Awake: nothing is sent, and the lock is not taken before 100 ms without work.
    insert(session, "op-2", "ticket");
    insert(session, "op-3", "mail");
    CHECK_FALSE(
        ears.until([&] { return ears.woken["ticket"] > 3 || ears.woken["mail"] > 1; }, 300ms)
    );

    // Asleep again, found work by its idle poll: the lock goes back.
    ears.listener.polled("ticket", false);
    REQUIRE(ears.until([&] { return sleeps(session, "ticket"); }));
    ears.listener.polled("ticket", true);
    CHECK(ears.until([&] { return !sleeps(session, "ticket"); }));
}

TEST_CASE("asked to stop, it gives its locks back without being waited for") {
    Database database;
    auto session = database.connect();
    Ears ears(database.dsn());
    REQUIRE(ears.until([&] { return ears.woken["ticket"] == 1; }));
    ears.listener.polled("ticket", false);
    REQUIRE(ears.until([&] { return sleeps(session, "ticket"); }));
    ears.listener.request_stop();
    ears.listener.request_stop();
    CHECK(ears.until([&] { return !sleeps(session, "ticket"); }));
    CHECK(ears.until([&] { return !ears.listener.listening(); }));
    ears.listener.polled("ticket", false);
    CHECK_FALSE(ears.until([&] { return sleeps(session, "ticket"); }, 300ms));
    ears.listener.stop();
}

TEST_CASE("an open planner transaction keeps the daemon awake, without waiting for it") {
    Database database;
    auto session = database.connect();
    auto planner = database.connect();
    Ears ears(database.dsn());
    REQUIRE(ears.until([&] { return ears.woken["ticket"] == 1; }));
    planner.run("BEGIN");
    insert(planner, "op-1", "ticket");
    ears.listener.polled("ticket", false);
    CHECK_FALSE(
        ears.until([&] { return ears.woken["ticket"] > 1 || sleeps(session, "ticket"); }, 500ms)
    );
    CHECK(
        session.text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted") ==
        "0"
    );
    planner.run("COMMIT");
    // Then it falls asleep and looks once more, which finds op-1.
    CHECK(ears.until([&] { return ears.woken["ticket"] == 2 && sleeps(session, "ticket"); }));
}

TEST_CASE("a lost LISTEN connection takes its locks along and comes back with a look at everything"
) {
    Database database;
    auto session = database.connect();
    Ears ears(database.dsn());
    REQUIRE(ears.until([&] { return ears.woken["ticket"] == 1; }));
    ears.listener.polled("ticket", false);
    REQUIRE(ears.until([&] { return sleeps(session, "ticket"); }));
    session.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
        "datname = current_database() AND application_name = 'outboxd'"
    );
    auto before = ears.woken["mail"];
    REQUIRE(ears.until([&] { return ears.woken["mail"] == before + 1; }));
    CHECK_FALSE(sleeps(session, "ticket"));
    ears.listener.polled("ticket", false);
    REQUIRE(ears.until([&] { return sleeps(session, "ticket"); }));
    auto woken = ears.woken["ticket"];
    insert(session, "op-1", "ticket");
    CHECK(ears.until([&] { return ears.woken["ticket"] > woken; }));
}

TEST_CASE("the LISTEN connection is pinged and would be ended if it froze") {
    Database database;
    auto session = database.connect();
    Ears ears(database.dsn());
    REQUIRE(ears.until([&] { return ears.listener.listening(); }));
    auto pings = [&] {
        return session.text(
            "SELECT max(query_start)::text FROM pg_stat_activity WHERE "
            "datname = current_database() AND application_name = 'outboxd'"
        );
    };
    auto first = pings();
    CHECK(ears.until([&] { return pings() != first; }));
}

TEST_CASE("stop before start, twice, and while the server is away") {
    Database database;
    boost::asio::io_context context;
    Listener never(
        {database.dsn(), {"ticket"}, 1s}, context.get_executor(), [](const std::string&) {}
    );
    never.stop();
    never.start();
    never.start();
    never.stop();
    never.stop();
    Listener away(
        {"host=/nonexistent dbname=x", {"ticket"}, 1s},
        context.get_executor(),
        [](const std::string&) {}
    );
    away.start();
    std::this_thread::sleep_for(50ms);
    CHECK_FALSE(away.listening());
    auto start = std::chrono::steady_clock::now();
    away.stop();
    CHECK(std::chrono::steady_clock::now() - start < 15s);
}

TEST_CASE("a server process that is frozen holds up no stop, whoever listens") {
    Database database;
    tests::Session session(database.dsn());
    const auto backend = [&] {
        return session.text(
            "SELECT coalesce(max(pid), 0) FROM pg_stat_activity WHERE datname = current_database() "
            "AND pid <> pg_backend_pid() AND state = 'idle'"
        );
    };
    const auto frozen_stop = [&](auto& listener, std::chrono::milliseconds ping) {
        listener.start();
        while (!listener.listening()) std::this_thread::sleep_for(5ms);
        while (backend() == "0") std::this_thread::sleep_for(5ms);
        const auto pid = std::stoi(backend());
        REQUIRE(::kill(pid, SIGSTOP) == 0);
        std::this_thread::sleep_for(ping);  // it is asked for a sign of life, and gives none
        const auto start = std::chrono::steady_clock::now();
        listener.stop();
        const auto took = std::chrono::steady_clock::now() - start;
        ::kill(pid, SIGCONT);
        CHECK(took < 10s);  // TCP would give it up after 15
        while (backend() != "0") std::this_thread::sleep_for(5ms);
    };
    boost::asio::io_context context;
    Listener work({database.dsn(), {"ticket"}, 1s}, context.get_executor(), [](const auto&) {});
    frozen_stop(work, 1500ms);
    outbox::pg::DoneListener done(database.dsn(), context.get_executor(), [](const auto&) {});
    frozen_stop(done, 5500ms);
}
