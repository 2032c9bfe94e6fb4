#pragma once

#include <algorithm>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <chrono>
#include <exception>
#include <optional>
#include <type_traits>
#include <utility>

#include "tests/support/catch.hpp"

namespace test {

namespace asio = boost::asio;

// A limit is there to end a test that hangs. What takes a blink takes seconds under a sanitizer on
// a busy machine, so none is shorter than this; what a test asserts about time it asserts itself.
constexpr std::chrono::milliseconds kShortestLimit{60'000};

// Runs the io context until the task has ended, and fails the test when that takes too long: a
// coroutine test cannot hang. Other work of the context goes on meanwhile and is left as it is.
template <class T>
T run_coroutine(asio::io_context& io, asio::awaitable<T> task, std::chrono::milliseconds limit) {
    bool ended = false;
    std::exception_ptr error;
    std::conditional_t<std::is_void_v<T>, int, std::optional<T>> result{};
    if constexpr (std::is_void_v<T>) {
        asio::co_spawn(io, std::move(task), [&](std::exception_ptr e) {
            error = std::move(e);
            ended = true;
        });
    } else {
        asio::co_spawn(io, std::move(task), [&](std::exception_ptr e, T value) {
            error = std::move(e);
            result = std::move(value);
            ended = true;
        });
    }
    io.restart();
    const auto until = std::chrono::steady_clock::now() + std::max(limit, kShortestLimit);
    while (!ended && std::chrono::steady_clock::now() < until) {
        if (io.run_one_until(until) == 0) break;
    }
    REQUIRE(ended);  // else: the coroutine did not end in time
    if (error) std::rethrow_exception(error);
    if constexpr (!std::is_void_v<T>) return std::move(*result);
}

// Runs the io context until the condition holds; fails the test when that takes too long.
template <class Condition>
void run_until(asio::io_context& io, Condition condition, std::chrono::milliseconds limit) {
    io.restart();
    const auto until = std::chrono::steady_clock::now() + std::max(limit, kShortestLimit);
    while (!condition() && std::chrono::steady_clock::now() < until) {
        if (io.run_one_until(until) == 0) break;
    }
    REQUIRE(condition());
}

}  // namespace test
