#pragma once

#include <chrono>
#include <optional>

#include "outbox/outcome.hpp"
#include "tools/http_client.hpp"

namespace tools {

// What one answer says about the other side as a whole, beyond the operation it was about.
struct LaneSignal {
    enum class Health {
        up,         // it answered
        down,       // no whole answer in time, or a 5xx
        unreached,  // no connection was to be had
        unknown,    // nothing was learnt: the request did not get as far as the other side
    };
    Health health = Health::unknown;
    int status = 0;                                  // 0: no answer
    std::optional<std::chrono::milliseconds> pause;  // it asked everybody to wait
};

// Of an answer by itself: also a 503 whose outcome is unknown may say Retry-After.
[[nodiscard]] LaneSignal lane_signal(const HttpResult& result);
// The same with what the rules made of it: they know where the answer says how long to wait.
[[nodiscard]] LaneSignal with_outcome(LaneSignal signal, const outbox::Outcome& outcome);
// Of an answer to a look-up, whose rules say nothing about waiting.
[[nodiscard]] LaneSignal of_lookup(LaneSignal signal);

}  // namespace tools
