#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "outbox/clock.hpp"
#include "tools/http_connection.hpp"

namespace tools {

// Connections per origin: at most so many, idle ones kept for a few seconds, waiters served in
// order. Runs on the io thread; its leases keep it alive.
class HttpPool {
 public:
    // The right to one connection of an origin; gives it back when it goes.
    class Lease {
     public:
        Lease(std::shared_ptr<HttpPool> pool, Origin origin);
        ~Lease();
        Lease(const Lease&) = delete;
        Lease& operator=(const Lease&) = delete;

        std::unique_ptr<HttpConnection> connection;
        bool reusable = false;  // set when the connection may serve another request

     private:
        std::shared_ptr<HttpPool> pool_;
        Origin origin_;
    };

    HttpPool(asio::any_io_executor executor, std::size_t max_per_host);

    enum class Wait { granted, deadline, cancelled };
    // Waits for a free place; the caller makes a Lease of it at once.
    asio::awaitable<Wait> wait_for_place(Origin origin, outbox::Deadline deadline);
    // An idle connection that is still alive, or null.
    [[nodiscard]] std::unique_ptr<HttpConnection> take_idle(const Origin& origin);
    void close_idle();
    // The timer's handlers hold the pool weakly through this.
    static void arm(const std::shared_ptr<HttpPool>& pool);

 private:
    struct Idle {
        std::unique_ptr<HttpConnection> connection;
        std::chrono::steady_clock::time_point since;
    };
    struct Waiter {
        asio::steady_timer timer;
        bool granted = false;
    };
    struct Host {
        std::deque<Idle> idle;  // oldest first
        std::size_t taken = 0;
        std::list<std::shared_ptr<Waiter>> waiters;
    };
    void give_back(const Origin& origin, std::unique_ptr<HttpConnection> connection);
    bool drop_stale();  // whether idle ones are left

    asio::any_io_executor executor_;
    std::size_t max_per_host_;
    std::map<Origin, Host> hosts_;
    asio::steady_timer timer_;
    bool armed_ = false;
};

}  // namespace tools
