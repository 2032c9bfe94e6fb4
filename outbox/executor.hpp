#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <optional>
#include <unordered_set>
#include <vector>

#include "outbox/calls.hpp"
#include "outbox/clock.hpp"
#include "outbox/completer.hpp"
#include "outbox/failpoint.hpp"
#include "outbox/handle_keeper.hpp"
#include "outbox/log.hpp"
#include "outbox/observer.hpp"
#include "outbox/operation.hpp"
#include "outbox/provider_keys.hpp"
#include "outbox/random.hpp"
#include "outbox/shared_limit.hpp"
#include "outbox/slots.hpp"
#include "outbox/task_group.hpp"
#include "outbox/tool.hpp"

namespace outbox {

// What the executor starts: the lease, its tool, and the slots it holds.
struct Dispatch {
    LeasedAttempt attempt;
    const ToolEntry* entry;           // the configuration it began with
    BootClock::time_point leased_at;  // taken before the lease statement was sent
    Slots::Slot worker_slot;          // until its end is recorded
    SharedLimit::Slot call_slot;      // until the call is over
    SharedLimit::Slot tool_slot;      // the same
    bool unsent = false;              // there is no room for it any more: it goes back
};

// One coroutine per attempt: provider key, tool call, decision, record. Runs on the io thread.
// drain() lets what has not been dispatched go back unsent; cut() cancels the calls under way, and
// what they answer then (or, failing that, unknown) is recorded like any other end.
class Executor {
 public:
    Executor(
        asio::any_io_executor executor,
        Completer& completer,
        ProviderKeys& keys,
        Observer& observer,
        Log& log,
        Failpoints& failpoints,
        Random& random,
        TaskGroup::OnEscape on_escape
    );

    // Called with each transition once it is written: what comes due, and when.
    std::function<void(const Transition&)> on_written;
    // Stores what an attempt can be asked about by later; empty: nobody does.
    KeepHandle keep_handle;

    void start(Dispatch dispatch);
    void drain() { draining_ = true; }
    void cut();
    asio::awaitable<bool> join(std::chrono::nanoseconds limit) { return attempts_.join(limit); }
    void interrupt_join() { attempts_.interrupt_join(); }

    // No attempt's coroutine is left.
    [[nodiscard]] bool idle() const { return attempts_.size() == 0; }
    // Leased and not recorded yet.
    [[nodiscard]] std::vector<Seq> in_flight() const;

 private:
    asio::awaitable<void> run(Dispatch dispatch);
    // What the tool committed together with its effect is left in `written`.
    asio::awaitable<Transition> attempt(Dispatch& dispatch, std::optional<Transition>& written);
    // `held`: the attempt did not begin, because an earlier one may have acted after all.
    asio::awaitable<Outcome> perform(
        const Dispatch& dispatch, std::optional<Transition>& written, bool& held
    );
    // Looks for what an earlier attempt may have done; empty: it did nothing.
    asio::awaitable<std::optional<Outcome>> look_again(const Dispatch& dispatch, std::string key);
    asio::awaitable<Outcome> call_tool(
        const Dispatch& dispatch, std::string key, std::optional<Transition>& written
    );
    [[nodiscard]] OwnAttempt own_attempt(const Dispatch& dispatch) const;
    void report(const LeasedAttempt& attempt, const Outcome& outcome, const Transition& next);

    Completer& completer_;
    ProviderKeys& keys_;
    Observer& observer_;
    Log& log_;
    Failpoints& failpoints_;
    Random& random_;
    TaskGroup attempts_;
    // Two attempts of one operation may be here at once: the old one still waits for its write's
    // fate while this worker leased the next one. Each leaves by its own entry.
    std::unordered_multiset<Seq> in_flight_;
    Calls calls_;
    bool draining_ = false;
    bool cut_ = false;
};

}  // namespace outbox
