#pragma once

#include "config/diagnostics.hpp"
#include "config/value.hpp"

namespace config {

// Gives an unquoted scalar its type by the core schema of YAML 1.2: null, true, false, numbers;
// everything else ("yes", "on", dates) stays a string. Numbers become JSON number text.
void type_plain_scalar(Value& value, Diagnostics& diagnostics);

// Whether jsonb, whose numbers are Postgres' numeric, can hold it.
[[nodiscard]] bool is_jsonb_number(std::string_view text);

// A valid JSON number?
[[nodiscard]] bool is_json_number(std::string_view text);

}  // namespace config
