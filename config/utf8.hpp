#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace config {

// Length of the UTF-8 sequence that begins there; 0 when none does.
[[nodiscard]] std::size_t utf8_sequence(std::string_view text, std::size_t at);

// For messages: every byte that is no UTF-8 becomes U+FFFD.
[[nodiscard]] std::string readable(std::string_view text);

// A JSON string with its quotes. The name of a file may be any bytes; JSON is UTF-8.
[[nodiscard]] std::string json_string(std::string_view text);

}  // namespace config
