#include "outbox/pg/lane_parameters.hpp"

#include <string>
#include <string_view>
#include <utility>

#include "outbox/pg/array_text.hpp"

namespace outbox::pg {

Parameters lease_parameters(const LeaseRequest& request) {
    ArrayText tools;
    ArrayText limits;
    ArrayText timeouts;
    ArrayText hashes;
    ArrayText priorities;
    ArrayText seqs;
    for (const auto& lane : request.lanes) {
        tools.add(std::string_view(lane.tool));
        limits.add(lane.limit);
        timeouts.add(lane.timeout.count());
        hashes.add(lane.request_hash);
        priorities.add(lane.after.priority);
        seqs.add(lane.after.seq);
    }
    return {
        request.worker.value,
        std::to_string(request.margin.count()),
        std::move(tools).take(),
        std::move(limits).take(),
        std::move(timeouts).take(),
        std::move(hashes).take(),
        std::move(priorities).take(),
        std::move(seqs).take()
    };
}

Parameters probe_parameters(
    const WorkerId& worker,
    std::chrono::milliseconds margin,
    const std::vector<ReconcileLane>& lanes
) {
    ArrayText tools;
    ArrayText limits;
    ArrayText timeouts;
    ArrayText resends;
    for (const auto& lane : lanes) {
        tools.add(std::string_view(lane.tool));
        limits.add(lane.limit);
        timeouts.add(lane.timeout.count());
        resends.add_bool(lane.resend);
    }
    return {
        worker.value,
        std::to_string(margin.count()),
        std::move(tools).take(),
        std::move(limits).take(),
        std::move(timeouts).take(),
        std::move(resends).take()
    };
}

}  // namespace outbox::pg
