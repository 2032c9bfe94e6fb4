#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "outbox/pg/dsn.hpp"
#include "outbox/pg/lane.hpp"
#include "sql/queries.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/store_fixture.hpp"

using namespace std::chrono_literals;
using outbox::StoreError;
using outbox::pg::Lane;
using outbox::pg::Session;
using outbox::pg::SqlError;
using tests::Database;
using tests::wait_for;
using Kind = StoreError::Kind;

namespace {

// Remembers the statements it was told about; the rest of the interface is not called by lanes.
class Statements : public outbox::Observer {
 public:
    void leased(std::size_t) override {}
    void attempt_started(std::string_view, std::chrono::nanoseconds) override {}
    void attempt_ended(std::string_view, const outbox::Outcome&, std::chrono::nanoseconds)
        override {}
    void became_unknown(std::string_view, outbox::Cause) override {}
    void probed(std::string_view, const outbox::Verdict&) override {}
    void completed(std::size_t) override {}
    void fenced(std::string_view) override {}
    void late_result(std::string_view) override {}
    void duplicate_effect(std::string_view) override {}
    void reconciled_pass() override {}
    void slots(std::string_view, int, int) override {}
    void statement_done(std::string_view name, std::chrono::nanoseconds took) override {
        std::scoped_lock lock(mutex_);
        CHECK(took > 0ns);
        names_ += std::string(name) + " ";
    }
    void database_error(StoreError::Kind) override {}
    void database_up(bool) override {}
    [[nodiscard]] std::string names() {
        std::scoped_lock lock(mutex_);
        return names_;
    }

 private:
    std::mutex mutex_;
    std::string names_;
};

const std::string kFails = "SELECT 1/0";
const std::string kPid = "SELECT pg_backend_pid()";
const std::string kSettings =
    "SELECT current_setting('statement_timeout') || ' ' || current_setting('lock_timeout') || ' ' "
    "|| current_setting('idle_in_transaction_session_timeout') || ' ' "
    "|| current_setting('synchronous_commit') || ' ' || current_setting('application_name')";

std::string one(Lane& lane, const std::string& text) {
    auto work = [&text](Session& session) {
        return std::string(session.read(text, {})[0][0].c_str());
    };
    return wait_for(lane.run(work));
}

Kind failure(Lane& lane, const std::string& text, bool write) {
    auto work = [&](Session& session) {
        write ? session.write(text, {}) : session.read(text, {});
        return 0;
    };
    try {
        wait_for(lane.run(work));
    } catch (const StoreError& error) {
        return error.kind();
    }
    FAIL("no error: " + text);
    return Kind::bug;
}

}  // namespace

TEST_CASE("a lane runs jobs on one thread and one connection and comes back to the caller") {
    Database database;
    Lane lane(database.dsn(), {}, nullptr);
    boost::asio::io_context context;
    std::thread::id inside;
    std::thread::id after;
    int sum = 0;
    auto caller = [&]() -> boost::asio::awaitable<void> {
        for (int i = 0; i < 100; ++i) {
            auto work = [&inside, i](Session& session) {
                inside = std::this_thread::get_id();
                return session.read(kPid, {})[0][0].as<int>() > 0 ? i : -1000;
            };
            sum += co_await lane.run(work);
        }
        after = std::this_thread::get_id();
    };
    auto done = boost::asio::co_spawn(context, caller(), boost::asio::use_future);
    context.run();
    done.get();
    CHECK(sum == 4950);
    CHECK(after == std::this_thread::get_id());
    CHECK(inside != after);
    CHECK(
        database.connect().text("SELECT count(DISTINCT pid) FROM pg_stat_activity WHERE "
                                "datname = current_database() AND application_name = 'outboxd'"
        ) == "1"
    );
}

TEST_CASE("sessions carry their time-outs, their flush and their name") {
    Database database;
    database.connect().run("ALTER DATABASE " + database.name() + " SET synchronous_commit = off");
    Lane lane(database.dsn(), {.statement_timeout = 1500ms, .lock_timeout = 250ms}, nullptr);
    CHECK(one(lane, kSettings) == "1500ms 250ms 10s on outboxd");
    Lane named(database.dsn() + " application_name=mine", {}, nullptr);
    CHECK_THAT(one(named, kSettings), ContainsSubstring("mine"));
}

TEST_CASE("connection strings: our defaults go first, so that the operator's win") {
    using outbox::pg::with_defaults;
    CHECK_THAT(with_defaults("host=x connect_timeout=9"), ContainsSubstring("connect_timeout=5 "));
    CHECK(with_defaults("host=x connect_timeout=9").ends_with(" host=x connect_timeout=9"));
    auto plain = with_defaults("postgresql://u@h/db");
    CHECK(plain.starts_with("postgresql://u@h/db?fallback_application_name=outboxd&"));
    CHECK_FALSE(plain.ends_with("&"));
    CHECK(with_defaults("postgres://h/db?connect_timeout=9").ends_with("&connect_timeout=9"));
    CHECK_FALSE(with_defaults("postgres://h/db?").ends_with("&"));
}

TEST_CASE("a killed backend: in doubt for a write, unavailable for a read, then a new session") {
    Database database;
    Lane lane(database.dsn(), {}, nullptr);
    auto admin = database.connect();
    for (bool write : {true, false}) {
        auto pid = one(lane, kPid);
        admin.query("SELECT pg_terminate_backend($1::int, 5000)", {pid});
        CHECK(failure(lane, kPid, write) == (write ? Kind::in_doubt : Kind::unavailable));
        auto next = one(lane, kPid);  // one error each, never a silent change of sessions
        CHECK(next != pid);
    }
}

TEST_CASE("what the server says is sorted by kind") {
    Database database;
    Lane lane(database.dsn(), {.statement_timeout = 1000ms, .lock_timeout = 100ms}, nullptr);
    CHECK(failure(lane, kFails, true) == Kind::data);
    CHECK(failure(lane, "SELECT nonsense", true) == Kind::bug);
    CHECK(failure(lane, "SELECT pg_sleep(3)", true) == Kind::unavailable);
    CHECK(
        failure(lane, "SELECT '\\u0000'::jsonb, '{\"a\": \"\\u0000\"}'::jsonb", true) == Kind::data
    );
    CHECK(
        failure(lane, "INSERT INTO outbox.operation (operation_id, tool) VALUES ('', 'x')", true) ==
        Kind::data
    );
}

TEST_CASE("locks, read-only servers, serialization failures and deadlocks") {
    Database database;
    auto other = database.connect();
    other.run("CREATE TABLE n (i int PRIMARY KEY); INSERT INTO n VALUES (1), (2)");
    other.run("BEGIN; UPDATE n SET i = i");
    Lane lane(database.dsn(), {.statement_timeout = 5000ms, .lock_timeout = 100ms}, nullptr);
    CHECK(failure(lane, "UPDATE public.n SET i = i", true) == Kind::conflict);
    other.run("ROLLBACK");
    CHECK(outbox::pg::kind_of("40001") == Kind::conflict);
    CHECK(outbox::pg::kind_of("40P01") == Kind::conflict);
    CHECK(outbox::pg::kind_of("40003") == Kind::in_doubt);
    CHECK(outbox::pg::kind_of("53300") == Kind::unavailable);
    CHECK(outbox::pg::kind_of("57P01") == Kind::unavailable);
    CHECK(outbox::pg::kind_of("OB422") == Kind::data);
    CHECK(outbox::pg::kind_of("42501") == Kind::bug);
    CHECK(outbox::pg::kind_of("") == Kind::bug);
    other.run("ALTER DATABASE " + database.name() + " SET default_transaction_read_only = on");
    Lane standby(database.dsn(), {}, nullptr);
    CHECK(failure(standby, "UPDATE public.n SET i = i", true) == Kind::unavailable);

    // Exceptions that libpqxx 6.4 does not call sql_error.
    Database fresh;
    auto first = fresh.connect();
    first.run("CREATE TABLE n (i int PRIMARY KEY, v int); INSERT INTO n VALUES (1, 0), (2, 0)");
    first.run("SET deadlock_timeout = '1min'");  // so the lane's session is the one that finds it
    first.run("BEGIN; UPDATE n SET v = 1 WHERE i = 2");
    Lane second(fresh.dsn(), {.statement_timeout = 10'000ms, .lock_timeout = 8'000ms}, nullptr);
    std::thread closing([&] {
        std::this_thread::sleep_for(100ms);
        first.run("UPDATE n SET v = 1 WHERE i = 1");
    });
    auto start = std::chrono::steady_clock::now();
    CHECK(
        failure(
            second,
            "WITH a AS (UPDATE public.n SET v = 2 WHERE i = 1 RETURNING i) "
            "UPDATE public.n SET v = 2 WHERE i = 2 AND (SELECT count(*) FROM a) = 1",
            true
        ) == Kind::conflict
    );
    CHECK(std::chrono::steady_clock::now() - start < 7s);  // not the lock time-out
    closing.join();
}

TEST_CASE("an error of the server keeps its parts") {
    Database database;
    auto work = [](Session& session) {
        static const std::string text =
            "DO $$ BEGIN RAISE EXCEPTION 'no such tool' USING ERRCODE = 'OB404', "
            "DETAIL = 'it is not in the catalogue', HINT = 'did you mean x?'; END $$";
        session.write(text, {});
        return 0;
    };
    Lane lane(database.dsn(), {}, nullptr);
    try {
        wait_for(lane.run(work));
        FAIL("no error");
    } catch (const SqlError& error) {
        CHECK(error.kind() == Kind::data);
        CHECK(error.sqlstate() == "OB404");
        CHECK(error.message() == "no such tool");
        CHECK(error.detail() == "it is not in the catalogue");
        CHECK(error.hint() == "did you mean x?");
    }
}

TEST_CASE("a server that is not there is unavailable, and not asked in a busy loop") {
    Lane lane("host=/nonexistent dbname=x", {}, nullptr);
    CHECK(failure(lane, kPid, true) == Kind::unavailable);
    auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < 1000; ++i) {
        if (failure(lane, kPid, true) != Kind::unavailable) {
            FAIL("another kind");
        }
    }
    CHECK(std::chrono::steady_clock::now() - start < 15s);  // a back-off each time would be minutes

    // And found again once it is there.
    Database database;
    auto dsn = database.dsn() + " user=late_comer";
    Lane late(dsn, {}, nullptr);
    CHECK(failure(late, kPid, true) == Kind::unavailable);
    database.connect().run("CREATE ROLE late_comer LOGIN");
    std::string pid;
    for (int i = 0; i < 100 && pid.empty(); ++i) {
        std::this_thread::sleep_for(50ms);
        try {
            pid = one(late, kPid);
        } catch (const StoreError& error) {
            CHECK(error.kind() == Kind::unavailable);
        }
    }
    CHECK_FALSE(pid.empty());
}

TEST_CASE("NUL never reaches a parameter, and other exceptions come out as bugs") {
    Database database;
    outbox::pg::PgStore store(database.dsn(), outbox::WorkerId(tests::kWorker), nullptr);
    outbox::WorkerInfo worker{outbox::WorkerId(tests::kWorker), std::string("a\0b", 3), "1", {}};
    CHECK_THROWS_AS(wait_for(store.heartbeat(worker)), StoreError);
    CHECK(database.connect().text("SELECT count(*) FROM outbox.worker") == "0");

    Lane lane(database.dsn(), {}, nullptr);
    auto work = [](Session&) -> int { throw std::out_of_range("mine"); };
    try {
        wait_for(lane.run(work));
        FAIL("no error");
    } catch (const StoreError& error) {
        CHECK(error.kind() == Kind::bug);
        CHECK_THAT(std::string(error.what()), ContainsSubstring("mine"));
    }
}

TEST_CASE("statements are timed under the names of their files") {
    Database database;
    Statements statements;
    outbox::pg::PgStore store(database.dsn(), outbox::WorkerId(tests::kWorker), &statements);
    wait_for(store.heartbeat({outbox::WorkerId(tests::kWorker), "n", "1", {}}));
    wait_for(store.maintain(true));
    // Nothing is due: one look, and no more.
    CHECK(statements.names() == "heartbeat check_timeline settle_timeline find_due ");
    database.connect().run(
        "INSERT INTO outbox.tool (tool, effect, revision) VALUES ('t', 'read', 'r'); "
        "INSERT INTO outbox.operation (operation_id, tool, expires_at) "
        "VALUES ('a', 't', now() - interval '1 s')"
    );
    wait_for(store.maintain(true));
    CHECK(
        statements.names() ==
        "heartbeat check_timeline settle_timeline find_due "
        "find_due expire_operations announce_done expire_leases settle_compensations promote_due "
    );
}

TEST_CASE(
    "a prepared statement that the server lost, or whose answer a migration changed, is prepared "
    "anew in a new session"
) {
    Database database;
    const outbox::pg::SessionSettings hot{.hot = true};
    Lane lane(database.dsn(), hot, nullptr);
    const auto fates = [](Session& session) {
        return session.read(outbox::sql::read_fates, {"{1}", "{1}", "{succeeded}", "{NULL}"})
            .size();
    };
    const auto pid = one(lane, kPid);
    CHECK(wait_for(lane.run(fates)) == 1);
    CHECK(wait_for(lane.run(fates)) == 1);
    CHECK(one(lane, kPid) == pid);
    CHECK(one(lane, "SELECT string_agg(name, ' ') FROM pg_prepared_statements") == "read_fates");
    CHECK(one(lane, "SELECT current_setting('plan_cache_mode')") == "force_generic_plan");

    auto lose = [](Session& session) { return session.read("DEALLOCATE ALL", {}).size(); };
    wait_for(lane.run(lose));
    try {
        wait_for(lane.run(fates));
        FAIL("the statement was gone");
    } catch (const StoreError& error) {
        CHECK(error.kind() == Kind::unavailable);
    }
    CHECK(wait_for(lane.run(fates)) == 1);
    CHECK(one(lane, kPid) != pid);
}

// As agents do that hang up all at once while their calls are being recorded.
TEST_CASE("callers that are cancelled just when the lane is done with them leave nothing behind") {
    Database database;
    Lane lane(database.dsn(), {}, nullptr);
    constexpr int kCallers = 300;
    for (int round = 0; round < 10; ++round) {
        boost::asio::io_context io;
        std::vector<boost::asio::cancellation_signal> signals(kCallers);
        int answered = 0;
        int cut = 0;  // before it came to the lane
        for (auto& signal : signals) {
            boost::asio::co_spawn(
                io,
                lane.run([](Session&) { return 7; }),
                boost::asio::bind_cancellation_slot(
                    signal.slot(),
                    [&](std::exception_ptr error, int answer) {
                        if (error) {
                            ++cut;
                        } else {
                            answered += answer == 7 ? 1 : 0;
                        }
                    }
                )
            );
        }
        for (auto& signal : signals) {
            io.poll_one();
            signal.emit(boost::asio::cancellation_type::all);
        }
        io.run_for(60s);
        CHECK(answered + cut == kCallers);
        CHECK(answered > 0);
    }
}
