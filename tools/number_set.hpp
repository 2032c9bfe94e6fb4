#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/value.hpp"

namespace tools {

// Which statuses, exit codes, numbers of rows or error codes a condition means: 201, [200, 201],
// 5xx, [400, 42x].
class NumberSet {
 public:
    // Mistakes are reported.
    static NumberSet statuses(const config::Value& value, config::Diagnostics& diagnostics);
    static NumberSet exit_codes(const config::Value& value, config::Diagnostics& diagnostics);
    static NumberSet rpc_errors(const config::Value& value, config::Diagnostics& diagnostics);
    static NumberSet rows(const config::Value& value, config::Diagnostics& diagnostics);

    [[nodiscard]] bool contains(int number) const;
    [[nodiscard]] bool overlaps(int from, int to) const;

 private:
    std::vector<std::pair<int, int>> ranges_;  // both ends included
};

}  // namespace tools
