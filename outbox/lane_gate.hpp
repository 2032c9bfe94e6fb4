#pragma once

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <utility>

#include "outbox/clock.hpp"

namespace outbox {

// Whether attempts of one tool may start just now, or its probes: each have a gate, which are one
// where probes are attempts (resend). The tool says what it saw (a host that is down, a
// Retry-After), and no more is leased or claimed than allowance(): rows that wait here are neither
// attempted nor counted, and other lanes know nothing of it. Two reasons to be closed:
//   a pause, for as long as the other side asked;
//   the breaker, after some failures in a row; when its time is over one trial goes through, whose
//   end closes the breaker or opens it for twice as long.
// Pure: time and randomness are handed in. Used on the io thread.
class LaneGate {
 public:
    struct Settings {
        int failures = 5;                       // in a row, until the breaker opens
        std::chrono::milliseconds open{1'000};  // at first, doubled with each failed trial
        std::chrono::milliseconds longest{30'000};
        // A pause that is asked for is kept up to this long: then one call finds out whether it is
        // still meant. The operation that was told to wait waits the whole time.
        std::chrono::milliseconds longest_pause{3'600'000};
    };
    static constexpr int kUnlimited = std::numeric_limits<int>::max();

    LaneGate() : LaneGate(Settings{}) {}
    explicit LaneGate(Settings settings) : settings_(settings) {}
    ~LaneGate() { tell(false); }
    LaneGate(const LaneGate&) = delete;
    LaneGate& operator=(const LaneGate&) = delete;

    // Called when the breaker opens and when it closes; also by the destructor, if it is open.
    std::function<void(bool open)> on_breaker;
    // Called when the other side asked to wait longer than it did before.
    std::function<void(std::chrono::nanoseconds wait)> on_pause;

    // How many attempts may be under way, with those that are already.
    [[nodiscard]] int allowance(BootClock::time_point now) const {
        if (now < paused_until_ || now < open_until_) return 0;
        return open_ ? 1 : kUnlimited;
    }
    // Until it lets more through by itself; zero: it is not closed.
    [[nodiscard]] std::chrono::nanoseconds wait(BootClock::time_point now) const {
        const auto until = std::max(paused_until_, open_until_);
        return std::max(until - now, BootClock::duration::zero());
    }
    [[nodiscard]] bool breaker_open() const { return open_; }

    // The other side asked everybody to wait. A shorter pause does not end a longer one.
    void pause(std::chrono::milliseconds wait, BootClock::time_point now) {
        const auto kept = std::min(wait, settings_.longest_pause);
        if (now + kept <= paused_until_) return;
        paused_until_ = now + kept;
        if (on_pause) on_pause(kept);
    }

    void succeeded() {
        failures_ = 0;
        open_until_ = {};
        tell(false);
    }

    // jitter in [0, 1): daemons that met the same dead host do not come back together.
    void failed(BootClock::time_point now, double jitter) {
        // What was under way when it opened says nothing new.
        if (now < open_until_) return;
        if (!open_ && ++failures_ < settings_.failures) return;
        length_ = open_ ? std::min(length_ * 2, settings_.longest) : settings_.open;
        const auto spread = std::chrono::duration<double>(length_) * (1 + jitter / 4);
        open_until_ = now + std::chrono::duration_cast<BootClock::duration>(spread);
        tell(true);
    }

 private:
    void tell(bool open) {
        if (std::exchange(open_, open) != open && on_breaker) on_breaker(open);
    }

    Settings settings_;
    int failures_ = 0;
    bool open_ = false;
    std::chrono::milliseconds length_{0};
    BootClock::time_point open_until_{};
    BootClock::time_point paused_until_{};
};

}  // namespace outbox
