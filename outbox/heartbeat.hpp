#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <optional>

#include "outbox/bell.hpp"
#include "outbox/clock.hpp"
#include "outbox/log.hpp"
#include "outbox/observer.hpp"
#include "outbox/pulse.hpp"
#include "outbox/store.hpp"

namespace outbox {

// Says "this worker is alive", one row every few seconds, and knows from that how long the
// database has been healthy. Runs on the io thread.
class Heartbeat {
 public:
    struct Settings {
        std::chrono::milliseconds period{3'000};
        std::chrono::milliseconds retry{500};
        std::chrono::milliseconds stale{15'000};  // the contract: then others judge us dead
    };
    Heartbeat(
        asio::any_io_executor executor,
        Store& store,
        Observer& observer,
        Log& log,
        WorkerInfo worker,
        Settings settings
    );

    asio::awaitable<void> run();
    void stop();
    // One beat; true when it was written.
    asio::awaitable<bool> beat();

    // The last beat was written not long ago.
    [[nodiscard]] bool healthy() const;
    // … and so was every one for that long: a frozen process that wakes up is not healthy yet.
    [[nodiscard]] bool healthy_for(std::chrono::nanoseconds duration) const;
    [[nodiscard]] const Pulse& pulse() const { return pulse_; }

 private:
    Store& store_;
    Observer& observer_;
    Log& log_;
    WorkerInfo worker_;
    Settings settings_;
    Bell bell_;
    std::optional<BootClock::time_point> since_;  // healthy since
    BootClock::time_point last_{};
    Pulse pulse_;
    bool stopping_ = false;
};

}  // namespace outbox
