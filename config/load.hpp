#pragma once

#include <optional>
#include <string>

#include "config/config.hpp"
#include "config/diagnostics.hpp"

namespace config {

struct Loaded {
    std::optional<Config> config;  // empty when there are errors
    Diagnostics diagnostics;       // everything found, warnings included, in order
};

// Reads FILE and what it includes. Never throws: an unreadable file is a diagnostic too.
[[nodiscard]] Loaded load(const std::string& file);

// The effective configuration as YAML, every default spelled out, secrets masked.
[[nodiscard]] std::string print(const Config& config);

}  // namespace config
