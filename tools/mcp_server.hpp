#pragma once

#include <boost/asio/awaitable.hpp>

#include "outbox/clock.hpp"
#include "tools/mcp_answer.hpp"
#include "tools/mcp_protocol.hpp"
#include "tools/scope.hpp"

namespace tools {

namespace asio = boost::asio;

// An MCP server as tools see it, so that their rules are tested without one. Runs on the io thread.
class McpServer {
 public:
    virtual ~McpServer() = default;
    // Makes the call at most once: no byte of it is written after the deadline, and none twice. A
    // cancellation is an end like the others, and never throws. `scope` outlives the call.
    virtual asio::awaitable<McpEnd> call(
        McpCall call, const Scope& scope, outbox::Deadline deadline
    ) = 0;
};

}  // namespace tools
