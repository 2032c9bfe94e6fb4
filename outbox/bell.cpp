#include "outbox/bell.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

namespace outbox {

void Bell::ring() {
    if (rung_) return;  // whoever waits was told
    rung_ = true;
    timer_.cancel();
}

asio::awaitable<bool> Bell::wait(std::chrono::nanoseconds limit) {
    if (!rung_) {
        timer_.expires_after(limit);
        co_await timer_.async_wait(asio::as_tuple(asio::use_awaitable));
    }
    co_return std::exchange(rung_, false);
}

}  // namespace outbox
