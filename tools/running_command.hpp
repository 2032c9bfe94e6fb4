#pragma once

#include <sys/types.h>

#include <array>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "outbox/clock.hpp"
#include "tools/child_process.hpp"
#include "tools/command_keeper.hpp"
#include "tools/process_run.hpp"

namespace tools {

// One output stream of a command, read until it ends; what exceeds the limit is dropped. Whoever
// takes text out makes room again.
struct CommandStream {
    CommandStream(const asio::any_io_executor& executor, int fd, std::size_t max)
        : descriptor(executor, fd), limit(max) {}

    asio::posix::stream_descriptor descriptor;
    std::size_t limit;
    std::array<char, 16 * 1024> buffer{};
    std::string text;
    bool truncated = false;
    bool closed = false;
};

// A running command and its keeper. Its handlers share it, so it lives until the last of them ran;
// whoever lets it go closes the control socket, which ends both. Runs on the io thread.
class RunningCommand {
 public:
    // Null: it was not started, and error is errno.
    static std::shared_ptr<RunningCommand> start(
        const asio::any_io_executor& executor,
        const ProcessSpec& spec,
        outbox::Deadline deadline,
        int& error
    );
    RunningCommand(
        const asio::any_io_executor& executor, Spawned spawned, std::size_t output_limit
    );
    ~RunningCommand() { reap(); }
    RunningCommand(const RunningCommand&) = delete;
    RunningCommand& operator=(const RunningCommand&) = delete;

    // It did not start after all: errno.
    [[nodiscard]] const std::optional<int>& not_started() const { return not_started_; }
    [[nodiscard]] const std::optional<KeeperReport>& ended() const { return ended_; }
    // Nothing more will be heard of it.
    [[nodiscard]] bool gone() const { return gone_ || not_started_.has_value(); }

    CommandStream output;
    CommandStream errors;
    // Of a spec that is interactive: the other end of its standard input.
    std::optional<asio::local::stream_protocol::socket> input;
    // Wakes sleep() for every piece of output, not only for its end.
    bool wake_on_output = false;

    // Until something happened, at most so long.
    static asio::awaitable<void> sleep(
        std::shared_ptr<RunningCommand> self, std::chrono::nanoseconds longest
    );
    // Has the keeper end what is left, listens to its last words, and collects it.
    static asio::awaitable<void> finish(std::shared_ptr<RunningCommand> self);
    // How it ended; takes the output. After finish().
    [[nodiscard]] ProcessEnd take_end(bool cut, outbox::Deadline deadline);

 private:
    void reap();
    void kill_group() const;
    void listen(const KeeperReport& said);
    using Shared = std::shared_ptr<RunningCommand>;
    static void read_more(Shared self, CommandStream RunningCommand::* which);
    static void read_reports(Shared self);
    static void watch_keeper(Shared self);

    asio::steady_timer wake_;  // cancelled whenever something happened
    pid_t keeper_;
    asio::posix::stream_descriptor control_;
    std::optional<asio::posix::stream_descriptor> handle_;  // of the keeper
    KeeperReport report_;                                   // being read
    pid_t command_ = -1;
    std::optional<int> not_started_;  // errno
    std::optional<KeeperReport> ended_;
    bool gone_ = false;     // the keeper will say no more
    bool reaped_ = false;   // the keeper is collected
    bool orderly_ = false;  // it ended by itself: nothing of the command is left
};

// Whether the current coroutine is cancelled.
asio::awaitable<bool> is_cancelled();

}  // namespace tools
