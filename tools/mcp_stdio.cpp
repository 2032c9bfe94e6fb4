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

#include "tools/mcp_lines.hpp"
#include "tools/mcp_task.hpp"
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

// One process, one call, and the task that it may go on as.
class Conversation final : public McpTaskLine {
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
    asio::awaitable<Asked> ask(std::string_view method, std::string task) override;
    asio::awaitable<bool> wait(nanoseconds longest) override;

 private:
    // Leaves peer_, or says why not.
    asio::awaitable<std::optional<McpEnd>> open();
    // Whether the tool wants to be called as a task; a server that cannot list its tools has said
    // nothing about it.
    asio::awaitable<bool> wants_task();
    // How a request ended without an answer.
    [[nodiscard]] McpEnd unanswered(McpLines::End end) const;
    [[nodiscard]] McpEnd unopened(const std::string& what, McpLines::End end) const;

    Running process_;
    McpLines lines_;
    const McpCall& call_;
    McpEras& legacy_;
    std::string identity_;
    Deadline deadline_;
    McpPeer peer_;
    RpcId last_id_ = 0;
};

McpEnd Conversation::unopened(const std::string& what, McpLines::End end) const {
    if (process_->not_started()) {
        return not_started(started_as(call_), *process_->not_started());
    }
    switch (end) {
        case McpLines::End::gone:
            return not_called(
                "not_sent_mcp",
                started_as(call_) + " ended before it answered " + what + last_words(*process_)
            );
        case McpLines::End::cancelled:
            return not_called("not_sent_cancelled", "This process stops; nothing was sent.");
        case McpLines::End::flooded:
        case McpLines::End::too_long:
        case McpLines::End::answered:
        case McpLines::End::silent:
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
        if (!asked.answer && asked.end != McpLines::End::silent) {
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
    if (!noted) co_return unopened("notifications/initialized", McpLines::End::gone);
    legacy_[identity_] = true;
    peer_ = {.version = greeting.version, .modern = false, .session = {}, .tasks = greeting.tasks};
    co_return std::nullopt;
}

asio::awaitable<bool> Conversation::wants_task() {
    constexpr int kMostPages = 50;
    std::string cursor;
    for (int page = 0; page < kMostPages; ++page) {
        const auto id = ++last_id_;
        auto asking = lines_.ask(id, list_tools_message(id, cursor, peer_), false, deadline_);
        const auto asked = co_await std::move(asking);
        if (!asked.answer || asked.answer->kind != RpcMessage::Kind::result) co_return false;
        const auto& body = asked.answer->body;
        if (const auto wanted = read_wants_task(body, call_.tool)) co_return *wanted;
        const auto* next = body.find("nextCursor");
        const auto* text = next == nullptr ? nullptr : next->as_string();
        if (text == nullptr || text->empty() || *text == cursor) co_return false;
        cursor = *text;
    }
    co_return false;
}

asio::awaitable<bool> Conversation::wait(nanoseconds longest) {
    const auto until = Deadline::after(longest);
    while (!until.passed() && !process_->gone() && !process_->ended()) {
        auto sleeping = RunningCommand::sleep(process_, until.left());
        co_await std::move(sleeping);
        auto cancelling = is_cancelled();
        if (co_await std::move(cancelling)) co_return false;
    }
    co_return true;
}

asio::awaitable<McpTaskLine::Asked> Conversation::ask(std::string_view method, std::string task) {
    const auto id = ++last_id_;
    auto message = task_message(id, method, task, peer_);
    auto asking = lines_.ask(id, std::move(message), peer_.modern, deadline_);
    auto told = co_await std::move(asking);
    Asked asked;
    asked.answer = std::move(told.answer);
    if (!asked.answer) {
        asked.failure = unanswered(told.end);
        asked.hopeless = true;  // it is gone, or does not speak the protocol
    }
    co_return asked;
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
    if (call_.task) {
        auto looking = look_at_task(*this, *call_.task);
        co_return co_await std::move(looking);
    }
    bool as_task = false;
    if (peer_.tasks) {
        auto learning = wants_task();
        as_task = co_await std::move(learning);
    }
    const auto id = ++last_id_;
    auto message = call_message(id, call_, peer_, as_task);
    auto asking = lines_.ask(id, std::move(message), peer_.modern, deadline_);
    auto asked = co_await std::move(asking);
    if (asked.answer) {
        if (auto task = read_created_task(*asked.answer)) {
            auto following = follow_task(*this, std::move(*task), call_.keep, deadline_);
            co_return co_await std::move(following);
        }
        McpEnd end;
        end.what = to_answer(*asked.answer);
        co_return end;
    }
    if (!asked.sent) co_return unopened("the call", asked.end);
    co_return unanswered(asked.end);
}

McpEnd Conversation::unanswered(McpLines::End end) const {
    switch (end) {
        case McpLines::End::flooded:
            return lost(Cause::unreadable, "unreadable", "the server sent messages without end");
        case McpLines::End::too_long:
            return lost(
                Cause::unreadable, "unreadable", "a message is longer than limits.response"
            );
        case McpLines::End::gone:
            return lost(
                Cause::killed,
                "killed",
                "the server ended before it answered the call" + last_words(*process_)
            );
        case McpLines::End::cancelled:
            return lost(Cause::other, "cancelled", "This process stopped before the answer came.");
        case McpLines::End::answered:
        case McpLines::End::silent:
            break;
    }
    return lost(Cause::timeout, "timeout", "The server did not answer in time and was ended.");
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
