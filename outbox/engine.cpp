#include "outbox/engine.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace outbox {
namespace {

// The contract: a daemon judges others by their heartbeats only when its own connection was
// healthy for as long as it takes to be stale.
constexpr std::chrono::seconds kHealthyToJudge{15};

}  // namespace

Engine::Engine(
    asio::any_io_executor executor,
    Store& store,
    const Toolset& tools,
    Observer& observer,
    Log& log,
    Failpoints& failpoints,
    EngineSettings settings
)
    : store_(store),
      tools_(tools),
      observer_(observer),
      log_(log),
      settings_(std::move(settings)),
      random_(settings_.seed ? Random(*settings_.seed) : Random()),
      keys_(store, settings_.key_namespace),
      completer_(executor, store, observer, log, failpoints, {.max_result = settings_.max_result}),
      executor_(
          executor,
          completer_,
          keys_,
          observer,
          log,
          failpoints,
          random_,
          [this](const auto& name, const auto& what) { escaped(name, what); }
      ),
      leaser_(
          executor,
          store,
          tools,
          executor_,
          observer,
          log,
          failpoints,
          random_,
          {.worker = settings_.worker.id,
           .concurrency = settings_.concurrency,
           .margin = settings_.margin,
           .poll_busy = settings_.poll_busy,
           .poll_idle = settings_.poll_idle,
           .sweep = settings_.sweep,
           .limits = settings_.limits}
      ),
      reconciler_(
          executor,
          store,
          tools,
          completer_,
          keys_,
          observer,
          log,
          failpoints,
          random_,
          {.worker = settings_.worker.id,
           .concurrency = settings_.probe_concurrency,
           .margin = settings_.margin,
           .poll = settings_.poll_idle},
          [this](const auto& name, const auto& what) { escaped(name, what); }
      ),
      maintainer_(
          executor, store, observer, log, failpoints, random_, {.poll = settings_.maintain_poll}
      ),
      heartbeat_(executor, store, observer, log, settings_.worker, {.period = settings_.heartbeat}),
      leasing_(executor, [this](const auto& name, const auto& what) { escaped(name, what); }),
      claiming_(executor, [this](const auto& name, const auto& what) { escaped(name, what); }),
      recording_(executor, [this](const auto& name, const auto& what) { escaped(name, what); }),
      supporting_(executor, [this](const auto& name, const auto& what) { escaped(name, what); }),
      stop_(executor) {
    executor_.on_written = [this](const Transition& t) { written(t); };
    executor_.keep_handle = [this](OperationId id, Epoch attempt, std::string handle) {
        return store_.keep_handle(std::move(id), attempt, std::move(handle));
    };
    reconciler_.on_written = [this](const Transition& t) { written(t); };
    maintainer_.may_judge = [this] { return heartbeat_.healthy_for(kHealthyToJudge); };
    for (const auto& [name, entry] : tools_.all()) {
        longest_ = std::max(longest_, entry.policy.timeout);
    }
    reconciler_.distrusted = [this](BootClock::time_point started, const ToolPolicy& policy) {
        return clock_.distrusted(started, longest_ + policy.reconcile.settle);
    };
    reconciler_.take_attempt = [this](const auto& tool) { return leaser_.take(tool); };
    reconciler_.attempt_begins = [this](const auto& tool) { leaser_.spend(tool); };
    reconciler_.unseen_step = [this] { return clock_.unseen(); };
    store_.on_clock = [this](const ClockSample& sample) { clock_read(sample); };
    store_.on_timeline = [this](const TimelineChange& change) { timeline_changed(change); };
    maintainer_.on_progress = [this](const MaintenanceReport& report) { progressed(report); };
}

asio::awaitable<void> Engine::run() {
    auto starting = start();
    if (!co_await std::move(starting)) co_return;
    recording_.spawn("completer", completer_.run());
    supporting_.spawn("heartbeat", heartbeat_.run());
    supporting_.spawn("maintainer", maintainer_.run());
    claiming_.spawn("reconciler", reconciler_.run());
    leasing_.spawn("leaser", leaser_.run());
    started_ = true;

    while (!stopping_) co_await stop_.wait();
    // Without stop() it was superseded: the daemon goes on under another configuration.
    log_.info(
        draining_ ? "stopping: no new attempts" : "the old configuration makes no new attempts",
        {{"in_flight", std::to_string(attempts_in_flight())}}
    );
    auto draining = drain();
    co_await std::move(draining);
    auto flushing = flush();
    co_await std::move(flushing);
    maintainer_.stop();
    heartbeat_.stop();
    co_await supporting_.join(settings_.flush_timeout);
    auto retiring = retire();
    co_await std::move(retiring);
    log_.info(draining_ ? "stopped" : "the old configuration has ended");
}

void Engine::stop() {
    if (draining_) {
        aborting_ = true;
        reconciler_.interrupt_join();
    }
    executor_.interrupt_join();
    reconciler_.interrupt_resends();
    draining_ = true;
    stopping_ = true;
    stop_.ring();
}

void Engine::supersede() {
    stopping_ = true;
    stop_.ring();
}

Engine::Health Engine::health() const {
    Health health{
        .started = started_,
        .database = heartbeat_.healthy(),
        .loops = !failed_,
        .stopping = stopping_,
        .troubles = {},
    };
    // A heartbeat that fails counts at once: it says whether the database is there at all.
    const auto now = std::chrono::nanoseconds::zero();
    const auto look = [&](const char* loop, const Pulse& pulse, std::chrono::nanoseconds patience) {
        if (auto trouble = pulse.trouble(patience)) {
            health.troubles.emplace_back(loop, std::move(*trouble));
        }
    };
    look("publishing of the tools", publishing_, now);
    look("heartbeat", heartbeat_.pulse(), now);
    look("leaser", leaser_.pulse(), settings_.patience);
    look("reconciler", reconciler_.pulse(), settings_.patience);
    return health;
}

bool Engine::idle() const {
    return executor_.idle() && reconciler_.in_flight() == 0 && recording_.size() == 0 &&
           leasing_.size() == 0 && claiming_.size() == 0 && supporting_.size() == 0;
}

// The worker's row and the catalogue come before the first lease; without a database this waits.
asio::awaitable<bool> Engine::start() {
    Backoff backoff;
    while (!stopping_) {
        auto publishing = publish();
        bool ready = co_await std::move(publishing);
        if (ready) {
            auto beating = heartbeat_.beat();
            ready = co_await std::move(beating);
        }
        if (ready) co_return true;
        co_await stop_.wait(backoff.next());
    }
    co_return false;
}

asio::awaitable<bool> Engine::publish() {
    std::vector<ToolPolicy> policies;
    for (const auto& [name, entry] : tools_.all()) policies.push_back(entry.policy);
    try {
        auto looking = store_.find_drift(policies, settings_.siblings);
        const auto drifts = co_await std::move(looking);
        for (const auto& drift : drifts) report(drift);
        auto publishing = store_.publish_tools(settings_.worker.id, std::move(policies));
        co_await std::move(publishing);
    } catch (const StoreError& error) {
        publishing_.failed(error.what());
        log_.warn("could not publish the tools, trying again", {{"error", error.what()}});
        co_return false;
    }
    publishing_.succeeded();
    co_return true;
}

void Engine::report(const ToolDrift& drift) {
    observer_.configuration_drift(drift.tool, drift.kind);
    const auto open = drift.open < ToolDrift::kMostCounted
                          ? std::to_string(drift.open)
                          : std::to_string(drift.open) + " or more";
    switch (drift.kind) {
        case Drift::key:
            return log_.warn(
                "a tool's key changed while operations are open: they keep the one they were sent "
                "with, and \"absent\" proves nothing about them",
                {{"tool", drift.tool}, {"open", open}}
            );
        case Drift::request:
            return log_.warn(
                "a tool's target or reconcile changed while operations are open: what was sent "
                "before is not believed to be absent",
                {{"tool", drift.tool}, {"open", open}}
            );
        case Drift::revision:
            return log_.warn(
                "another daemon runs this tool with another configuration: the catalogue holds "
                "whichever was published last",
                {{"tool", drift.tool}, {"worker", drift.worker}}
            );
    }
}

asio::awaitable<void> Engine::drain() {
    // What is leased from here on goes back unsent.
    executor_.drain();
    leaser_.stop();
    reconciler_.stop();
    co_await leasing_.join();
    co_await claiming_.join();

    // Superseded: until the last one's deadline, or until the process is to end.
    if (!draining_) co_await executor_.join(Bell::kForever);
    if (!draining_) co_await reconciler_.join_resends(Bell::kForever);
    const auto limit = aborting_ ? std::chrono::milliseconds(0) : settings_.drain_timeout;
    const auto until = Deadline::after(limit);
    const bool ended = co_await executor_.join(limit);
    const auto rest = aborting_ ? std::chrono::nanoseconds(0) : until.left();
    const bool resent = co_await reconciler_.join_resends(rest);
    if (!ended || !resent) {
        log_.warn(
            "cutting attempts that did not end in time",
            {{"in_flight", std::to_string(attempts_in_flight())}}
        );
        executor_.cut();
        co_await executor_.join(settings_.cut_grace);
    }
    auto stopping = stop_probes();
    co_await std::move(stopping);
}

// A probe has no effect, so nothing is lost by cutting it: its claim ends by itself.
asio::awaitable<void> Engine::stop_probes() {
    reconciler_.cut();
    co_await reconciler_.join(settings_.cut_grace);
}

asio::awaitable<void> Engine::flush() {
    completer_.stop();
    const auto limit = aborting_ ? settings_.flush_timeout / 5 : settings_.flush_timeout;
    const bool flushed = co_await recording_.join(limit);
    if (flushed) co_return;
    completer_.abandon();
    co_await recording_.join();
}

asio::awaitable<void> Engine::retire() {
    try {
        auto retiring = store_.retire(settings_.worker.id);
        co_await std::move(retiring);
    } catch (const StoreError& error) {
        log_.warn("could not sign off, others will notice", {{"error", error.what()}});
    }
}

// Wakes whoever has to look at the operation next.
void Engine::written(const Transition& transition) {
    if (!transition.due_in) return;
    if (transition.to == Status::scheduled) maintainer_.expect(*transition.due_in);
    if (transition.to == Status::unknown) reconciler_.expect(*transition.due_in);
}

void Engine::progressed(const MaintenanceReport& report) {
    if (report.promoted > 0) leaser_.wake();
    if (report.lease_expired > 0) {
        reconciler_.wake();
        maintainer_.expect(std::chrono::nanoseconds::zero());  // reads were scheduled, due now
    }
}

void Engine::clock_read(const ClockSample& sample) {
    const auto step = clock_.observe(sample);
    const auto here = std::chrono::system_clock::now() - (BootClock::now() - sample.after);
    observer_.clock_offset(sample.database - here);
    if (!step) return;
    log_.warn(
        "the database's clock stepped: no \"absent\" is believed for a while",
        {{"step_ms", std::to_string(std::chrono::ceil<std::chrono::milliseconds>(*step).count())}}
    );
}

void Engine::timeline_changed(const TimelineChange& change) {
    int unknown = 0;
    for (const auto& [tool, count] : change.unknown) {
        unknown += count;
        for (int i = 0; i < count; ++i) observer_.became_unknown(tool, Cause::timeline);
    }
    log_.warn(
        "the database came back on another timeline: what was open is looked up first",
        {{"was", change.was}, {"now", change.now}, {"unknown", std::to_string(unknown)}}
    );
    reconciler_.wake();
}

void Engine::escaped(const std::string& name, const std::string& what) {
    log_.error("a loop ended on a fault, stopping", {{"loop", name}, {"error", what}});
    failed_ = true;
    if (!draining_) stop();
}

}  // namespace outbox
