#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <list>
#include <utility>

namespace outbox {

namespace asio = boost::asio;

// The tool calls under way, and the means to cut them. Each is a coroutine of its own, so that
// cutting it leaves its caller able to record how it ended. Runs on the io thread.
class Calls {
 public:
    explicit Calls(asio::any_io_executor executor) : executor_(std::move(executor)) {}

    // The call's answer; throws what the call throws, also when it was cut. A coroutine that is
    // destroyed with its context touches nothing here: this may be gone by then.
    template <class Answer>
    asio::awaitable<Answer> run(asio::awaitable<Answer> call) {
        const auto signal = signals_.emplace(signals_.end());
        auto token = asio::bind_cancellation_slot(signal->slot(), asio::use_awaitable);
        Answer answer;
        try {
            auto spawned = asio::co_spawn(executor_, std::move(call), token);
            answer = co_await std::move(spawned);
        } catch (...) {
            signals_.erase(signal);
            throw;
        }
        signals_.erase(signal);
        co_return answer;
    }

    // What a tool answers to that, it answers to run().
    void cut() {
        for (auto& signal : signals_) signal.emit(asio::cancellation_type::terminal);
    }

 private:
    asio::any_io_executor executor_;
    std::list<asio::cancellation_signal> signals_;
};

}  // namespace outbox
