#pragma once

#include <string>

#include "outbox/json.hpp"
#include "tools/rendered.hpp"

namespace tools {

// application/x-www-form-urlencoded with nested brackets: {"a": {"b": [1, 2]}} is
// a[b][0]=1&a[b][1]=2. Null members are left out; a member name that holds brackets is refused,
// since it could pose as another member.
[[nodiscard]] Rendered<std::string> form_encode(const outbox::Json& value);

}  // namespace tools
