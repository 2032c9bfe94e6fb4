#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

namespace outbox {

namespace asio = boost::asio;

// Runs a task on another executor (a thread of its own) and resumes the caller on the caller's. The
// task is never cancelled, and the caller not before it ended. By an empty slot: co_spawn up to
// Boost 1.81 at least hands the other executor a pointer into the caller's slot, which is gone when
// the task ends just then.
template <class Executor, class T>
asio::awaitable<T> elsewhere(const Executor& executor, asio::awaitable<T> task) {
    return asio::co_spawn(
        executor,
        std::move(task),
        asio::bind_cancellation_slot(asio::cancellation_slot(), asio::use_awaitable)
    );
}

}  // namespace outbox
