#pragma once

#include <chrono>
#include <vector>

#include "outbox/pg/compat.hpp"
#include "outbox/store.hpp"

namespace outbox::pg {

// What lease_operations and claim_probes are asked with: one array element per lane.
[[nodiscard]] Parameters lease_parameters(const LeaseRequest& request);
[[nodiscard]] Parameters probe_parameters(
    const WorkerId& worker,
    std::chrono::milliseconds margin,
    const std::vector<ReconcileLane>& lanes
);

}  // namespace outbox::pg
