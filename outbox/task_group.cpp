#include "outbox/task_group.hpp"

#include <boost/asio/co_spawn.hpp>
#include <utility>

#include "outbox/clock.hpp"

namespace outbox {

TaskGroup::TaskGroup(asio::any_io_executor executor, OnEscape on_escape)
    : executor_(executor), on_escape_(std::move(on_escape)), empty_(std::move(executor)) {}

void TaskGroup::spawn(std::string name, asio::awaitable<void> task) {
    ++size_;
    asio::co_spawn(
        executor_,
        std::move(task),
        [this, name = std::move(name)](std::exception_ptr error) { ended(name, std::move(error)); }
    );
}

void TaskGroup::ended(const std::string& name, std::exception_ptr error) {
    --size_;
    if (error) {
        try {
            std::rethrow_exception(std::move(error));
        } catch (const std::exception& e) {
            on_escape_(name, e.what());
        } catch (...) {
            on_escape_(name, "something that is no std::exception");
        }
    }
    if (size_ == 0) empty_.ring();
}

asio::awaitable<bool> TaskGroup::join(std::chrono::nanoseconds limit) {
    const auto until = BootClock::now() + limit;
    interrupted_ = false;
    while (size_ > 0 && !interrupted_) {
        const auto left = until - BootClock::now();
        if (left <= std::chrono::nanoseconds::zero()) break;
        co_await empty_.wait(left);
    }
    co_return size_ == 0;
}

void TaskGroup::interrupt_join() {
    interrupted_ = true;
    empty_.ring();
}

}  // namespace outbox
