#pragma once

#include "config/config.hpp"
#include "outbox/policy.hpp"

namespace tools {

// What the loops need of a tool. Key settings that cannot work are reported.
[[nodiscard]] outbox::ToolPolicy make_policy(
    const config::Tool& tool, config::Diagnostics& diagnostics
);

// Hash of the request a look-up looks for: execute target, credential name, key settings and
// reconcile. How often and how patiently is asked is left out: a longer settle must not turn every
// open operation's "absent" into inconclusive.
[[nodiscard]] std::int64_t request_hash(const config::Tool& tool);

// Whom execute, or reconcile, speaks to and as whom, as the request hash has it: what a lane gate
// has learnt holds as long as that stays the same. Empty: nobody is asked.
[[nodiscard]] std::string target_text(const config::Tool& tool);
[[nodiscard]] std::string lookup_target_text(const config::Tool& tool);

// Hash of the whole tool as the file has it; secrets are in it by name only.
[[nodiscard]] std::string revision_of(const config::Tool& tool);

}  // namespace tools
