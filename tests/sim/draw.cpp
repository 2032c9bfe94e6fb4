#include "tests/sim/draw.hpp"

#include <algorithm>

namespace sim {

using namespace std::chrono_literals;

std::uint64_t Dice::next() {  // splitmix64
    state_ += 0x9e3779b97f4a7c15U;
    auto z = state_;
    z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31U);
}

Draw::Draw(Dice& dice) {
    machines = 1 + dice.below(2);
    operations = 2 + dice.below(5);
    chaos = dice.between(15s, 45s);
    margin = dice.between(500ms, 3s);
    manual = dice.chance(0.2);
    read = dice.chance(0.2);
    reconfigured = dice.chance(0.2);
    rolling = dice.chance(0.7);
    hole = dice.chance(0.1);

    way = dice.chance(0.5) ? dice.between(50ms, 300ms) : dice.between(500ms, 4s);
    lag = dice.chance(0.4) ? 0ms : dice.between(100ms, 6s);
    const double trouble = dice.chance(0.3) ? 0.05 : 0.25;
    connect_fails = trouble / 3;
    request_lost = trouble;
    answer_lost = trouble;
    answer_late = trouble;
    refused = trouble / 5;
    busy = trouble / 2;
    broken = trouble / 2;
    accepted = dice.chance(0.3) ? 0.3 : 0;
    probe_fails = trouble / 2;
    statement_fails = dice.chance(0.5) ? 0.02 : 0.15;
    slow_way = dice.chance(0.5) ? 0.01 : 0.05;
    steps = dice.chance(0.3);
    leap = dice.chance(0.15);
    if (leap) reconfigured = false;

    write.name = "ticket";
    write.request_hash = 7;
    write.timeout = dice.between(1s, 5s);
    write.retry.max_attempts = 1 + dice.below(4);
    write.retry.initial = dice.between(100ms, 2s);
    write.retry.max = 5s;
    write.reconcile.interval = dice.between(500ms, 5s);
    write.reconcile.max_interval = 10s;
    write.reconcile.give_up_after = 90s;
    write.reconcile.confirmations = 1 + dice.below(3);
    // As tight as it may be: by then whatever was sent is seen.
    auto& rules = write.reconcile;
    rules.settle = way + lag;
    if (rules.confirmations > 1 && dice.chance(0.7)) {
        // A replica behind for longer, which the confirmations cover.
        const auto apart = std::max(rules.interval, rules.settle / 2);
        lag += apart * (rules.confirmations - 1);
    }
    if (hole) {
        lag += 20s;
        connect_fails = busy = 0.3;  // what comes after the doubt often has no effect
    }
}

}  // namespace sim
