#pragma once

#include <map>
#include <memory>
#include <string>

#include "tools/mcp_server.hpp"

namespace tools {

// Whether the server of a command wants initialize, so that it is found out once: true, false, or
// not known. By the program and its arguments; io thread.
using McpEras = std::map<std::string, bool>;

// A server that is started for each call, by the keeper of commands (command_keeper.hpp), and ended
// with it. Not one that stays: at the deadline of an attempt nothing of it may act any more, and
// only a process of its own can be ended without hurting others.
class McpStdioServer final : public McpServer {
 public:
    // identity: of the command, for what is known about it.
    McpStdioServer(std::shared_ptr<McpEras> legacy, std::string identity)
        : legacy_(std::move(legacy)), identity_(std::move(identity)) {}

    asio::awaitable<McpEnd> call(McpCall call, const Scope& scope, outbox::Deadline deadline)
        override;

 private:
    std::shared_ptr<McpEras> legacy_;
    std::string identity_;
};

}  // namespace tools
