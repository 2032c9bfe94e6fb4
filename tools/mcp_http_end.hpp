#pragma once

#include <string>

#include "tools/mcp_answer.hpp"
#include "tools/mcp_channel.hpp"
#include "tools/mcp_protocol.hpp"

// How a call over HTTP ended, from what came back for one of its messages.
namespace tools {

// What went before the call failed: the call was not sent.
[[nodiscard]] McpEnd unopened(const McpChannel::Posted& posted, const std::string& what);
// There is no way to speak with this server.
[[nodiscard]] McpEnd hopeless(const McpChannel::Posted& posted, const McpGreeting& greeting);
// How the call itself ended.
[[nodiscard]] McpEnd end_of(McpChannel::Posted posted);

}  // namespace tools
