#pragma once

#include "daemon/cli.hpp"

namespace outboxd {

// The seeds' story, told by running it. Returns 0 when every count is what it must be.
[[nodiscard]] int run_demo(Console console);

}  // namespace outboxd
