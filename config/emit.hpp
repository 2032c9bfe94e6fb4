#pragma once

#include <string>

#include "config/value.hpp"

namespace config {

// Values → block style YAML that parse_yaml reads back as the same values. Text that came from
// ${…} is written as the file had it; a ${ that is meant as such becomes $${.
[[nodiscard]] std::string to_yaml(const Value& value);

}  // namespace config
