#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <string>

#include "outbox/engine.hpp"
#include "tests/support/fake_tool.hpp"
#include "tests/support/memory_store.hpp"
#include "tests/support/recorders.hpp"
#include "tests/support/run_coroutine.hpp"

namespace test {

using namespace std::chrono_literals;

// Everything fast: a test of the loops takes milliseconds.
inline outbox::ToolPolicy quick_policy(std::string name) {
    outbox::ToolPolicy policy;
    policy.name = std::move(name);
    policy.timeout = 10s;  // tests of the deadline set their own
    policy.request_hash = 7;
    policy.retry.initial = 2ms;
    policy.retry.max = 10ms;
    policy.reconcile.settle = 5ms;
    policy.reconcile.interval = 5ms;
    policy.reconcile.max_interval = 20ms;
    return policy;
}

inline outbox::EngineSettings quick_settings(const std::string& worker = "w1") {
    outbox::EngineSettings settings;
    settings.worker = {.id = outbox::WorkerId(worker), .name = worker, .version = "0", .tools = {}};
    settings.concurrency = 8;
    settings.margin = 50ms;
    settings.poll_busy = 1ms;
    settings.poll_idle = 20ms;
    settings.maintain_poll = 10ms;
    settings.drain_timeout = 2s;
    settings.cut_grace = 200ms;
    settings.flush_timeout = 200ms;
    settings.heartbeat = 50ms;
    return settings;
}

// One daemon's engine over a store that may outlive it: crash() ends it as SIGKILL would.
class Daemon {
 public:
    explicit Daemon(MemoryStore& store, outbox::EngineSettings settings = quick_settings())
        : store_(store), settings_(std::move(settings)) {}
    ~Daemon() { crash(); }

    void add_tool(outbox::ToolPolicy policy, FakeTool::Script& script) {
        tools.add({std::move(policy), std::make_unique<FakeTool>(script)});
    }
    void start() {
        engine = std::make_unique<outbox::Engine>(
            io->get_executor(), store_, tools, observer, log, failpoints, settings_
        );
        boost::asio::co_spawn(*io, engine->run(), [this](std::exception_ptr error) {
            ended = true;
            REQUIRE_FALSE(error);
        });
    }
    template <class Condition>
    void run_until(Condition condition, std::chrono::milliseconds limit = 30s) {
        test::run_until(*io, condition, limit);
    }
    void run_for(std::chrono::milliseconds duration) {
        io->restart();
        io->run_for(duration);
    }
    void run_until_settled(const std::string& id) {
        run_until([&] { return is_final(id); });
    }
    [[nodiscard]] bool is_final(const std::string& id) {
        const auto status = store_.row(id).status;
        return status == outbox::Status::succeeded || status == outbox::Status::failed;
    }
    void stop() {
        engine->stop();
        run_until([this] { return ended; });
    }
    void crash() {
        engine.reset();
        io.reset();
    }

    std::unique_ptr<boost::asio::io_context> io = std::make_unique<boost::asio::io_context>(1);
    outbox::Toolset tools;
    CountingObserver observer;
    RecordingLog log;
    outbox::Failpoints failpoints;
    std::unique_ptr<outbox::Engine> engine;
    bool ended = false;

 private:
    MemoryStore& store_;
    outbox::EngineSettings settings_;
};

}  // namespace test
