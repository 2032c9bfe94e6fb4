#pragma once

#include <chrono>
#include <optional>
#include <string_view>

namespace outboxd {

// "250ms", "30s", "5m", "24h", "30d": a whole number and a unit, as in the configuration file.
[[nodiscard]] std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

}  // namespace outboxd
