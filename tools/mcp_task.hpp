#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "outbox/clock.hpp"
#include "tools/mcp_answer.hpp"
#include "tools/mcp_protocol.hpp"

// A call that was answered with a task goes on behind its answer. Two forms of one thing: those of
// 2025-11-25 (what the call ended with is asked for by tasks/result), and the extension
// io.modelcontextprotocol/tasks of 2026-07-28 (tasks/get brings it along).
namespace tools {

namespace asio = boost::asio;

struct McpTask {
    enum class State { working, input_required, completed, failed, cancelled };
    std::string id;
    State state = State::working;
    std::string message;              // what the server says about it
    std::chrono::nanoseconds poll{};  // when to look again
    // Of one that ended, where it is told along: what the call itself would have been answered.
    std::optional<RpcMessage> end;
};

// The task that a call was answered with; empty: with something else. An id that nothing could be
// asked by (empty, endless, control characters) is empty in it.
[[nodiscard]] std::optional<McpTask> read_created_task(const RpcMessage& answer);
// What tasks/get answered; empty: nothing that could be understood.
[[nodiscard]] std::optional<McpTask> read_task(const RpcMessage& answer);

// How the messages about a task reach its server; one per transport.
class McpTaskLine {
 public:
    virtual ~McpTaskLine() = default;
    struct Asked {
        std::optional<RpcMessage> answer;
        // Where there is none: why; and that asking again makes no sense.
        McpEnd failure;
        bool hopeless = false;
        // Of the answer over HTTP.
        std::optional<int> status;
        std::vector<std::pair<std::string, std::string>> headers;
        std::optional<LaneSignal> signal;
    };
    virtual asio::awaitable<Asked> ask(std::string_view method, std::string task) = 0;
    // False: this process stops.
    virtual asio::awaitable<bool> wait(std::chrono::nanoseconds longest) = 0;
};

// Follows a task that was just created to its end, as long as the deadline lets it. Looking has no
// effect, so a look that fails is simply made again. `keep` is asked to store its id first.
asio::awaitable<McpEnd> follow_task(
    McpTaskLine& line,
    McpTask task,
    std::function<asio::awaitable<bool>(std::string)> keep,
    outbox::Deadline deadline
);

// Looks once at a task of an earlier call.
asio::awaitable<McpEnd> look_at_task(McpTaskLine& line, std::string id);

}  // namespace tools
