#include "outbox/retry_policy.hpp"

#include <algorithm>
#include <cmath>

namespace outbox {

using std::chrono::milliseconds;

milliseconds retry_delay(const RetryPolicy& policy, int attempts, double random) {
    // In floating point: a power that overflows is infinite, and the cap takes it.
    const double cap = static_cast<double>(policy.max.count());
    const double grown = static_cast<double>(policy.initial.count()) *
                         std::pow(policy.multiplier, std::max(attempts - 1, 0));
    const double delay = std::min(grown, cap);
    const double jittered = delay * (1 - policy.jitter) + delay * policy.jitter * random;
    return milliseconds(std::llround(jittered));
}

int elapsed_attempts(const RetryPolicy& policy, milliseconds elapsed) {
    constexpr int kEnough = 64;  // by then any back-off that grows at all has reached its cap
    int attempts = 1;
    milliseconds spent = retry_delay(policy, attempts, 1);
    while (attempts < kEnough && spent <= elapsed) spent += retry_delay(policy, ++attempts, 1);
    return attempts;
}

milliseconds probe_delay(const ReconcilePolicy& policy, int probes) {
    auto delay = policy.interval;
    for (int i = 1; i < probes && delay < policy.max_interval; ++i) delay *= 2;
    return std::min(delay, policy.max_interval);
}

}  // namespace outbox
