#include "tools/process_run.hpp"

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <cerrno>
#include <chrono>
#include <memory>
#include <optional>

#include "tools/running_command.hpp"

namespace tools {
namespace {

using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;
using Running = std::shared_ptr<RunningCommand>;

constexpr auto kGrandchildWait = std::chrono::seconds{1};
// Even at the deadline, what a command that has ended left in its pipes is read.
constexpr auto kDrain = milliseconds{100};

// Until the command ended and its pipes are closed or waited for long enough, or until the deadline
// or a cancellation: true for the latter.
asio::awaitable<bool> wait_for_end(Running command, outbox::Deadline deadline) {
    std::optional<Steady::time_point> patience;
    while (!command->gone()) {
        auto left = deadline.left();
        if (command->ended()) {
            const auto now = Steady::now();
            // At the deadline the keeper closes what is left; what it leaves in the pipes is read.
            const auto longest = std::min<std::chrono::nanoseconds>(kGrandchildWait, left);
            if (!patience) patience = now + std::max<std::chrono::nanoseconds>(longest, kDrain);
            const bool closed = command->output.closed && command->errors.closed;
            if (closed || now >= *patience) break;
            left = *patience - now;
        }
        if (left.count() <= 0) break;
        auto sleeping = RunningCommand::sleep(command, left);
        co_await std::move(sleeping);
        auto asking = is_cancelled();
        if (co_await std::move(asking)) co_return true;
    }
    co_return false;
}

}  // namespace

asio::awaitable<ProcessEnd> run_process(ProcessSpec spec, outbox::Deadline deadline) {
    ProcessEnd not_started;
    if (deadline.passed()) {
        not_started.code = ETIME;
        co_return not_started;
    }
    const auto executor = co_await asio::this_coro::executor;
    auto command = RunningCommand::start(executor, spec, deadline, not_started.code);
    if (!command) co_return not_started;
    // A cancellation is an end like the others here: all must be ended and the keeper collected.
    const bool throws = co_await asio::this_coro::throw_if_cancelled();
    co_await asio::this_coro::throw_if_cancelled(false);
    auto waiting = wait_for_end(command, deadline);
    const bool cut = co_await std::move(waiting);
    auto finishing = RunningCommand::finish(command);
    co_await std::move(finishing);
    co_await asio::this_coro::throw_if_cancelled(throws);
    co_return command->take_end(cut, deadline);
}

}  // namespace tools
