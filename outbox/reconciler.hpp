#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "outbox/alarm.hpp"
#include "outbox/backoff.hpp"
#include "outbox/calls.hpp"
#include "outbox/completer.hpp"
#include "outbox/failpoint.hpp"
#include "outbox/log.hpp"
#include "outbox/observer.hpp"
#include "outbox/provider_keys.hpp"
#include "outbox/pulse.hpp"
#include "outbox/random.hpp"
#include "outbox/store.hpp"
#include "outbox/task_group.hpp"
#include "outbox/tool.hpp"

namespace outbox {

// Asks the outside systems what became of unknown operations and records the verdicts. Claims what
// is due, a bounded number at a time, one coroutine per probe. Runs on the io thread; stop() ends
// the claiming, running probes are joined, cut() makes them inconclusive.
class Reconciler {
 public:
    struct Settings {
        WorkerId worker;
        int concurrency = 64;       // probes in flight, all tools together
        int tool_concurrency = 16;  // of one tool
        std::chrono::milliseconds margin{10'000};
        std::chrono::milliseconds poll{1'000};
    };
    Reconciler(
        asio::any_io_executor executor,
        Store& store,
        const Toolset& tools,
        Completer& completer,
        ProviderKeys& keys,
        Observer& observer,
        Log& log,
        Failpoints& failpoints,
        Random& random,
        Settings settings,
        TaskGroup::OnEscape on_escape
    );

    // From a probe's start on, for how long the database's clock is not trusted (ClockWatch).
    std::function<std::chrono::nanoseconds(BootClock::time_point started, const ToolPolicy&)>
        distrusted;
    // How long a step of that clock may be without being noticed.
    std::function<std::chrono::nanoseconds()> unseen_step;
    // Resends are attempts: each takes a slot of its tool, kept as long as the pointer, which holds
    // back attempts, never the other way round; and each one that is sent is told.
    std::function<std::shared_ptr<void>(const std::string& tool)> take_attempt;
    std::function<void(const std::string& tool)> attempt_begins;
    // Called with each verdict's transition once it is written.
    std::function<void(const Transition&)> on_written;

    asio::awaitable<void> run();
    void stop();
    void cut();
    // Those that look; what is left of the resends is joined first.
    asio::awaitable<bool> join(std::chrono::nanoseconds limit);
    void interrupt_join() { probes_.interrupt_join(); }
    // Resends are attempts, and end like attempts: not by a cut, as long as there is time.
    asio::awaitable<bool> join_resends(std::chrono::nanoseconds limit) {
        return resends_.join(limit);
    }
    void interrupt_resends() { resends_.interrupt_join(); }

    void wake() { alarm_.wake(); }
    // An operation becomes due for a probe then.
    void expect(std::chrono::nanoseconds from_now) { alarm_.expect(from_now); }

    [[nodiscard]] std::size_t in_flight() const { return probes_.size() + resends_.size(); }
    [[nodiscard]] const Pulse& pulse() const { return pulse_; }

 private:
    [[nodiscard]] std::vector<ReconcileLane> lanes() const;
    [[nodiscard]] int allowance(const ToolEntry& entry) const;
    [[nodiscard]] std::chrono::nanoseconds until_opening() const;
    asio::awaitable<void> claim();
    // slot: of the attempt that a resend is; null for look-ups.
    asio::awaitable<void> run_probe(
        ClaimedProbe claim,
        const ToolEntry& entry,
        BootClock::time_point claimed_at,
        std::shared_ptr<void> slot
    );
    // Empty: there is nothing to write, the claim ends by itself.
    asio::awaitable<std::optional<Transition>> settle(
        ClaimedProbe& claim, const ToolEntry& entry, BootClock::time_point claimed_at
    );
    asio::awaitable<Transition> look_up(
        ClaimedProbe& claim, const ToolEntry& entry, BootClock::time_point claimed_at
    );
    asio::awaitable<Verdict> ask(
        const ClaimedProbe& claim, const ToolEntry& entry, Deadline deadline
    );
    asio::awaitable<std::optional<Transition>> resend(
        ClaimedProbe& claim, const ToolEntry& entry, BootClock::time_point claimed_at
    );
    asio::awaitable<Outcome> send(
        const ClaimedProbe& claim, const ToolEntry& entry, std::string key, Deadline deadline
    );
    asio::awaitable<std::optional<ResentAttempt>> journal(
        const ClaimedProbe& claim, const ToolEntry& entry
    );
    void distrust(ClaimedProbe& claim, const ToolEntry& entry, BootClock::time_point claimed_at);
    void report(const ClaimedProbe& claim, const Verdict& verdict, const Transition& next);

    Store& store_;
    const Toolset& tools_;
    Completer& completer_;
    ProviderKeys& keys_;
    Observer& observer_;
    Log& log_;
    Failpoints& failpoints_;
    Random& random_;
    Settings settings_;
    TaskGroup probes_;
    TaskGroup resends_;
    Alarm alarm_;
    Backoff backoff_;
    Pulse pulse_;
    std::map<std::string, int, std::less<>> running_;  // per tool
    Calls calls_;
    bool more_ = false;  // the last claim was full
    bool stopping_ = false;
};

}  // namespace outbox
