#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>

namespace outbox {

namespace asio = boost::asio;

// Where one coroutine waits until somebody rings or a time has passed. Rings while nobody waits are
// kept as one. Lives and is used on the io thread.
class Bell {
 public:
    static constexpr std::chrono::nanoseconds kForever = std::chrono::hours{24 * 365};

    explicit Bell(asio::any_io_executor executor) : timer_(std::move(executor)) {}

    void ring();
    // True when it rang, false when the time was up.
    asio::awaitable<bool> wait(std::chrono::nanoseconds limit = kForever);

 private:
    asio::steady_timer timer_;
    bool rung_ = false;
};

}  // namespace outbox
