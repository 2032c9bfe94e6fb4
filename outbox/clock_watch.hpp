#pragma once

#include <chrono>
#include <optional>

#include "outbox/clock.hpp"
#include "outbox/store.hpp"

namespace outbox {

// Watches the database's clock against this machine's boot clock. Deadlines and settle are compared
// on the former; when it steps, "started after the deadline" proves nothing for as long as an
// attempt that was under way may last. Fed with the times of statements that run anyway; a slew
// (NTP's, up to 0.1 %) is no step. What happened before the first sample cannot be known.
// Pure: no clock of its own.
class ClockWatch {
 public:
    using Duration = std::chrono::nanoseconds;

    // The step, when this sample shows one of more than a second.
    std::optional<Duration> observe(const ClockSample& sample);

    // For how long after then (a probe's start) "absent" is not believed, when attempts and their
    // settling take that long; zero: it is.
    [[nodiscard]] Duration distrusted(BootClock::time_point then, Duration lasting) const;

    // A step this long may have gone unnoticed: a second, and what the round trips leave open. A
    // deadline on the database's clock is certainly over so much later.
    [[nodiscard]] Duration unseen() const { return unseen_; }

 private:
    // Database time minus boot time lies between the two.
    struct Offset {
        Duration low{};
        Duration high{};
    };
    std::optional<Offset> known_;
    BootClock::time_point known_at_{};
    std::optional<BootClock::time_point> stepped_at_;
    Duration unseen_{};
};

}  // namespace outbox
