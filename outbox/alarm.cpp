#include "outbox/alarm.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

namespace outbox {
namespace {

constexpr std::size_t kMostExpected = 10'000;

}  // namespace

void Alarm::wake() {
    woken_ = true;
    bell_.ring();
}

void Alarm::expect(std::chrono::nanoseconds from_now) {
    const auto due = BootClock::now() + from_now;
    if (due_.size() < kMostExpected) due_.push(due);
    if (due < next_look_) {
        next_look_ = due;
        bell_.ring();
    }
}

asio::awaitable<void> Alarm::wait(std::chrono::nanoseconds limit) {
    auto now = BootClock::now();
    while (!due_.empty() && due_.top() <= now) {
        woken_ = true;
        due_.pop();
    }
    next_look_ = now + limit;
    if (!due_.empty()) next_look_ = std::min(next_look_, due_.top());
    while (!woken_ && now < next_look_) {
        co_await bell_.wait(next_look_ - now);
        now = BootClock::now();
    }
    woken_ = false;
    while (!due_.empty() && due_.top() <= now) due_.pop();
    next_look_ = {};
}

}  // namespace outbox
