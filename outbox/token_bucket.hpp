#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>

#include "outbox/clock.hpp"

namespace outbox {

// The rate of one tool in this daemon: `rate` tokens a second, a quarter of a second's worth kept
// (at least one), so a burst stays small.
class TokenBucket {
 public:
    TokenBucket(double rate, BootClock::time_point now)
        : rate_(rate), capacity_(std::max(1.0, rate / 4)), tokens_(capacity_), at_(now) {}

    [[nodiscard]] int available(BootClock::time_point now) {
        const std::chrono::duration<double> passed = std::max(now, at_) - at_;
        at_ = std::max(now, at_);
        tokens_ = std::min(capacity_, tokens_ + passed.count() * rate_);
        return static_cast<int>(std::floor(tokens_ + kRounding));
    }
    void take(int n) { tokens_ -= n; }
    // How long until one is there.
    [[nodiscard]] std::chrono::nanoseconds wait() const {
        const std::chrono::duration<double> lacking((1 - std::min(tokens_, 1.0)) / rate_);
        return std::chrono::ceil<std::chrono::nanoseconds>(lacking);
    }

 private:
    static constexpr double kRounding = 1e-9;
    double rate_;
    double capacity_;
    double tokens_;
    BootClock::time_point at_;
};

}  // namespace outbox
