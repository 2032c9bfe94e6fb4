#pragma once

#include <span>
#include <string>
#include <string_view>

namespace tools {

// "did you mean title?" for the nearest of the candidates, or the list of them when none is near
// and the list is short; empty when there is nothing to say.
[[nodiscard]] std::string nearest_hint(
    std::string_view word, std::span<const std::string_view> candidates);

}  // namespace tools
