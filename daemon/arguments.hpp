#pragma once

#include <string>

#include "outbox/json.hpp"

namespace outboxd {

// The value of --arguments: a JSON object, or @FILE, or @- for standard input. Throws (exit 2).
[[nodiscard]] outbox::Json read_arguments(const std::string& text);

}  // namespace outboxd
