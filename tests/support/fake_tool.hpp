#pragma once

#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <functional>
#include <vector>

#include "outbox/tool.hpp"

namespace test {

// A tool that does what the test says. Unless told otherwise it succeeds, and finds nothing.
class FakeTool : public outbox::Tool {
 public:
    struct Script {
        std::function<outbox::Outcome(const outbox::ToolCall&)> execute =
            [](const auto&) -> outbox::Outcome { return outbox::Succeeded{}; };
        std::function<outbox::Verdict(const outbox::ToolCall&)> probe =
            [](const auto&) -> outbox::Verdict { return outbox::Absent{}; };
        std::chrono::milliseconds execute_takes{0};
        std::chrono::milliseconds probe_takes{0};
        // What it answers when its call is cut; without: it throws what the timer threw.
        std::function<outbox::Outcome()> when_cut;
        // Observed.
        std::vector<outbox::ToolCall> calls;
        std::vector<outbox::ToolCall> probes;
        int running = 0;
        int most_running = 0;
    };

    // The script belongs to the test and outlives the tool.
    explicit FakeTool(Script& script) : script_(script) {}

    boost::asio::awaitable<outbox::Outcome> execute(outbox::ToolCall call, outbox::Deadline)
        override {
        script_.calls.push_back(call);
        script_.most_running = std::max(script_.most_running, ++script_.running);
        bool cut = false;
        try {
            co_await pause(script_.execute_takes);
        } catch (const boost::system::system_error&) {
            --script_.running;
            if (!script_.when_cut) throw;
            cut = true;
        }
        if (cut) co_return script_.when_cut();
        --script_.running;
        co_return script_.execute(call);
    }

    boost::asio::awaitable<outbox::Verdict> probe(outbox::ToolCall call, outbox::Deadline)
        override {
        script_.probes.push_back(call);
        co_await pause(script_.probe_takes);
        co_return script_.probe(call);
    }

 private:
    static boost::asio::awaitable<void> pause(std::chrono::milliseconds duration) {
        if (duration <= std::chrono::milliseconds(0)) co_return;
        boost::asio::steady_timer timer(co_await boost::asio::this_coro::executor, duration);
        co_await timer.async_wait(boost::asio::use_awaitable);
    }

    Script& script_;
};

}  // namespace test
