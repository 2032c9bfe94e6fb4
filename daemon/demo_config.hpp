#pragma once

#include <string>

namespace outboxd {

// The configuration of the demo's daemons: one tool, times short enough for somebody watching.
[[nodiscard]] std::string demo_config(int admin_port, int desk_port);

}  // namespace outboxd
