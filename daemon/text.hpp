#pragma once

#include <string>
#include <string_view>

namespace outboxd {

// A JSON string with its quotes; broken UTF-8 becomes U+FFFD.
[[nodiscard]] std::string json_quoted(std::string_view text);

// For a terminal or a log for people: control characters and broken UTF-8 are spelled out (\n,
// \x1b), the rest stays. Nothing a value holds can move the cursor or start a line.
[[nodiscard]] std::string printable(std::string_view text);

// Number of code points: the width of a table cell, near enough.
[[nodiscard]] std::size_t code_points(std::string_view text);

}  // namespace outboxd
