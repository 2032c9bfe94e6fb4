#include "outbox/heartbeat.hpp"

#include <utility>

namespace outbox {

Heartbeat::Heartbeat(
    asio::any_io_executor executor,
    Store& store,
    Observer& observer,
    Log& log,
    WorkerInfo worker,
    Settings settings
)
    : store_(store),
      observer_(observer),
      log_(log),
      worker_(std::move(worker)),
      settings_(settings),
      bell_(std::move(executor)) {}

asio::awaitable<void> Heartbeat::run() {
    while (!stopping_) {
        auto beating = beat();
        const bool written = co_await std::move(beating);
        if (!stopping_) co_await bell_.wait(written ? settings_.period : settings_.retry);
    }
}

void Heartbeat::stop() {
    stopping_ = true;
    bell_.ring();
}

asio::awaitable<bool> Heartbeat::beat() {
    bool written = false;
    try {
        auto beating = store_.heartbeat(worker_);
        co_await std::move(beating);
        const auto now = BootClock::now();
        if (!since_ || now - last_ > settings_.stale) since_ = now;
        last_ = now;
        written = true;
        pulse_.succeeded();
    } catch (const std::exception& error) {
        since_.reset();
        pulse_.failed(error.what());
        count_error(observer_, error);
        log_.warn(
            "the database did not take the heartbeat, trying again", {{"error", error.what()}}
        );
    }
    observer_.database_up(written);
    co_return written;
}

bool Heartbeat::healthy() const {
    return since_.has_value() && BootClock::now() - last_ <= 2 * settings_.period + settings_.retry;
}

bool Heartbeat::healthy_for(std::chrono::nanoseconds duration) const {
    return healthy() && BootClock::now() - *since_ >= duration;
}

}  // namespace outbox
