#pragma once

#include <string>
#include <vector>

#include "outbox/policy.hpp"

namespace outbox::pg {

// The tools as publish_tools takes them: one JSON array. Holds no secret, for a policy has none.
[[nodiscard]] std::string catalogue_text(const std::vector<ToolPolicy>& tools);

}  // namespace outbox::pg
