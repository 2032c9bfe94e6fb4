#include "tools/mcp_lines.hpp"

#include <algorithm>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <chrono>
#include <string_view>
#include <utility>

namespace tools {

using outbox::Deadline;
using std::chrono::nanoseconds;

namespace {

// What has ended may have left an answer in its pipe: it is waited for so long.
constexpr nanoseconds kLeaveTime = std::chrono::seconds{1};

}  // namespace

bool McpLines::gone() {
    if (process_->output.closed || process_->not_started()) return true;
    if (!process_->ended() && !process_->gone()) return false;
    if (!patience_) patience_ = Deadline::after(kLeaveTime);
    return patience_->passed();
}

asio::awaitable<bool> McpLines::write(std::string message, Deadline until, bool& sent) {
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

std::vector<RpcMessage> McpLines::take_lines() {
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

asio::awaitable<McpLines::Asked> McpLines::ask(
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

}  // namespace tools
