#include "outbox/completer.hpp"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <optional>
#include <string>
#include <utility>

#include "tests/support/memory_store.hpp"
#include "tests/support/recorders.hpp"
#include "tests/support/run_coroutine.hpp"

using namespace outbox;
using namespace test;
using namespace std::chrono_literals;

namespace {

struct Bench {
    boost::asio::io_context io{1};
    MemoryStore store;
    CountingObserver observer;
    RecordingLog log;
    Failpoints failpoints;
    Completer completer{io.get_executor(), store, observer, log, failpoints, {.max_batch = 4}};
    std::map<std::string, std::optional<Fate>> fates;
    bool ended = false;

    void run() {
        boost::asio::co_spawn(io, completer.run(), [this](std::exception_ptr) { ended = true; });
    }
    void write(const std::string& id, Json result = {}) {
        store.insert("t", id);
        Transition next;
        next.seq = store.row(id).intent.seq;
        next.id = OperationId(id);
        next.tool = "t";
        next.to = Status::succeeded;
        next.result = std::move(result);
        boost::asio::co_spawn(
            io,
            completer.write(next),
            [this, id](std::exception_ptr, std::optional<Fate> fate) { fates[id] = fate; }
        );
    }
    void run_until_written(std::size_t count) {
        run_until(io, [&] { return fates.size() == count; }, 3s);
    }
};

}  // namespace

TEST_CASE("whatever queued during a round trip goes in one call, up to the limit") {
    Bench bench;
    bench.run();
    for (int i = 0; i < 10; ++i) bench.write(std::to_string(i));
    bench.run_until_written(10);
    std::size_t rows = 0;
    for (const auto batch : bench.store.batches) {
        CHECK(batch <= 4);
        rows += batch;
    }
    CHECK(rows == 10);
    CHECK(bench.store.batches.size() <= 4);
    for (const auto& [id, fate] : bench.fates) CHECK(fate == Fate::applied);
}

TEST_CASE("one locked row holds up nobody else") {
    Bench bench;
    bench.run();
    for (int i = 0; i < 8; ++i) bench.write(std::to_string(i));
    bench.store.lock("5", true);
    bench.run_until_written(7);
    CHECK_FALSE(bench.fates.contains("5"));
    bench.write("later");
    bench.run_until_written(8);
    bench.store.lock("5", false);
    bench.run_until_written(9);
    CHECK(bench.fates["5"] == Fate::applied);
}

TEST_CASE("a batch in doubt is written again and found written") {
    Bench bench;
    bench.store.fail(MemoryStore::Method::complete, {StoreError::Kind::in_doubt, true});
    bench.run();
    bench.write("a");
    bench.write("b");
    bench.run_until_written(2);
    CHECK(bench.fates["a"] == Fate::applied);
    CHECK(bench.store.row("a").epoch == 1);
    CHECK(bench.observer.counts["fenced"] == 0);
}

TEST_CASE("a fenced write is told apart and filed") {
    Bench bench;
    bench.run();
    bench.write("a");
    bench.store.row("a").epoch = 9;
    bench.run_until_written(1);
    CHECK(bench.fates["a"] == Fate::fenced);
    CHECK(bench.store.row("a").event_kinds() == "late_result");
    CHECK(bench.observer.counts["late_result"] == 1);
}

TEST_CASE("stop writes what is queued; abandon gives it up; after the end nothing waits") {
    Bench bench;
    bench.store.set_down(true);
    bench.run();
    bench.write("a");
    bench.io.run_for(10ms);
    bench.completer.stop();
    bench.io.run_for(30ms);
    CHECK_FALSE(bench.ended);
    bench.store.set_down(false);
    bench.run_until_written(1);
    run_until(bench.io, [&] { return bench.ended; }, 1s);
    CHECK(bench.fates["a"] == Fate::applied);
    bench.write("b");
    bench.run_until_written(2);
    CHECK_FALSE(bench.fates["b"].has_value());

    Bench down;
    down.store.set_down(true);
    down.run();
    down.write("a");
    down.io.run_for(30ms);
    CHECK(down.fates.empty());
    down.completer.abandon();
    run_until(down.io, [&] { return down.ended; }, 1s);
    down.run_until_written(1);
    CHECK_FALSE(down.fates["a"].has_value());
}

TEST_CASE("what the other side worded is made storable, and cut at the limit") {
    Bench bench;
    bench.run();
    Json odd;
    odd.set("id", "T-1");
    odd.set("note", std::string("a\0b", 3));
    bench.write("odd", odd);
    bench.write("large", Json(std::string(100'000, 'x')));
    bench.run_until_written(2);
    CHECK(to_text(bench.store.row("odd").result) == "{\"id\":\"T-1\",\"note\":\"a\uFFFDb\"}");
    const auto& cut = bench.store.row("large").result;
    REQUIRE(cut.find("truncated") != nullptr);
    CHECK(to_text(cut).size() < 2'000);
}
