#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "tools/template.hpp"

namespace tools {

// Where the "}}" of a template that opened before `from` starts; quoted text is skipped. npos:
// it is never closed.
[[nodiscard]] std::size_t closing_braces(std::string_view text, std::size_t from);

// What stands between the braces. Mistakes are reported at the mark of the text, with the nearest
// known name; empty then.
[[nodiscard]] std::optional<Expression> parse_expression(
    std::string_view inside, const config::Mark& mark, CompileContext& context
);

}  // namespace tools
