#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "tools/child_process.hpp"
#include "tools/http_client.hpp"
#include "tools/json_rpc.hpp"

// What MCP's revisions say, as pure functions. Since 2026-07-28 every request says by itself who
// asks and how (called modern here); before that, a session is opened by initialize.
namespace tools {

inline constexpr std::string_view kModernMcp = "2026-07-28";
// Those with initialize that are spoken, the latest first.
[[nodiscard]] const std::vector<std::string_view>& legacy_mcp();

// How a server is spoken to.
struct McpPeer {
    std::string version;
    bool modern = false;
    std::string session;  // Mcp-Session-Id; empty: the server gave none
    bool tasks = false;   // 2025-11-25: it offers to run calls of tools as tasks
};

// One tools/call, rendered, and where it goes: a POST that lacks its message, or a server to start.
struct McpCall {
    std::string tool;
    outbox::Json arguments;  // an object
    outbox::Json meta;       // members of _meta; an object
    std::variant<HttpRequest, ProcessSpec> to;

    // Look at this task, which an earlier call was answered with, instead of calling.
    std::optional<std::string> task = {};
    // Stores the id of a task that the call is answered with; false: not now. May be empty.
    std::function<boost::asio::awaitable<bool>(std::string)> keep = {};
};

[[nodiscard]] std::string discover_message(RpcId id);
[[nodiscard]] std::string initialize_message(RpcId id, std::string_view version);
[[nodiscard]] std::string initialized_message();
[[nodiscard]] std::string call_message(
    RpcId id, const McpCall& call, const McpPeer& peer, bool as_task = false
);
// tasks/get, tasks/result.
[[nodiscard]] std::string task_message(
    RpcId id, std::string_view method, const std::string& task, const McpPeer& peer
);
[[nodiscard]] std::string list_tools_message(
    RpcId id, const std::string& cursor, const McpPeer& peer
);

// What an answer to server/discover or initialize says about how to go on.
struct McpGreeting {
    enum class Next {
        ready,       // peer is complete, but for the session
        initialize,  // with this version
        hopeless,    // no version in common, or an answer that is none
    };
    Next next = Next::hopeless;
    std::string version;
    std::string problem;
    bool tasks = false;  // McpPeer::tasks
};
// Any answer but a modern one means a server that wants initialize.
[[nodiscard]] McpGreeting read_discover(const RpcMessage& answer);
[[nodiscard]] McpGreeting read_initialize(const RpcMessage& answer);
// UnsupportedProtocolVersion (-32022): the server did not execute it, and says what it speaks.
[[nodiscard]] bool is_modern_error(const RpcMessage& answer);

// A parameter that a tool's schema wants mirrored in a header (x-mcp-header).
struct McpMirror {
    std::string header;             // Mcp-Param-Region
    std::vector<std::string> path;  // of members: region
};
// Of one tool in a page of tools/list; empty: the tool is not in it. A tool whose annotations are
// not allowed has none.
[[nodiscard]] std::optional<std::vector<McpMirror>> read_mirrors(
    const outbox::Json& page, const std::string& tool
);
// Whether the tool is to be called as a task (2025-11-25); empty: it is not in this page.
[[nodiscard]] std::optional<bool> read_wants_task(
    const outbox::Json& page, const std::string& tool
);
// The value of a header; empty: there is nothing to mirror.
[[nodiscard]] std::optional<std::string> mirrored(
    const McpMirror& mirror, const outbox::Json& arguments
);
// Plain, or =?base64?…?= where a header cannot carry it.
[[nodiscard]] std::string header_value(std::string_view text);

// What comes while one request waits for its answer.
class McpInbox {
 public:
    // peer: whose requests are answered: none of a modern server, which must not send any.
    McpInbox(RpcId id, bool modern) : id_(id), modern_(modern) {}

    // Messages to send back: ping is answered, everything else that is asked of us is refused.
    [[nodiscard]] std::vector<std::string> take(const std::vector<RpcMessage>& messages);

    [[nodiscard]] const std::optional<RpcMessage>& answer() const { return answer_; }
    // More came than anybody sends for one call: it is not read to its end.
    [[nodiscard]] bool flooded() const;

 private:
    RpcId id_;
    bool modern_;
    std::optional<RpcMessage> answer_;
    std::size_t messages_ = 0;
    std::size_t replies_ = 0;
};

}  // namespace tools
