#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "outbox/clock_watch.hpp"
#include "outbox/completer.hpp"
#include "outbox/executor.hpp"
#include "outbox/failpoint.hpp"
#include "outbox/heartbeat.hpp"
#include "outbox/leaser.hpp"
#include "outbox/log.hpp"
#include "outbox/maintainer.hpp"
#include "outbox/observer.hpp"
#include "outbox/provider_keys.hpp"
#include "outbox/pulse.hpp"
#include "outbox/random.hpp"
#include "outbox/reconciler.hpp"
#include "outbox/store.hpp"
#include "outbox/task_group.hpp"
#include "outbox/tool.hpp"

namespace outbox {

struct EngineSettings {
    WorkerInfo worker;
    // Workers of this process whose configuration this one takes over from.
    std::vector<WorkerId> siblings = {};
    std::string key_namespace = "default";
    int concurrency = 256;
    int probe_concurrency = 64;
    std::size_t max_result = std::size_t{64} * 1024;  // limits.result
    std::chrono::milliseconds margin{10'000};
    std::chrono::milliseconds poll_busy{5};
    std::chrono::milliseconds poll_idle{1'000};
    std::chrono::milliseconds sweep{250};  // how often a leaser looks from the start
    std::chrono::milliseconds maintain_poll{750};
    std::chrono::milliseconds drain_timeout{30'000};
    std::chrono::milliseconds cut_grace{2'000};      // for the answers of what was cut
    std::chrono::milliseconds flush_timeout{5'000};  // for the last outcomes, at least
    std::chrono::milliseconds heartbeat{3'000};
    std::chrono::milliseconds patience{10'000};      // with a loop that fails: then not ready
    std::optional<std::uint64_t> seed;               // of the jitter; tests that replay set it
    std::shared_ptr<SharedLimits> limits = nullptr;  // with other outboxes; null: its own
};

// All loops of one outbox: owns them, starts them, stops them in order. Runs on the io thread.
// Store, tools, observer, log and failpoints belong to the application and outlive it. It is
// destroyed once run() returned and idle() is true, or when the io context runs no more (and
// before that is destroyed).
class Engine {
 public:
    Engine(
        asio::any_io_executor executor,
        Store& store,
        const Toolset& tools,
        Observer& observer,
        Log& log,
        Failpoints& failpoints,
        EngineSettings settings
    );
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    // Publishes the tools, runs the loops, and returns when stop() was called and all is recorded.
    asio::awaitable<void> run();

    // First: stop leasing, give back what was not dispatched, let attempts end (drain_timeout).
    // Second: do not wait for them. May be called at any time, also before run().
    void stop();
    // Another engine takes over (a reload): as stop(), but attempts end in their own time, which
    // their deadlines bound; drain_timeout is not asked. A stop() after it is a first one.
    void supersede();

    // From the listener: this daemon was woken.
    void wake() { leaser_.wake(); }
    // For the listener: called after every poll of a tool, with whether it found work.
    void on_polled(std::function<void(const std::string& tool, bool found)> callback) {
        leaser_.on_polled = std::move(callback);
    }
    [[nodiscard]] std::chrono::nanoseconds idle_for() const { return leaser_.idle_for(); }

    struct Health {
        bool started = false;   // the tools are published, the loops run
        bool database = false;  // the last heartbeat was written not long ago
        bool loops = true;      // no loop ended on a fault
        bool stopping = false;
        // Loops that have not got anywhere for a while, with the last error.
        std::vector<std::pair<std::string, Pulse::Trouble>> troubles;
    };
    [[nodiscard]] Health health() const;
    // A loop ended on a fault: the process should end with an error.
    [[nodiscard]] bool failed() const { return failed_; }
    // No coroutine of ours is left. When run() returned and this is false, a tool did not react to
    // being cut: the process should exit without waiting for it.
    [[nodiscard]] bool idle() const;
    [[nodiscard]] int attempts_in_flight() const { return leaser_.in_flight(); }
    [[nodiscard]] std::size_t probes_in_flight() const { return reconciler_.in_flight(); }
    [[nodiscard]] std::size_t outcomes_queued() const { return completer_.queued(); }

 private:
    asio::awaitable<bool> start();
    asio::awaitable<bool> publish();
    void report(const ToolDrift& drift);
    asio::awaitable<void> drain();
    asio::awaitable<void> flush();
    asio::awaitable<void> retire();
    asio::awaitable<void> stop_probes();
    void written(const Transition& transition);
    void clock_read(const ClockSample& sample);
    void timeline_changed(const TimelineChange& change);
    void progressed(const MaintenanceReport& report);
    void escaped(const std::string& name, const std::string& what);

    Store& store_;
    const Toolset& tools_;
    Observer& observer_;
    Log& log_;
    EngineSettings settings_;
    Random random_;
    ProviderKeys keys_;
    ClockWatch clock_;
    std::chrono::milliseconds longest_{0};  // of the tools' time-outs
    Completer completer_;
    Executor executor_;
    Leaser leaser_;
    Reconciler reconciler_;
    Maintainer maintainer_;
    Heartbeat heartbeat_;
    Pulse publishing_;
    TaskGroup leasing_;  // ends first
    TaskGroup claiming_;
    TaskGroup recording_;   // ends when everything is recorded
    TaskGroup supporting_;  // maintenance and heartbeat, to the end
    Bell stop_;
    bool started_ = false;
    bool stopping_ = false;
    bool draining_ = false;  // stop() was called, so drain_timeout counts
    bool aborting_ = false;
    bool failed_ = false;
};

}  // namespace outbox
