#pragma once

#include <chrono>

namespace outbox {

// Time as the database tells it. Leases, deadlines and settle are compared on this clock only.
using DbTime = std::chrono::sys_time<std::chrono::microseconds>;

// CLOCK_BOOTTIME: goes on while the machine sleeps. A worker's own deadlines live on it.
struct BootClock {
    using duration = std::chrono::nanoseconds;
    using rep = duration::rep;
    using period = duration::period;
    using time_point = std::chrono::time_point<BootClock>;
    static constexpr bool is_steady = true;
    static time_point now();
};

// Hard end of one attempt or probe, on this machine's boot clock.
struct Deadline {
    BootClock::time_point at;

    static Deadline after(std::chrono::nanoseconds d) { return {BootClock::now() + d}; }
    [[nodiscard]] bool passed() const { return BootClock::now() >= at; }
    [[nodiscard]] std::chrono::nanoseconds left() const { return at - BootClock::now(); }
};

}  // namespace outbox
