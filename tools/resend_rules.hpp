#pragma once

#include <vector>

#include "config/config.hpp"
#include "tools/compile_context.hpp"

namespace tools {

// reconcile: { type: resend }: what makes sending once more harmless. Without a key in the request
// it would be a second effect, which is an error; what the file leaves open is a warning.
// planted: what the templates of execute name.
void check_resend(
    const config::Tool& tool,
    const std::vector<Reference>& planted,
    config::Diagnostics& diagnostics
);

}  // namespace tools
