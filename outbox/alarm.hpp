#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <queue>
#include <vector>

#include "outbox/bell.hpp"
#include "outbox/clock.hpp"

namespace outbox {

// When a polling loop looks next: at its poll, when somebody wakes it, or when one of this
// daemon's own decisions comes due. A hint only, so it may forget some: the poll is the truth.
// Lives and is used on the io thread.
class Alarm {
 public:
    explicit Alarm(asio::any_io_executor executor) : bell_(std::move(executor)) {}

    void wake();
    // Something comes due then. Does nothing now unless that is before the look already planned.
    void expect(std::chrono::nanoseconds from_now);
    // Until woken, until something is due, at most `limit`.
    asio::awaitable<void> wait(std::chrono::nanoseconds limit);

 private:
    Bell bell_;
    bool woken_ = false;
    std::priority_queue<BootClock::time_point, std::vector<BootClock::time_point>, std::greater<>>
        due_;
    BootClock::time_point next_look_{};
};

}  // namespace outbox
