#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <utility>

#include "outbox/clock.hpp"

namespace outbox {

// Whether a loop gets anywhere: since when it fails, and how. Runs on the io thread.
class Pulse {
 public:
    struct Trouble {
        std::chrono::nanoseconds lasting;  // since the first failure after the last success
        std::string error;                 // the last one
    };

    void succeeded() { failing_since_.reset(); }
    void failed(std::string error) {
        if (!failing_since_) failing_since_ = BootClock::now();
        error_ = std::move(error);
    }
    // Empty: the last try succeeded, or the failures are younger than `patience`.
    [[nodiscard]] std::optional<Trouble> trouble(std::chrono::nanoseconds patience) const {
        if (!failing_since_) return std::nullopt;
        const auto lasting = BootClock::now() - *failing_since_;
        if (lasting < patience) return std::nullopt;
        return Trouble{lasting, error_};
    }

 private:
    std::optional<BootClock::time_point> failing_since_;
    std::string error_;
};

}  // namespace outbox
