#pragma once

#include <map>
#include <memory>
#include <string>

#include "outbox/lane_gate.hpp"
#include "outbox/observer.hpp"

namespace tools {

// The gates of a process, by tool, lane and target. A reload asks for those of the same target
// again, and gets them with what they have learnt: a host that asked for an hour's patience is not
// asked again because somebody edited the file. Outlives the toolsets; a gate lives as long as one
// of them holds it.
class LaneGates {
 public:
    enum class Lane { attempts, probes };

    // observer: null for none; it outlives the gates.
    explicit LaneGates(outbox::Observer* observer) : observer_(observer) {}
    LaneGates(const LaneGates&) = delete;
    LaneGates& operator=(const LaneGates&) = delete;

    [[nodiscard]] std::shared_ptr<outbox::LaneGate> of(
        const std::string& tool, Lane lane, const std::string& target
    );

 private:
    [[nodiscard]] std::shared_ptr<outbox::LaneGate> make(const std::string& tool, Lane lane) const;

    outbox::Observer* observer_;
    std::map<std::string, std::weak_ptr<outbox::LaneGate>> gates_;
};

}  // namespace tools
