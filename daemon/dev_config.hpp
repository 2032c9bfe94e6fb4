#pragma once

#include <string_view>

namespace outboxd {

// What `outboxd dev` runs without -c: one tool that writes to the log.
extern const std::string_view kDevConfig;

}  // namespace outboxd
