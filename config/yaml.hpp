#pragma once

#include <memory>
#include <optional>
#include <string>

#include "config/diagnostics.hpp"
#include "config/value.hpp"

namespace config {

// YAML text → values with places. Built on yaml-cpp's events: its nodes silently keep both of two
// equal keys. Aliases are copies and their total is bounded. A syntax error ends the reading with
// one diagnostic; equal keys, odd tags and numbers are reported and reading goes on. An empty
// document is a null value.
[[nodiscard]] std::optional<Value> parse_yaml(
    std::shared_ptr<const std::string> file, const std::string& text, Diagnostics& diagnostics
);

}  // namespace config
