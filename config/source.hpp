#pragma once

#include <optional>
#include <string>

#include "config/diagnostics.hpp"
#include "config/load.hpp"
#include "config/value.hpp"

namespace config {

// The file and what it includes as one tree: includes found, members merged, ${…} resolved.
// An included file adds members to the sections of the first one; none may be given twice.
[[nodiscard]] std::optional<Value> read_tree(
    const std::string& file, const LoadOptions& options, Diagnostics& diagnostics
);

}  // namespace config
