#include "tools/lane_gates.hpp"

#include <chrono>

namespace tools {

using outbox::LaneGate;

std::shared_ptr<LaneGate> LaneGates::of(
    const std::string& tool, Lane lane, const std::string& target
) {
    std::erase_if(gates_, [](const auto& entry) { return entry.second.expired(); });
    // A tool's name holds no line end.
    const auto key = tool + (lane == Lane::probes ? "\nprobes\n" : "\nattempts\n") + target;
    auto& known = gates_[key];
    if (auto gate = known.lock()) return gate;
    auto gate = make(tool, lane);
    known = gate;
    return gate;
}

std::shared_ptr<LaneGate> LaneGates::make(const std::string& tool, Lane lane) const {
    auto gate = std::make_shared<LaneGate>();
    if (observer_ == nullptr) return gate;
    const bool probes = lane == Lane::probes;
    gate->on_breaker = [observer = observer_, tool, probes](bool open) {
        if (probes) {
            open ? observer->probe_breaker_opened(tool) : observer->probe_breaker_closed(tool);
        } else {
            open ? observer->breaker_opened(tool) : observer->breaker_closed(tool);
        }
    };
    gate->on_pause = [observer = observer_, tool, probes](std::chrono::nanoseconds wait) {
        observer->paused(tool, probes, wait);
    };
    return gate;
}

}  // namespace tools
