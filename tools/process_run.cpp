#include "tools/process_run.hpp"

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

// A running child. Its handlers share it, so it lives until the last of them ran; whoever lets it
// go while it runs kills its group.
struct Child {
    Child(const asio::any_io_executor& executor, Spawned spawned, std::size_t output_limit)
        : wake(executor),
          pid(spawned.pid),
          output(executor, spawned.output.release(), output_limit),
          errors(executor, spawned.errors.release(), kErrorsLimit) {
        if (spawned.handle.valid()) handle.emplace(executor, spawned.handle.release());
    }
    ~Child() {
        if (reaped) return;
        kill_group();
        reap();
    }
    Child(const Child&) = delete;
    Child& operator=(const Child&) = delete;

    // Only while the process is not reaped: until then nobody else can get its id.
    void kill_group() const {
        if (reaped) return;
        ::kill(-pid, SIGKILL);
        ::kill(pid, SIGKILL);
    }
    // Looks whether it ended, and leaves it a zombie, so that its group can still be named.
    bool ended() {
        if (status) return true;
        siginfo_t info{};
        if (::waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
            return false;
        }
        if (info.si_pid == pid) status = info;
        return status.has_value();
    }
    void reap() {
        if (!reaped && ::waitpid(pid, nullptr, WNOHANG) == pid) reaped = true;
    }

    asio::steady_timer wake;  // cancelled whenever something happened
    pid_t pid;
    Stream output;
    Stream errors;
    std::optional<asio::posix::stream_descriptor> handle;
    std::optional<siginfo_t> status;
    bool abandoned = false;  // nobody waits any more: reap it when it ends
    bool reaped = false;
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

void watch_end(Shared child) {
    if (!child->handle) return;
    child->handle->async_wait(
        asio::posix::stream_descriptor::wait_read,
        [child](const boost::system::error_code&) {
            if (child->abandoned) child->reap();
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

// Until the process ended and its pipes are closed or waited for long enough, or until the
// deadline or a cancellation.
asio::awaitable<ProcessEnd::How> wait_for_end(Shared child, outbox::Deadline deadline) {
    std::optional<Steady::time_point> patience;
    for (;;) {
        auto left = deadline.left();
        if (child->ended()) {
            const auto now = Steady::now();
            if (!patience) patience = now + kGrandchildWait;
            const bool closed = child->output.closed && child->errors.closed;
            if (closed || now >= *patience || left.count() <= 0) co_return ProcessEnd::How::exited;
            left = std::min<std::chrono::nanoseconds>(left, *patience - now);
        }
        if (left.count() <= 0) co_return ProcessEnd::How::timed_out;
        auto sleeping = sleep(child, left);
        co_await std::move(sleeping);
        auto asking = is_cancelled();
        if (co_await std::move(asking)) co_return ProcessEnd::How::cut;
    }
}

// Kills what is left of the group and collects the process itself.
asio::awaitable<void> finish(Shared child, bool wait) {
    child->kill_group();
    const auto until = Steady::now() + kReapWait;
    while (wait && !child->ended() && Steady::now() < until) {
        auto sleeping = sleep(child, milliseconds{100});
        co_await std::move(sleeping);
    }
    child->reap();
    child->abandoned = true;
    boost::system::error_code ignored;
    child->output.descriptor.close(ignored);
    child->errors.descriptor.close(ignored);
    if (child->reaped && child->handle) child->handle->close(ignored);
}

ProcessEnd describe_end(Child& child, ProcessEnd::How how) {
    ProcessEnd end;
    end.how = how;
    end.output = std::move(child.output.text);
    end.truncated = child.output.truncated;
    end.errors = std::move(child.errors.text);
    if (how != ProcessEnd::How::exited || !child.status) return end;
    end.code = child.status->si_status;
    if (child.status->si_code != CLD_EXITED) end.how = ProcessEnd::How::signalled;
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
    auto spawned = spawn(spec);
    if (spawned.error != 0) {
        not_started.code = spawned.error;
        co_return not_started;
    }
    auto child = std::make_shared<Child>(executor, std::move(spawned), spec.output_limit);
    read_more(child, &Child::output);
    read_more(child, &Child::errors);
    watch_end(child);
    // A cancellation is an end like the others here: the group must be killed and the child reaped.
    const bool throws = co_await asio::this_coro::throw_if_cancelled();
    co_await asio::this_coro::throw_if_cancelled(false);
    auto waiting = wait_for_end(child, deadline);
    const auto how = co_await std::move(waiting);
    auto finishing = finish(child, how == ProcessEnd::How::timed_out);
    co_await std::move(finishing);
    co_await asio::this_coro::throw_if_cancelled(throws);
    co_return describe_end(*child, how);
}

}  // namespace tools
