// Whether the daemon gets anywhere: what /readyz is told.
#include "tests/unit/core/engine_fixture.hpp"

#include <optional>
#include <utility>

using namespace outbox;
using namespace test;

namespace {

// One daemon, one write tool `t`.
struct World {
    explicit World(EngineSettings settings = quick_settings())
        : daemon(store, std::move(settings)) {}
    MemoryStore store;
    FakeTool::Script script;
    Daemon daemon;
    void start() {
        daemon.add_tool(quick_policy("t"), script);
        daemon.start();
    }
};

}  // namespace

TEST_CASE("a loop that never gets anywhere is named, with its last error") {
    auto settings = quick_settings();
    settings.patience = 100ms;
    World world(std::move(settings));
    bool broken = true;
    world.store.on_call = [&](MemoryStore::Method method) -> std::optional<MemoryStore::Fault> {
        using Method = MemoryStore::Method;
        const bool hit = method == Method::lease || method == Method::claim;
        if (broken && hit) return MemoryStore::Fault{.kind = StoreError::Kind::bug};
        return std::nullopt;
    };
    world.start();
    world.daemon.run_until([&] { return world.daemon.engine->health().started; });
    CHECK(world.daemon.engine->health().troubles.empty());  // not at once
    world.daemon.run_until([&] { return world.daemon.engine->health().troubles.size() == 2; });
    const auto health = world.daemon.engine->health();
    CHECK(health.database);  // heartbeats are written all the while
    CHECK(health.troubles[0].first == "leaser");
    CHECK(health.troubles[1].first == "reconciler");
    CHECK(health.troubles[0].second.lasting >= 100ms);
    CHECK_FALSE(health.troubles[0].second.error.empty());
    CHECK(world.daemon.observer.counts["reconciled_pass"] == 0);
    broken = false;
    world.daemon.run_until([&] { return world.daemon.engine->health().troubles.empty(); });
    CHECK(world.daemon.observer.counts["reconciled_pass"] > 0);
    world.daemon.stop();
}

TEST_CASE("a heartbeat that is refused says how, at once") {
    World world;
    world.start();
    world.daemon.run_until([&] { return world.daemon.engine->health().started; });
    world.store.set_down(true);
    world.daemon.run_until([&] { return !world.daemon.engine->health().troubles.empty(); });
    CHECK(world.daemon.engine->health().troubles[0].first == "heartbeat");
    world.store.set_down(false);
    world.daemon.run_until([&] { return world.daemon.engine->health().troubles.empty(); });
    CHECK(world.daemon.engine->health().database);
    world.daemon.stop();
}
