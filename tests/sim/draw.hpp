#pragma once

#include <chrono>
#include <cstdint>

#include "outbox/policy.hpp"

namespace sim {

using std::chrono::milliseconds;

// Small, fast, the same everywhere: a seed must replay exactly.
class Dice {
 public:
    explicit Dice(std::uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15U + 0x1234567U) {}
    std::uint64_t next();
    // In [0, n).
    int below(int n) { return static_cast<int>(next() % static_cast<std::uint64_t>(n)); }
    bool chance(double p) { return static_cast<double>(next() >> 11U) * 0x1.0p-53 < p; }
    milliseconds up_to(milliseconds most) {
        return milliseconds(below(static_cast<int>(most.count()) + 1));
    }
    milliseconds between(milliseconds least, milliseconds most) {
        return least + up_to(most - least);
    }

 private:
    std::uint64_t state_;
};

// What kind of world a seed is. The provider has no idempotency key unless `unique`.
struct Draw {
    explicit Draw(Dice& dice);

    int machines;
    int operations;
    milliseconds chaos;  // so long is the world hostile; then it is calm
    outbox::ToolPolicy write;
    milliseconds margin;
    bool manual;        // there is a tool only a person can reconcile
    bool read;          // there is a read tool
    bool reconfigured;  // restarts in the middle bring a file that asks elsewhere
    bool rolling;       // … one daemon after the other, and maybe back again

    // The network and the other side.
    milliseconds way;  // a request is at the provider by then, or never
    milliseconds lag;  // a look-up sees an effect by then
    double connect_fails;
    double request_lost;
    double answer_lost;
    double answer_late;
    double refused;
    double busy;
    double broken;  // 500, with or without the effect
    double accepted;
    double probe_fails;

    // The database.
    double statement_fails;
    double slow_way;
    bool steps;  // its clock is set back, or on by less than a second

    bool leap;  // its clock is set by seconds, either way, beside living daemons

    // The documented residual hole: a look-up that lies beyond settle. The provider then refuses
    // what it already has, so that a lie of ours would show.
    bool hole;
};

}  // namespace sim
