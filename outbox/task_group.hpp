#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <string>

#include "outbox/bell.hpp"

namespace outbox {

namespace asio = boost::asio;

// Every coroutine of ours runs in a group: it is counted, an exception that escapes is reported
// with the task's name, and somebody joins. Lives and is used on the io thread; whoever owns it
// joins before it is destroyed, or destroys it after the io context has stopped for good.
class TaskGroup {
 public:
    // An escaped exception is a fault of ours: it is reported, and the application should stop.
    using OnEscape = std::function<void(const std::string& name, const std::string& what)>;

    TaskGroup(asio::any_io_executor executor, OnEscape on_escape);
    TaskGroup(const TaskGroup&) = delete;
    TaskGroup& operator=(const TaskGroup&) = delete;

    void spawn(std::string name, asio::awaitable<void> task);

    // Waits until no task is left; false when the time was up before. One joiner at a time.
    asio::awaitable<bool> join(std::chrono::nanoseconds limit = Bell::kForever);
    // Makes a running join look again: it returns early with what is true by then.
    void interrupt_join();

    [[nodiscard]] std::size_t size() const { return size_; }

 private:
    void ended(const std::string& name, std::exception_ptr error);

    asio::any_io_executor executor_;
    OnEscape on_escape_;
    std::size_t size_ = 0;
    bool interrupted_ = false;
    Bell empty_;
};

}  // namespace outbox
