#pragma once

#include <string>
#include <string_view>

#include "config/value.hpp"

namespace config {

// The source of a secret (${cred:name}) without the defaults and literals that would be one:
// empty when nothing of it may be shown.
[[nodiscard]] std::string shown_secret(const std::string& source);

// A database address with its password written out: scheme://user:password@host, password=….
[[nodiscard]] bool holds_literal_password(const std::string& source);

// Is a header, parameter or variable of this name likely to hold a secret?
[[nodiscard]] bool is_sensitive_name(std::string_view name);

// In the requests of a tool (headers, query, form, json, multipart, env): literal values of
// sensitive names become ***, and what was substituted shows its source only.
void mask_requests(Value& tree);

}  // namespace config
