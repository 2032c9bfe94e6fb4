#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace outbox {

inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

// Length of the well-formed sequence that starts at `at`, 0 when it is broken (overlong, a
// surrogate, beyond U+10FFFF, cut off).
[[nodiscard]] std::size_t utf8_sequence(std::string_view text, std::size_t at);

// Every broken byte becomes U+FFFD; what was well-formed stays as it was.
[[nodiscard]] std::string repair_utf8(std::string_view text);

// The code point at `at` of well-formed text.
[[nodiscard]] char32_t code_point(std::string_view text, std::size_t at);

// At most max_bytes of well-formed text, cut between characters.
[[nodiscard]] std::string_view utf8_head(std::string_view text, std::size_t max_bytes);

}  // namespace outbox
