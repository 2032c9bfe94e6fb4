#pragma once

#include <string>

#include "config/value.hpp"

namespace config {

// Values → block style YAML that parse_yaml reads back as the same values. Text that came from
// ${…} is written as the file had it; a ${ that is meant as such becomes $${.
[[nodiscard]] std::string to_yaml(const Value& value);

// The same values as one line of JSON; text that came from ${…} as the file has it.
[[nodiscard]] std::string to_json(const Value& value);

struct Config;
// What print() writes, as values.
[[nodiscard]] Value effective(const Config& config);

}  // namespace config
