#include "tools/running_command.hpp"

#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <csignal>
#include <utility>

namespace tools {
namespace {

using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;

constexpr std::size_t kErrorsLimit = 8 * 1024;
// The boot clock goes on while the machine sleeps, timers do not: look at it again at least so
// often.
constexpr auto kLongestSleep = std::chrono::seconds{1};
// Where the kernel has no pidfd, the end is polled for.
constexpr auto kPollSleep = milliseconds{20};
constexpr auto kReapWait = std::chrono::seconds{2};

void keep(CommandStream& stream, std::size_t count) {
    const auto room = stream.limit - std::min(stream.limit, stream.text.size());
    stream.text.append(stream.buffer.data(), std::min(room, count));
    if (count > room) stream.truncated = true;
}

}  // namespace

std::shared_ptr<RunningCommand> RunningCommand::start(
    const asio::any_io_executor& executor,
    const ProcessSpec& spec,
    outbox::Deadline deadline,
    int& error
) {
    auto spawned = spawn(spec, deadline);
    if (spawned.error != 0) {
        error = spawned.error;
        return nullptr;
    }
    auto running =
        std::make_shared<RunningCommand>(executor, std::move(spawned), spec.output_limit);
    read_more(running, &RunningCommand::output);
    read_more(running, &RunningCommand::errors);
    read_reports(running);
    watch_keeper(running);
    return running;
}

RunningCommand::RunningCommand(
    const asio::any_io_executor& executor, Spawned spawned, std::size_t output_limit
)
    : output(executor, spawned.output.release(), output_limit),
      errors(executor, spawned.errors.release(), kErrorsLimit),
      wake_(executor),
      keeper_(spawned.keeper),
      control_(executor, spawned.control.release()) {
    if (spawned.handle.valid()) handle_.emplace(executor, spawned.handle.release());
    if (spawned.input.valid()) {
        input.emplace(executor, asio::local::stream_protocol(), spawned.input.release());
    }
}

// Only once the keeper cannot do it: it died by a signal, or does not answer.
void RunningCommand::kill_group() const {
    if (command_ > 0) ::kill(-command_, SIGKILL);
    if (!reaped_) ::kill(keeper_, SIGKILL);
}

void RunningCommand::reap() {
    int status = 0;
    if (reaped_ || ::waitpid(keeper_, &status, WNOHANG) != keeper_) return;
    reaped_ = true;
    orderly_ = WIFEXITED(status);
}

void RunningCommand::listen(const KeeperReport& said) {
    switch (said.kind) {
        case KeeperReport::Kind::command:
            command_ = said.value;
            break;
        case KeeperReport::Kind::not_started:
            not_started_ = said.value;
            break;
        case KeeperReport::Kind::ended:
            ended_ = said;
            break;
    }
}

void RunningCommand::read_more(Shared self, CommandStream RunningCommand::* which) {
    auto& stream = (*self).*which;
    auto target = asio::buffer(stream.buffer);
    stream.descriptor.async_read_some(
        target,
        [self, which](const boost::system::error_code& error, std::size_t count) {
            auto& read = (*self).*which;
            keep(read, count);
            read.closed = static_cast<bool>(error);
            if (!error) read_more(self, which);
            if (error || self->wake_on_output) self->wake_.cancel();
        }
    );
}

void RunningCommand::read_reports(Shared self) {
    auto target = asio::buffer(&self->report_, sizeof self->report_);
    self->control_.async_read_some(
        target,
        [self](const boost::system::error_code& error, std::size_t count) {
            if (error) {
                self->gone_ = true;
            } else {
                if (count == sizeof self->report_) self->listen(self->report_);
                read_reports(self);
            }
            self->wake_.cancel();
        }
    );
}

void RunningCommand::watch_keeper(Shared self) {
    if (!self->handle_) return;
    self->handle_->async_wait(
        asio::posix::stream_descriptor::wait_read,
        [self](const boost::system::error_code&) {
            self->reap();
            self->wake_.cancel();
        }
    );
}

asio::awaitable<void> RunningCommand::sleep(
    std::shared_ptr<RunningCommand> self, std::chrono::nanoseconds longest
) {
    const auto step = self->handle_ ? std::chrono::nanoseconds{kLongestSleep} : kPollSleep;
    self->wake_.expires_after(std::clamp(longest, std::chrono::nanoseconds{0}, step));
    auto waiting = self->wake_.async_wait(asio::as_tuple(asio::use_awaitable));
    co_await std::move(waiting);
}

asio::awaitable<void> RunningCommand::finish(std::shared_ptr<RunningCommand> self) {
    ::shutdown(self->control_.native_handle(), SHUT_WR);
    const auto until = Steady::now() + kReapWait;
    self->reap();
    while (!(self->gone_ && self->reaped_) && Steady::now() < until) {
        auto sleeping = sleep(self, milliseconds{100});
        co_await std::move(sleeping);
        self->reap();
    }
    if (!self->orderly_) self->kill_group();
    boost::system::error_code ignored;
    self->control_.close(ignored);
    self->output.descriptor.close(ignored);
    self->errors.descriptor.close(ignored);
    if (self->input) self->input->close(ignored);
    if (self->reaped_ && self->handle_) self->handle_->close(ignored);
}

ProcessEnd RunningCommand::take_end(bool cut, outbox::Deadline deadline) {
    ProcessEnd end;
    if (not_started_) {
        end.code = *not_started_;
        return end;
    }
    end.output = std::move(output.text);
    end.truncated = output.truncated;
    end.errors = std::move(errors.text);
    if (ended_) {
        const bool exited = ended_->value == CLD_EXITED;
        end.how = exited ? ProcessEnd::How::exited : ProcessEnd::How::signalled;
        end.code = ended_->status;
    } else if (cut) {
        end.how = ProcessEnd::How::cut;
    } else if (deadline.passed()) {
        end.how = ProcessEnd::How::timed_out;
    } else {
        // The keeper was killed, and took the command with it.
        end.how = ProcessEnd::How::signalled;
        end.code = SIGKILL;
    }
    return end;
}

asio::awaitable<bool> is_cancelled() {
    const auto state = co_await asio::this_coro::cancellation_state;
    co_return state.cancelled() != asio::cancellation_type::none;
}

}  // namespace tools
