// Guards of the loops that only a fault at one place shows.
#include <boost/asio/steady_timer.hpp>

#include "tests/unit/core/engine_fixture.hpp"

using namespace outbox;
using namespace test;
using Script = FakeTool::Script;

// The statement took as long as the attempt may last: another daemon may have declared it dead.
TEST_CASE("a lease that took longer than the attempt may sends nothing") {
    MemoryStore store;
    Script script;
    auto settings = quick_settings();
    settings.margin = 1h;  // nobody declares it dead here
    Daemon daemon(store, settings);
    auto policy = quick_policy("t");
    policy.timeout = 100ms;
    int slow = 0;
    store.on_call = [&](MemoryStore::Method method) {
        if (method == MemoryStore::Method::lease && !store.row("a").started_at) slow = 1;
        return std::nullopt;
    };
    store.travel = [&]() -> boost::asio::awaitable<void> {
        boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor);
        timer.expires_after(slow == 1 ? 150ms : 0ms);
        if (slow == 1) slow = 2;
        co_await timer.async_wait(boost::asio::use_awaitable);
    };
    store.insert("t", "a");
    daemon.add_tool(policy, script);
    daemon.start();
    daemon.run_until([&] { return slow == 2 && !store.row("a").events.empty(); }, 30s);
    CHECK(script.calls.empty());
    CHECK(store.row("a").error->code == "not_sent_deadline");
    CHECK(store.row("a").attempts == 0);
}

TEST_CASE("without the first attempt's key nothing is sent") {
    MemoryStore store;
    Script script;
    Daemon daemon(store);
    store.insert("t", "a");
    store.row("a").request_hash = 6;  // nobody published it: another key could be a second effect
    daemon.add_tool(quick_policy("t"), script);
    daemon.start();
    daemon.run_until([&] { return !store.row("a").events.empty(); }, 30s);
    CHECK(script.calls.empty());
    CHECK(store.row("a").error->code == "not_sent_internal");
    CHECK(store.row("a").attempts == 0);
}

// Its own connection may have been the one that was away. The other half, that it judges once it
// was well for 15 s, takes 15 s: the simulation has that.
TEST_CASE("a daemon that has just come does not judge others") {
    MemoryStore store;
    Script script;
    Daemon daemon(store);
    run_coroutine(
        *daemon.io,
        store.heartbeat({.id = WorkerId("other"), .name = "", .version = "", .tools = {}}),
        5s
    );
    store.insert("t", "a");
    auto& row = store.row("a");
    row.status = Status::attempting;
    row.attempts = 1;
    row.leased_by = WorkerId("other");
    store.advance(16s);
    row.due_at = row.deadline_at = store.now() + 1h;
    daemon.add_tool(quick_policy("t"), script);
    daemon.start();
    const auto passes = [&] { return store.calls[MemoryStore::Method::maintain]; };
    daemon.run_until([&] { return passes() >= 5; }, 30s);
    CHECK(row.status == Status::attempting);
    CHECK(row.events.empty());
}

TEST_CASE("a late answer that shows a second effect is counted") {
    MemoryStore store;
    Script script;
    Daemon daemon(store);
    script.execute_takes = 60ms;
    script.execute = [](const auto&) { return Succeeded{.result = Json("T-1"), .note = ""}; };
    store.insert("t", "a");
    daemon.add_tool(quick_policy("t"), script);
    daemon.start();
    daemon.run_until([&] { return script.running == 1; }, 30s);
    auto& row = store.row("a");  // as others would have left it: declared dead, tried again
    row.status = Status::succeeded;
    row.result = Json("T-2");
    row.epoch += 4;
    daemon.run_until([&] { return daemon.observer.counts["late_result"] == 1; }, 30s);
    CHECK(daemon.observer.counts["duplicate_effect"] == 1);
    CHECK(row.attention == AttentionReason::duplicate_effect);
    CHECK(to_text(row.result) == "\"T-2\"");
    CHECK(daemon.log.says("a late answer shows a second effect"));
}
