#include "outbox/clock_watch.hpp"

#include <algorithm>

namespace outbox {
namespace {

constexpr std::chrono::seconds kStep{1};
constexpr int kSlew = 1000;  // one part in so many

}  // namespace

std::optional<ClockWatch::Duration> ClockWatch::observe(const ClockSample& sample) {
    const Duration database = sample.database.time_since_epoch();
    const Offset seen{
        .low = database - sample.after.time_since_epoch(),
        .high = database - sample.before.time_since_epoch(),
    };
    std::optional<Duration> step;
    if (known_) {
        // Several lanes report: a sample may be a little older than the last one.
        const auto slew = std::max(sample.after - known_at_, Duration::zero()) / kSlew;
        const Offset expected{.low = known_->low - slew, .high = known_->high + slew};
        unseen_ = kStep + (seen.high - seen.low) + (expected.high - expected.low);
        if (seen.low > expected.high + kStep) {
            step = seen.low - expected.high;
        } else if (seen.high < expected.low - kStep) {
            step = seen.high - expected.low;
        }
        // What both allow is closer to the truth than either.
        const Offset both{
            .low = std::max(seen.low, expected.low), .high = std::min(seen.high, expected.high)
        };
        known_ = both.low <= both.high ? both : seen;
    } else {
        known_ = seen;
        unseen_ = kStep + (seen.high - seen.low);
    }
    known_at_ = std::max(known_at_, sample.after);
    if (step) stepped_at_ = sample.after;
    return step;
}

ClockWatch::Duration ClockWatch::distrusted(BootClock::time_point then, Duration lasting) const {
    if (!stepped_at_) return Duration::zero();
    return std::max<Duration>(*stepped_at_ + lasting - then, Duration::zero());
}

}  // namespace outbox
