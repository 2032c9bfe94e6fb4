#pragma once

#include <optional>
#include <string>

#include "config/config.hpp"
#include "config/diagnostics.hpp"

namespace config {

struct Loaded {
    std::optional<Config> config;  // empty when there are errors
    // What could be read in spite of errors: only good for finding more of them at once.
    std::optional<Config> partial;
    Diagnostics diagnostics;  // everything found, warnings included, in order
};

struct LoadOptions {
    // The DSN is known from elsewhere (--database, a private Postgres): the file's is not looked
    // at, so that a ${env:…} in it need not be set.
    bool database_elsewhere = false;
};

// Reads FILE and what it includes. Never throws: an unreadable file is a diagnostic too.
[[nodiscard]] Loaded load(const std::string& file, const LoadOptions& options = {});

// The effective configuration as YAML, every default spelled out, secrets masked.
[[nodiscard]] std::string print(const Config& config);

}  // namespace config
