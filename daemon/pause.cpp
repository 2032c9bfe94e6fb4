#include "daemon/pause.hpp"

#include <poll.h>

namespace outboxd {

void pause_for(std::chrono::milliseconds duration) {
    poll(nullptr, 0, static_cast<int>(duration.count()));
}

}  // namespace outboxd
