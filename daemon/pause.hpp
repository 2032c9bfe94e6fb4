#pragma once

#include <chrono>

namespace outboxd {

// Blocks this thread. For commands that run on their own, never on a daemon's io thread. A signal
// ends it early, so Ctrl-C is noticed at once.
void pause_for(std::chrono::milliseconds duration);

}  // namespace outboxd
