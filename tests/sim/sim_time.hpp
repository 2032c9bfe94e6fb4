#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "outbox/clock.hpp"

namespace sim {

// The only time there is in a simulation: it stands still until step() goes to the next thing that
// was planned. Bells (sim_time.cpp has their implementation here) and the world plan on it.
class Time {
 public:
    using Point = outbox::BootClock::time_point;
    using Key = std::pair<Point, std::uint64_t>;  // things of the same moment keep their order

    static Time& instance();

    void reset();
    [[nodiscard]] Point now() const { return now_; }
    Key plan(std::chrono::nanoseconds from_now, std::function<void()> what);
    void forget(const Key& key) { planned_.erase(key); }
    // Goes to the next planned thing and does it; false when nothing is planned.
    bool step();

 private:
    Point now_{};
    std::uint64_t order_ = 0;
    std::map<Key, std::function<void()>> planned_;
};

}  // namespace sim
