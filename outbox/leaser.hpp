#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "outbox/backoff.hpp"
#include "outbox/bell.hpp"
#include "outbox/executor.hpp"
#include "outbox/failpoint.hpp"
#include "outbox/log.hpp"
#include "outbox/observer.hpp"
#include "outbox/pulse.hpp"
#include "outbox/random.hpp"
#include "outbox/shared_limit.hpp"
#include "outbox/slots.hpp"
#include "outbox/store.hpp"
#include "outbox/tool.hpp"

namespace outbox {

// Takes ready rows, one lane per tool, for as many attempts as can start at once: leased means
// started. Runs on the io thread; stop() ends it after the lease under way, whose rows go back
// unsent through the draining executor.
class Leaser {
 public:
    struct Settings {
        WorkerId worker;
        int concurrency = 256;  // calls under way
        std::chrono::milliseconds margin{10'000};
        std::chrono::milliseconds poll_busy{5};
        std::chrono::milliseconds poll_idle{1'000};
        std::chrono::milliseconds sweep{250};            // how often it looks from the start
        std::shared_ptr<SharedLimits> limits = nullptr;  // null: of this one alone
    };
    Leaser(
        asio::any_io_executor executor,
        Store& store,
        const Toolset& tools,
        Executor& attempts,
        Observer& observer,
        Log& log,
        Failpoints& failpoints,
        Random& random,
        Settings settings
    );

    // Called after every poll of a tool: whether it found rows. The listener lives on it.
    std::function<void(const std::string& tool, bool found)> on_polled;

    asio::awaitable<void> run();
    void stop();
    // Something became ready (a notification, a promotion): look at once, from the start.
    void wake();

    // How long no row was found: the listener falls asleep only after a while without work.
    [[nodiscard]] std::chrono::nanoseconds idle_for() const;
    // Attempts that were leased and are not recorded yet.
    [[nodiscard]] int in_flight() const { return slots_.used(); }
    [[nodiscard]] const Pulse& pulse() const { return pulse_; }

    // A resend is an attempt that is not leased here: the slots it takes, free or not, so that a
    // saturated tool does not keep it waiting for ever; and the token that it costs.
    [[nodiscard]] std::shared_ptr<void> take(const std::string& tool);
    void spend(const std::string& tool);

 private:
    struct Lane {
        Lane(const ToolEntry& e, SharedLimit& limit, Leaser& owner);
        const ToolEntry* entry;
        SharedLimit::Share slots;
        // Where to look from. With more rows waiting than slots: behind the last one taken.
        // Otherwise a little before it, so that a transaction that was given its number first and
        // committed last is not missed until the next sweep.
        [[nodiscard]] const LeaseMark& from() const { return full ? mark : trail; }
        LeaseMark mark;
        LeaseMark before;  // the mark when it was last noted
        LeaseMark trail;   // and the time before
        BootClock::time_point noted{};
        BootClock::time_point swept{};
        bool sweep = true;   // the next look is from the start
        bool full = false;   // its last lease found as many rows as it asked for: more may wait
        bool asked = false;  // by the last request
    };
    using Lanes = std::vector<std::unique_ptr<Lane>>;

    [[nodiscard]] LeaseRequest request();
    [[nodiscard]] static int wanted(const Lane& lane, BootClock::time_point now);
    void reserve(const LeaseRequest& request);
    void settle(const LeaseRequest& request);
    void stand_in_line();
    void leave_line();
    asio::awaitable<void> lease_once(LeaseRequest request);
    asio::awaitable<void> release_lost();
    asio::awaitable<void> pause();
    void dispatch(std::vector<LeasedAttempt> leased, BootClock::time_point at);
    void remember(const LeaseRequest& request, const std::vector<LeasedAttempt>& leased);
    void on_free(Lane& lane);
    [[nodiscard]] bool hungry() const;
    [[nodiscard]] bool ready() const;
    [[nodiscard]] std::chrono::nanoseconds until_opening() const;

    Store& store_;
    Executor& attempts_;
    Observer& observer_;
    Log& log_;
    Failpoints& failpoints_;
    Random& random_;
    Settings settings_;
    Bell bell_;
    // Until an attempt's end is recorded: a slow database leases less. More than there are calls.
    Slots slots_;
    std::shared_ptr<SharedLimits> limits_;
    SharedLimit::Share calls_;  // calls under way
    Lanes lanes_;
    std::map<std::string, Lane*, std::less<>> by_tool_;
    std::size_t turn_ = 0;  // who is first when slots are short
    BootClock::time_point last_work_;
    bool lost_ = false;  // a lease ended without an answer: its rows must go back
    bool stopping_ = false;
    Backoff backoff_;
    Pulse pulse_;
};

}  // namespace outbox
