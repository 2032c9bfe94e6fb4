#pragma once

#include <algorithm>
#include <chrono>

namespace outbox {

// How long a loop waits before it tries the database again: 50 ms, doubling to 1 s.
class Backoff {
 public:
    [[nodiscard]] std::chrono::milliseconds next() {
        const auto delay = delay_;
        delay_ = std::min(delay_ * 2, std::chrono::milliseconds(1'000));
        return delay;
    }
    void reset() { delay_ = kFirst; }

 private:
    static constexpr std::chrono::milliseconds kFirst{50};
    std::chrono::milliseconds delay_ = kFirst;
};

}  // namespace outbox
