#pragma once

#include <chrono>
#include <cstdint>
#include <random>

namespace outbox {

// Randomness of the loops (jitter); seeded once, given explicitly in tests.
class Random {
 public:
    Random() : engine_(std::random_device{}()) {}
    explicit Random(std::uint64_t seed) : engine_(seed) {}

    // Uniform in [0, 1).
    double uniform() { return std::uniform_real_distribution<double>(0, 1)(engine_); }
    // Up to a tenth longer: daemons that started together do not poll together.
    std::chrono::nanoseconds jittered(std::chrono::nanoseconds period) {
        const double longer = static_cast<double>(period.count()) * (1 + uniform() / 10);
        return std::chrono::nanoseconds(static_cast<std::int64_t>(longer));
    }

 private:
    std::mt19937_64 engine_;
};

}  // namespace outbox
