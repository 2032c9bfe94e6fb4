#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <chrono>
#include <stdexcept>
#include <utility>

namespace tests {

// Runs one coroutine to its end on an io_context of its own and returns what it returned, or
// throws what it threw. A coroutine that does not end fails the test instead of hanging it.
template <class T>
T wait_for(boost::asio::awaitable<T> task, std::chrono::seconds limit = std::chrono::seconds(30)) {
    boost::asio::io_context context;
    auto result = boost::asio::co_spawn(context, std::move(task), boost::asio::use_future);
    context.run_for(limit);
    if (result.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
        throw std::runtime_error("the coroutine did not end in time");
    }
    return result.get();
}

}  // namespace tests
