#pragma once

#include <string>

namespace tools {

// A name as a reference token of a JSON Pointer (RFC 6901).
[[nodiscard]] std::string pointer_token(const std::string& name);

// %41 → A: $ref is a URI. What is no escape stays.
[[nodiscard]] std::string percent_decoded(const std::string& text);

}  // namespace tools
