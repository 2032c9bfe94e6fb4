#pragma once

#include <vector>

#include "config/config.hpp"
#include "tools/compile_context.hpp"

namespace tools {

// What is allowed and probably a mistake: warnings of check-config, errors with --strict.
// `planted` are the paths that execute sends, `sought` those that reconcile asks with.
void lint_tool(
    const config::Tool& tool,
    const std::vector<Reference>& planted,
    const std::vector<Reference>& sought,
    config::Diagnostics& diagnostics
);

}  // namespace tools
