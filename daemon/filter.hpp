#pragma once

#include <cstdint>
#include <string>

#include "outbox/pg/client.hpp"

namespace CLI {
class App;
}

namespace outboxd {

inline constexpr std::int64_t kMostRows = 1'000'000;

// The filters of `list`, which `cancel` and `retry` take as well.
struct FilterOptions {
    outbox::pg::ListFilter filter;
    std::string older_than;
};

void add_filter_options(CLI::App& command, FilterOptions& options);
// Checks what was given and completes the filter; throws CommandError (usage).
void read_filter(FilterOptions& options);
// Nothing is left out.
[[nodiscard]] bool matches_everything(const FilterOptions& options);

}  // namespace outboxd
