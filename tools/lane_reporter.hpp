#pragma once

#include <memory>
#include <utility>

#include "outbox/lane_gate.hpp"
#include "outbox/random.hpp"
#include "tools/lane_signal.hpp"

namespace tools {

// Tells a lane's gate how the other side fares. A tool has two lanes, attempts and probes, each
// with a breaker of its own: what is broken may be one path of an API, and a look-up that works
// must not let attempts hammer a path that does not. Only what concerns the host as a whole (no
// connection to be had, a request to wait) is told to the other lane, too, if that asks the same
// host.
class LaneReporter {
 public:
    LaneReporter() = default;  // nobody wants to know
    // NOLINTNEXTLINE(google-explicit-constructor): a gate alone is the plain case
    LaneReporter(
        std::shared_ptr<outbox::LaneGate> own, std::shared_ptr<outbox::LaneGate> neighbour = nullptr
    )
        : own_(std::move(own)), neighbour_(std::move(neighbour)) {}

    void tell(const LaneSignal& signal);

 private:
    std::shared_ptr<outbox::LaneGate> own_;
    std::shared_ptr<outbox::LaneGate> neighbour_;
    outbox::Random random_;
};

}  // namespace tools
