#include "tools/lane_reporter.hpp"

namespace tools {

void LaneReporter::tell(const LaneSignal& signal) {
    if (!own_) return;
    const auto now = outbox::BootClock::now();
    if (signal.pause) {
        own_->pause(*signal.pause, now);
        if (neighbour_) neighbour_->pause(*signal.pause, now);
    }
    switch (signal.health) {
        case LaneSignal::Health::up:
            return own_->succeeded();
        case LaneSignal::Health::down:
            return own_->failed(now, random_.uniform());
        case LaneSignal::Health::unreached:
            own_->failed(now, random_.uniform());
            if (neighbour_) neighbour_->failed(now, random_.uniform());
            return;
        case LaneSignal::Health::unknown:
            return;
    }
}

}  // namespace tools
