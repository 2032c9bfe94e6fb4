#pragma once

#include <string_view>

#include "config/diagnostics.hpp"

namespace tools {

// Reports a text that is no JSON Pointer ("" or "/a/b/0"; ~ only as ~0 and ~1).
bool check_pointer(
    std::string_view pointer, const config::Mark& mark, config::Diagnostics& diagnostics
);

}  // namespace tools
