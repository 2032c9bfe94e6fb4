#include "tools/http_client_pool.hpp"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

namespace tools {

namespace {

using std::chrono::steady_clock;

constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);

// Shorter than what servers commonly allow (5 s and up): a request that meets a closing connection
// is an unknown, a new connection is cheap.
constexpr std::chrono::seconds kIdleLimit{3};

// Timers stand still while the machine sleeps: look at the boot clock this often.
constexpr std::chrono::nanoseconds kTick = std::chrono::milliseconds{250};

}  // namespace

HttpPool::Lease::Lease(std::shared_ptr<HttpPool> pool, Origin origin)
    : pool_(std::move(pool)), origin_(std::move(origin)) {}

HttpPool::Lease::~Lease() {
    pool_->give_back(origin_, reusable ? std::move(connection) : nullptr);
    if (reusable) arm(pool_);
}

HttpPool::HttpPool(asio::any_io_executor executor, std::size_t max_per_host)
    : executor_(executor),
      max_per_host_(std::max<std::size_t>(max_per_host, 1)),
      timer_(executor) {}

asio::awaitable<HttpPool::Wait> HttpPool::wait_for_place(Origin origin, outbox::Deadline deadline) {
    auto& host = hosts_[origin];  // never erased: a reference stays good
    if (host.taken < max_per_host_) {
        ++host.taken;
        co_return Wait::granted;
    }
    auto waiter = std::make_shared<Waiter>(Waiter{.timer = asio::steady_timer(executor_)});
    host.waiters.push_back(waiter);
    bool cancelled = false;
    while (!waiter->granted && !cancelled && !deadline.passed()) {
        waiter->timer.expires_after(std::clamp(deadline.left(), std::chrono::nanoseconds{0}, kTick)
        );
        co_await waiter->timer.async_wait(kTuple);
        auto state = co_await asio::this_coro::cancellation_state;
        cancelled = state.cancelled() != asio::cancellation_type::none;
    }
    if (waiter->granted) co_return Wait::granted;
    host.waiters.remove(waiter);
    co_return cancelled ? Wait::cancelled : Wait::deadline;
}

std::unique_ptr<HttpConnection> HttpPool::take_idle(const Origin& origin) {
    auto& idle = hosts_[origin].idle;
    while (!idle.empty()) {
        auto newest = std::move(idle.back());
        idle.pop_back();
        bool fresh = steady_clock::now() - newest.since < kIdleLimit;
        if (fresh && newest.connection->idle_and_alive()) return std::move(newest.connection);
    }
    return nullptr;
}

void HttpPool::give_back(const Origin& origin, std::unique_ptr<HttpConnection> connection) {
    auto& host = hosts_[origin];
    if (connection) host.idle.push_back({std::move(connection), steady_clock::now()});
    if (host.waiters.empty()) {
        --host.taken;
        return;
    }
    // The place goes straight to the one who waited longest.
    auto next = std::move(host.waiters.front());
    host.waiters.pop_front();
    next->granted = true;
    next->timer.cancel();
}

bool HttpPool::drop_stale() {
    bool left = false;
    auto limit = steady_clock::now() - kIdleLimit;
    for (auto& [origin, host] : hosts_) {
        while (!host.idle.empty() && host.idle.front().since <= limit) host.idle.pop_front();
        left = left || !host.idle.empty();
    }
    return left;
}

void HttpPool::arm(const std::shared_ptr<HttpPool>& pool) {
    if (pool->armed_) return;
    pool->armed_ = true;
    pool->timer_.expires_after(kIdleLimit);
    pool->timer_.async_wait([weak = std::weak_ptr<HttpPool>(pool)](const auto& ec) {
        auto alive = weak.lock();
        if (!alive) return;
        alive->armed_ = false;
        if (!ec && alive->drop_stale()) arm(alive);
    });
}

void HttpPool::close_idle() {
    for (auto& [origin, host] : hosts_) host.idle.clear();
    timer_.cancel();
}

}  // namespace tools
