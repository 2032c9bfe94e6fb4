#include "tools/mcp_stdio.hpp"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/running_command.hpp"

namespace tools {
namespace {

using outbox::Cause;
using outbox::Deadline;
using std::chrono::nanoseconds;
using Running = std::shared_ptr<RunningCommand>;
using Next = McpGreeting::Next;

// Some servers say nothing to a question that they do not know.
constexpr nanoseconds kSilence = std::chrono::seconds{10};
// A server whose input has ended is waited for so long: it may still be writing to its disk.
constexpr nanoseconds kLeaveTime = std::chrono::seconds{1};

Deadline at_most(Deadline deadline, nanoseconds longest) {
    return {std::min(deadline.at, outbox::BootClock::now() + longest)};
}

// The messages of one call to one process: a line each, both ways.
class Lines {
 public:
    explicit Lines(Running process) : process_(std::move(process)) {
        process_->wake_on_output = true;
    }

    enum class End { answered, silent, gone, flooded, too_long, cancelled };
    struct Asked {
        End end = End::gone;
        std::optional<RpcMessage> answer;
        bool sent = false;  // at least a byte of the request was handed on
    };
    // Writes the request, and waits for its answer until `until`.
    asio::awaitable<Asked> ask(RpcId id, std::string message, bool modern, Deadline until);
    // False: it could not be written to its end. `sent` says whether a byte of it was.
    asio::awaitable<bool> write(std::string message, Deadline until, bool& sent);

 private:
    // Nothing more will be read of it. What ended may have left an answer in its pipe; a grandchild
    // that keeps the pipe open is waited for as long as one of a command.
    [[nodiscard]] bool gone();
    [[nodiscard]] std::vector<RpcMessage> take_lines();

    Running process_;
    std::optional<Deadline> patience_;  // since it ended
};

bool Lines::gone() {
    if (process_->output.closed || process_->not_started()) return true;
    if (!process_->ended() && !process_->gone()) return false;
    if (!patience_) patience_ = Deadline::after(kLeaveTime);
    return patience_->passed();
}

asio::awaitable<bool> Lines::write(std::string message, Deadline until, bool& sent) {
    message += '\n';
    std::size_t written = 0;
    auto& socket = *process_->input;
    socket.non_blocking(true);
    while (written < message.size()) {
        // The deadline is read right before every write; nothing is waited for in between.
        if (until.passed()) co_return false;
        boost::system::error_code error;
        const auto rest = asio::buffer(message.data() + written, message.size() - written);
        const auto bytes = socket.write_some(rest, error);
        written += bytes;
        sent = sent || bytes > 0;
        if (error && error != asio::error::would_block) co_return false;
        if (!error) continue;
        // Its input is full: what it says meanwhile is read, and it may have ended.
        constexpr nanoseconds kFull = std::chrono::milliseconds{5};
        auto sleeping = RunningCommand::sleep(process_, std::min(kFull, until.left()));
        co_await std::move(sleeping);
        auto asking = is_cancelled();
        if (gone() || co_await std::move(asking)) co_return false;
    }
    co_return true;
}

std::vector<RpcMessage> Lines::take_lines() {
    std::vector<RpcMessage> messages;
    auto& text = process_->output.text;
    std::size_t at = 0;
    for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n', at)) {
        for (auto& message : parse_rpc(std::string_view(text).substr(at, end - at))) {
            messages.push_back(std::move(message));
        }
        at = end + 1;
    }
    text.erase(0, at);
    return messages;
}

asio::awaitable<Lines::Asked> Lines::ask(
    RpcId id, std::string message, bool modern, Deadline until
) {
    Asked asked;
    auto writing = write(std::move(message), until, asked.sent);
    const bool whole = co_await std::move(writing);
    if (!whole && !asked.sent) co_return asked;
    McpInbox inbox(id, modern);
    for (;;) {
        const bool last = gone();  // before the look at what it said
        auto replies = inbox.take(take_lines());
        asked.answer = inbox.answer();
        asked.end = asked.answer                 ? End::answered
                    : inbox.flooded()            ? End::flooded
                    : process_->output.truncated ? End::too_long
                    : last                       ? End::gone
                                                 : End::silent;
        if (asked.end != End::silent || until.passed()) co_return asked;
        for (auto& reply : replies) {
            bool ignored = false;
            auto replying = write(std::move(reply), until, ignored);
            co_await std::move(replying);
        }
        const auto longest = patience_ ? std::min(until.left(), patience_->left()) : until.left();
        auto sleeping = RunningCommand::sleep(process_, longest);
        co_await std::move(sleeping);
        auto asking = is_cancelled();
        if (co_await std::move(asking)) {
            asked.end = End::cancelled;
            co_return asked;
        }
    }
}

std::string started_as(const McpCall& call) {
    return std::get<ProcessSpec>(call.to).argv.front();
}

// The first line of what it said on standard error, for people.
std::string last_words(const RunningCommand& process) {
    const auto& text = process.errors.text;
    constexpr std::size_t kLongest = 300;
    const auto line = text.substr(0, std::min(text.find('\n'), kLongest));
    return line.empty() ? "" : ": " + line;
}

McpEnd not_started(const std::string& program, int error) {
    if (error == ETIME) {
        return not_called("not_sent_deadline", "the deadline passed before the server started");
    }
    return not_called("not_sent_start", program + " could not be started: " + std::strerror(error));
}

// One process, one call.
class Conversation {
 public:
    Conversation(
        Running process,
        const McpCall& call,
        McpEras& legacy,
        std::string identity,
        Deadline deadline
    )
        : process_(process),
          lines_(std::move(process)),
          call_(call),
          legacy_(legacy),
          identity_(std::move(identity)),
          deadline_(deadline) {}

    asio::awaitable<McpEnd> run();

 private:
    // Leaves peer_, or says why not.
    asio::awaitable<std::optional<McpEnd>> open();
    [[nodiscard]] McpEnd unopened(const std::string& what, Lines::End end) const;

    Running process_;
    Lines lines_;
    const McpCall& call_;
    McpEras& legacy_;
    std::string identity_;
    Deadline deadline_;
    McpPeer peer_;
    RpcId last_id_ = 0;
};

McpEnd Conversation::unopened(const std::string& what, Lines::End end) const {
    if (process_->not_started()) {
        return not_started(started_as(call_), *process_->not_started());
    }
    switch (end) {
        case Lines::End::gone:
            return not_called(
                "not_sent_mcp",
                started_as(call_) + " ended before it answered " + what + last_words(*process_)
            );
        case Lines::End::cancelled:
            return not_called("not_sent_cancelled", "This process stops; nothing was sent.");
        case Lines::End::flooded:
        case Lines::End::too_long:
        case Lines::End::answered:
        case Lines::End::silent:
            break;
    }
    return not_called(
        "not_sent_mcp",
        started_as(call_) + " did not answer " + what + " in time" + last_words(*process_)
    );
}

asio::awaitable<std::optional<McpEnd>> Conversation::open() {
    std::string version(legacy_mcp().front());
    const auto known = legacy_.find(identity_);
    if (known == legacy_.end() || !known->second) {
        const auto id = ++last_id_;
        // It may still be starting; and half of the time is left for initialize.
        const auto until = at_most(deadline_, std::min(kSilence, deadline_.left() / 2));
        auto asking = lines_.ask(id, discover_message(id), true, until);
        const auto asked = co_await std::move(asking);
        if (!asked.answer && asked.end != Lines::End::silent) {
            co_return unopened("server/discover", asked.end);
        }
        if (asked.answer) {
            const auto greeting = read_discover(*asked.answer);
            if (greeting.next == Next::hopeless) {
                co_return not_called("not_sent_mcp", greeting.problem);
            }
            if (greeting.next == Next::ready) {
                legacy_[identity_] = false;
                peer_ = {.version = greeting.version, .modern = true, .session = {}};
                co_return std::nullopt;
            }
            version = greeting.version;
        }
    }
    const auto id = ++last_id_;
    auto asking = lines_.ask(id, initialize_message(id, version), false, deadline_);
    const auto asked = co_await std::move(asking);
    if (!asked.answer) {
        legacy_.erase(identity_);
        co_return unopened("initialize", asked.end);
    }
    const auto greeting = read_initialize(*asked.answer);
    if (greeting.next != Next::ready) {
        legacy_.erase(identity_);
        co_return not_called("not_sent_mcp", greeting.problem);
    }
    bool ignored = false;
    auto noting = lines_.write(initialized_message(), deadline_, ignored);
    const bool noted = co_await std::move(noting);
    if (!noted) co_return unopened("notifications/initialized", Lines::End::gone);
    legacy_[identity_] = true;
    peer_ = {.version = greeting.version, .modern = false, .session = {}};
    co_return std::nullopt;
}

asio::awaitable<McpEnd> Conversation::run() {
    auto opening = open();
    auto failed = co_await std::move(opening);
    if (failed) co_return std::move(*failed);
    // The last look before the first byte of the call.
    if (deadline_.passed()) {
        co_return not_called("not_sent_deadline", "The time for this attempt ended.");
    }
    auto cancelling = is_cancelled();
    if (co_await std::move(cancelling)) {
        co_return not_called("not_sent_cancelled", "This process stops; nothing was sent.");
    }
    const auto id = ++last_id_;
    auto asking = lines_.ask(id, call_message(id, call_, peer_), peer_.modern, deadline_);
    auto asked = co_await std::move(asking);
    if (asked.answer) {
        McpEnd end;
        end.what = to_answer(*asked.answer);
        co_return end;
    }
    if (!asked.sent) co_return unopened("the call", asked.end);
    switch (asked.end) {
        case Lines::End::flooded:
            co_return lost(Cause::unreadable, "unreadable", "the server sent messages without end");
        case Lines::End::too_long:
            co_return lost(
                Cause::unreadable, "unreadable", "a message is longer than limits.response"
            );
        case Lines::End::gone:
            co_return lost(
                Cause::killed,
                "killed",
                "the server ended before it answered the call" + last_words(*process_)
            );
        case Lines::End::cancelled:
            co_return lost(
                Cause::other, "cancelled", "This process stopped before the answer came."
            );
        case Lines::End::answered:
        case Lines::End::silent:
            break;
    }
    co_return lost(Cause::timeout, "timeout", "The server did not answer in time and was ended.");
}

// Ends its input, which asks it to leave, and then whatever is left of it.
asio::awaitable<void> leave(Running process, Deadline deadline) {
    boost::system::error_code ignored;
    if (process->input) process->input->close(ignored);
    const auto until = at_most(deadline, kLeaveTime);
    while (!process->gone() && !process->ended() && !until.passed()) {
        process->output.text.clear();  // nobody listens any more, but it shall not get stuck
        auto sleeping = RunningCommand::sleep(process, until.left());
        co_await std::move(sleeping);
        auto asking = is_cancelled();
        if (co_await std::move(asking)) break;
    }
    auto finishing = RunningCommand::finish(process);
    co_await std::move(finishing);
}

}  // namespace

asio::awaitable<McpEnd> McpStdioServer::call(McpCall call, const Scope&, Deadline deadline) {
    if (deadline.passed()) co_return not_started({}, ETIME);
    const auto executor = co_await asio::this_coro::executor;
    int error = 0;
    auto process = RunningCommand::start(executor, std::get<ProcessSpec>(call.to), deadline, error);
    if (!process) co_return not_started(started_as(call), error);
    // A cancellation is an end like the others here: all must be ended and the keeper collected.
    const bool throwing = co_await asio::this_coro::throw_if_cancelled();
    co_await asio::this_coro::throw_if_cancelled(false);
    Conversation conversation(process, call, *legacy_, identity_, deadline);
    auto running = conversation.run();
    McpEnd end;
    std::exception_ptr failure;
    try {
        end = co_await std::move(running);
    } catch (...) {
        failure = std::current_exception();
    }
    auto leaving = leave(process, deadline);
    co_await std::move(leaving);
    co_await asio::this_coro::throw_if_cancelled(throwing);
    if (failure) std::rethrow_exception(failure);
    // Its streams may have closed before the keeper said why.
    if (process->not_started()) co_return not_started(started_as(call), *process->not_started());
    co_return end;
}

}  // namespace tools
