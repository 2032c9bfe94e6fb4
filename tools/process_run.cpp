#include "tools/process_run.hpp"

#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <memory>
#include <optional>

#include "tools/command_keeper.hpp"

namespace tools {
namespace {

using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;

constexpr std::size_t kErrorsLimit = 8 * 1024;
constexpr auto kGrandchildWait = std::chrono::seconds{1};
// The boot clock goes on while the machine sleeps, timers do not: look at it again at least so
// often.
constexpr auto kLongestSleep = std::chrono::seconds{1};
// Where the kernel has no pidfd, the end is polled for.
constexpr auto kPollSleep = milliseconds{20};
// Even at the deadline, what a command that has ended left in its pipes is read.
constexpr auto kDrain = milliseconds{100};
constexpr auto kReapWait = std::chrono::seconds{2};

// One output stream of the child, read until it ends; what exceeds the limit is dropped.
struct Stream {
    Stream(const asio::any_io_executor& executor, int fd, std::size_t max)
        : descriptor(executor, fd), limit(max) {}

    asio::posix::stream_descriptor descriptor;
    std::size_t limit;
    std::array<char, 16 * 1024> buffer{};
    std::string text;
    bool truncated = false;
    bool closed = false;
};

// A running command and its keeper. Its handlers share it, so it lives until the last of them ran;
// whoever lets it go closes the control socket, which ends both.
struct Child {
    Child(const asio::any_io_executor& executor, Spawned spawned, std::size_t output_limit)
        : wake(executor),
          keeper(spawned.keeper),
          control(executor, spawned.control.release()),
          output(executor, spawned.output.release(), output_limit),
          errors(executor, spawned.errors.release(), kErrorsLimit) {
        if (spawned.handle.valid()) handle.emplace(executor, spawned.handle.release());
    }
    ~Child() { reap(); }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    // Only once the keeper cannot do it: it died by a signal, or does not answer.
    void kill_group() const {
        if (command > 0) ::kill(-command, SIGKILL);
        if (!reaped) ::kill(keeper, SIGKILL);
    }
    void reap() {
        int status = 0;
        if (reaped || ::waitpid(keeper, &status, WNOHANG) != keeper) return;
        reaped = true;
        orderly = WIFEXITED(status);
    }
    void listen(const KeeperReport& said) {
        switch (said.kind) {
            case KeeperReport::Kind::command:
                command = said.value;
                break;
            case KeeperReport::Kind::not_started:
                not_started = said.value;
                break;
            case KeeperReport::Kind::ended:
                ended = said;
                break;
        }
    }

    asio::steady_timer wake;  // cancelled whenever something happened
    pid_t keeper;
    asio::posix::stream_descriptor control;
    Stream output;
    Stream errors;
    std::optional<asio::posix::stream_descriptor> handle;  // of the keeper
    KeeperReport report;                                   // being read
    pid_t command = -1;
    std::optional<int> not_started;  // errno
    std::optional<KeeperReport> ended;
    bool gone = false;     // the keeper will say no more
    bool reaped = false;   // the keeper is collected
    bool orderly = false;  // it ended by itself: nothing of the command is left
};

using Shared = std::shared_ptr<Child>;

void keep(Stream& stream, std::size_t count) {
    const auto room = stream.limit - stream.text.size();
    stream.text.append(stream.buffer.data(), std::min(room, count));
    if (count > room) stream.truncated = true;
}

void read_more(Shared child, Stream Child::* which) {
    auto& stream = (*child).*which;
    auto target = asio::buffer(stream.buffer);
    stream.descriptor.async_read_some(
        target,
        [child, which](const boost::system::error_code& error, std::size_t count) {
            auto& read = (*child).*which;
            keep(read, count);
            if (error) {
                read.closed = true;
                child->wake.cancel();
            } else {
                read_more(child, which);
            }
        }
    );
}

void read_reports(Shared child) {
    auto target = asio::buffer(&child->report, sizeof child->report);
    child->control.async_read_some(
        target,
        [child](const boost::system::error_code& error, std::size_t count) {
            if (error) {
                child->gone = true;
            } else {
                if (count == sizeof child->report) child->listen(child->report);
                read_reports(child);
            }
            child->wake.cancel();
        }
    );
}

void watch_keeper(Shared child) {
    if (!child->handle) return;
    child->handle->async_wait(
        asio::posix::stream_descriptor::wait_read,
        [child](const boost::system::error_code&) {
            child->reap();
            child->wake.cancel();
        }
    );
}

asio::awaitable<void> sleep(Shared child, std::chrono::nanoseconds longest) {
    const auto step = child->handle ? std::chrono::nanoseconds{kLongestSleep} : kPollSleep;
    child->wake.expires_after(std::clamp(longest, std::chrono::nanoseconds{0}, step));
    auto waiting = child->wake.async_wait(asio::as_tuple(asio::use_awaitable));
    co_await std::move(waiting);
}

asio::awaitable<bool> is_cancelled() {
    const auto state = co_await asio::this_coro::cancellation_state;
    co_return state.cancelled() != asio::cancellation_type::none;
}

// Until the command ended and its pipes are closed or waited for long enough, or until the deadline
// or a cancellation: true for the latter.
asio::awaitable<bool> wait_for_end(Shared child, outbox::Deadline deadline) {
    std::optional<Steady::time_point> patience;
    while (!child->gone && !child->not_started) {
        auto left = deadline.left();
        if (child->ended) {
            const auto now = Steady::now();
            // At the deadline the keeper closes what is left; what it leaves in the pipes is read.
            const auto longest = std::min<std::chrono::nanoseconds>(kGrandchildWait, left);
            if (!patience) patience = now + std::max<std::chrono::nanoseconds>(longest, kDrain);
            const bool closed = child->output.closed && child->errors.closed;
            if (closed || now >= *patience) break;
            left = *patience - now;
        }
        if (left.count() <= 0) break;
        auto sleeping = sleep(child, left);
        co_await std::move(sleeping);
        auto asking = is_cancelled();
        if (co_await std::move(asking)) co_return true;
    }
    co_return false;
}

// Has the keeper end what is left, listens to its last words, and collects it.
asio::awaitable<void> finish(Shared child) {
    ::shutdown(child->control.native_handle(), SHUT_WR);
    const auto until = Steady::now() + kReapWait;
    child->reap();
    while (!(child->gone && child->reaped) && Steady::now() < until) {
        auto sleeping = sleep(child, milliseconds{100});
        co_await std::move(sleeping);
        child->reap();
    }
    if (!child->orderly) child->kill_group();
    boost::system::error_code ignored;
    child->control.close(ignored);
    child->output.descriptor.close(ignored);
    child->errors.descriptor.close(ignored);
    if (child->reaped && child->handle) child->handle->close(ignored);
}

ProcessEnd describe_end(Child& child, bool cut, outbox::Deadline deadline) {
    ProcessEnd end;
    if (child.not_started) {
        end.code = *child.not_started;
        return end;
    }
    end.output = std::move(child.output.text);
    end.truncated = child.output.truncated;
    end.errors = std::move(child.errors.text);
    if (child.ended) {
        const bool exited = child.ended->value == CLD_EXITED;
        end.how = exited ? ProcessEnd::How::exited : ProcessEnd::How::signalled;
        end.code = child.ended->status;
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

}  // namespace

asio::awaitable<ProcessEnd> run_process(ProcessSpec spec, outbox::Deadline deadline) {
    ProcessEnd not_started;
    if (deadline.passed()) {
        not_started.code = ETIME;
        co_return not_started;
    }
    const auto executor = co_await asio::this_coro::executor;
    auto spawned = spawn(spec, deadline);
    if (spawned.error != 0) {
        not_started.code = spawned.error;
        co_return not_started;
    }
    auto child = std::make_shared<Child>(executor, std::move(spawned), spec.output_limit);
    read_more(child, &Child::output);
    read_more(child, &Child::errors);
    read_reports(child);
    watch_keeper(child);
    // A cancellation is an end like the others here: all must be ended and the keeper collected.
    const bool throws = co_await asio::this_coro::throw_if_cancelled();
    co_await asio::this_coro::throw_if_cancelled(false);
    auto waiting = wait_for_end(child, deadline);
    const bool cut = co_await std::move(waiting);
    auto finishing = finish(child);
    co_await std::move(finishing);
    co_await asio::this_coro::throw_if_cancelled(throws);
    co_return describe_end(*child, cut, deadline);
}

}  // namespace tools
