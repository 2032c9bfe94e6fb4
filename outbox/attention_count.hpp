#pragma once

#include <cstdint>
#include <string>

namespace outbox {

// So many operations of a tool wait for a person, for this reason; at most ten thousand open and as
// many final ones are counted (count_attention.sql).
struct AttentionCount {
    std::string tool;
    std::string reason;
    std::int64_t count = 0;
};

}  // namespace outbox
