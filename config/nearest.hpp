#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace config {

// Edits (insert, delete, replace, swap of neighbours) that turn one name into the other,
// regardless of case.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

// The known name that was probably meant, or empty when none is close enough.
[[nodiscard]] std::optional<std::string> nearest(
    std::string_view name, const std::vector<std::string>& known
);

// The hint below "unknown …": "did you mean x?", else the list of what is known.
[[nodiscard]] std::string nearest_hint(
    std::string_view name, const std::vector<std::string>& known
);

}  // namespace config
