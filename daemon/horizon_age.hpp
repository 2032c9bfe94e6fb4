#pragma once

#include <chrono>
#include <cstdint>
#include <deque>

namespace outboxd {

// For how long the database's xmin horizon has been where it is: since when the oldest transaction
// id that vacuum must respect was the next one to be given out, as far as this daemon has seen. The
// server tells ids to everybody, and times to the privileged only.
class HorizonAge {
 public:
    using Time = std::chrono::steady_clock::time_point;

    // The next id is `next_id`, the horizon `ids_back` ids before it. Returns the horizon's age; at
    // most the time since the first call.
    std::chrono::duration<double> observe(Time now, std::int64_t next_id, std::int64_t ids_back);

 private:
    struct Sample {
        Time at;
        std::int64_t next_id;
    };
    // Oldest first; the front one is the last at or before the horizon.
    std::deque<Sample> samples_;
};

}  // namespace outboxd
