#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace config {

// 250ms, 30s, 5m, 24h, 30d: whole numbers with a unit.
[[nodiscard]] std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);
// With the largest unit that leaves a whole number; days from two days on.
[[nodiscard]] std::string duration_text(std::chrono::milliseconds duration);

// 512B, 256KiB, 1MiB, 2GiB.
[[nodiscard]] std::optional<std::size_t> parse_size(std::string_view text);
[[nodiscard]] std::string size_text(std::size_t bytes);

// 20/s, 100/m, 5/h → per second.
[[nodiscard]] std::optional<double> parse_rate(std::string_view text);
[[nodiscard]] std::string rate_text(double per_second);

}  // namespace config
