#include "daemon/horizon_age.hpp"

#include <cstddef>
#include <utility>

namespace outboxd {

namespace {

// More than a day at one sample in 30 s; beyond that every other one will do.
constexpr std::size_t kMost = 4096;

}  // namespace

std::chrono::duration<double> HorizonAge::observe(
    Time now, std::int64_t next_id, std::int64_t ids_back
) {
    // Another server: a restore, or a failover that lost some ids.
    if (!samples_.empty() && next_id < samples_.back().next_id) samples_.clear();
    samples_.push_back({now, next_id});
    const auto horizon = next_id - ids_back;
    while (samples_.size() > 1 && samples_[1].next_id <= horizon) samples_.pop_front();
    if (samples_.size() > kMost) {
        std::deque<Sample> fewer;
        for (std::size_t i = 0; i < samples_.size(); i += 2) fewer.push_back(samples_[i]);
        samples_ = std::move(fewer);
    }
    // Nothing has been given out since: nothing is held back.
    if (horizon >= next_id) return std::chrono::duration<double>::zero();
    return now - samples_.front().at;
}

}  // namespace outboxd
