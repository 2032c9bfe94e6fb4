#pragma once

#include <chrono>

#include "outbox/policy.hpp"

namespace outbox {

// Delay before the next attempt after `attempts` have been made (≥ 1): exponential with a cap,
// of which the share policy.jitter is random. random is uniform in [0, 1).
[[nodiscard]] std::chrono::milliseconds retry_delay(
    const RetryPolicy& policy, int attempts, double random
);

// How many attempts would fit into the time since the first one at full back-off (≥ 1). For what
// does not count as an attempt (not sent, 429, 401): its back-off grows with the time instead.
[[nodiscard]] int elapsed_attempts(const RetryPolicy& policy, std::chrono::milliseconds elapsed);

// Delay before the next probe after `probes` verdicts: interval, doubling to max_interval.
[[nodiscard]] std::chrono::milliseconds probe_delay(const ReconcilePolicy& policy, int probes);

}  // namespace outbox
