#include <boost/asio/io_context.hpp>
#include <functional>

#include "outbox/pg/planner_lanes.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/run_coroutine.hpp"
#include "tests/support/store_fixture.hpp"

using namespace std::chrono_literals;
using outbox::pg::PlannerLanes;
using tests::Database;

namespace {

bool until(
    boost::asio::io_context& io, const std::function<bool()>& condition, std::chrono::seconds limit
) {
    const auto end = std::chrono::steady_clock::now() + limit;
    while (!condition()) {
        if (std::chrono::steady_clock::now() >= end) return false;
        io.restart();
        io.run_for(5ms);
    }
    return true;
}

}  // namespace

TEST_CASE("a planner's lanes record, look, and hear of the end of what is watched") {
    Database database;
    auto session = database.connect();
    boost::asio::io_context io;
    PlannerLanes lanes(database.dsn(), io.get_executor());
    CHECK(
        lanes.poll_interval() == 100ms
    );  // nobody listens yet: no connection before the first call

    outbox::pg::EnqueueCall call;
    call.tool = "ticket";
    call.run_id = "run-7";
    auto recording = lanes.enqueue(call);
    const auto receipt = test::run_coroutine(io, std::move(recording), 30s);
    const auto id = session.text("SELECT operation_id FROM outbox.operation");
    CHECK_THAT(receipt, ContainsSubstring(id));
    auto looking = lanes.get(id);
    CHECK_THAT(test::run_coroutine(io, std::move(looking), 30s), ContainsSubstring("pending"));
    auto missing = lanes.get("nobody");
    CHECK(test::run_coroutine(io, std::move(missing), 30s).empty());
    REQUIRE(until(io, [&] { return lanes.poll_interval() == 1000ms; }, 30s));

    outbox::Bell bell(io.get_executor());
    outbox::Bell other(io.get_executor());
    auto watch = lanes.watch(id, bell);
    const auto elsewhere = lanes.watch("another", other);
    const auto rung = [&](outbox::Bell& which, std::chrono::milliseconds limit) {
        auto waiting = which.wait(limit);
        return test::run_coroutine(io, std::move(waiting), 60s);
    };
    session.query("SELECT pg_notify('outbox_done', jsonb_build_array('x', $1::text)::text)", {id});
    CHECK(rung(bell, 30s));
    CHECK_FALSE(rung(other, 10ms));
    // What is no array of texts is left alone, and nothing is heard once the watch is gone.
    session.query(
        "SELECT pg_notify('outbox_done', 'nonsense'), pg_notify('outbox_done', '[7, null]')"
    );
    watch.reset();
    session.query("SELECT pg_notify('outbox_done', jsonb_build_array($1::text)::text)", {id});
    CHECK_FALSE(rung(bell, 300ms));

    // A listener that was cut comes back by itself; until then who waits looks more often.
    session.query(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() "
        "AND query LIKE '%outbox_done%' AND pid <> pg_backend_pid()"
    );
    watch = lanes.watch(id, bell);
    const auto heard = [&] {
        session.query("SELECT pg_notify('outbox_done', jsonb_build_array($1::text)::text)", {id});
        return rung(bell, 100ms);
    };
    CHECK(until(io, heard, 30s));
}

TEST_CASE("without a database a planner's calls say so") {
    boost::asio::io_context io;
    PlannerLanes lanes("host=/nonexistent", io.get_executor());
    outbox::pg::EnqueueCall call;
    call.tool = "ticket";
    call.run_id = "r";
    auto recording = lanes.enqueue(call);
    try {
        (void)test::run_coroutine(io, std::move(recording), 30s);
        FAIL("it was recorded");
    } catch (const outbox::StoreError& error) {
        CHECK(error.kind() == outbox::StoreError::Kind::unavailable);
    }
}
