#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "outbox/clock.hpp"
#include "tools/mcp_protocol.hpp"
#include "tools/running_command.hpp"

namespace tools {

namespace asio = boost::asio;

// The messages of one call to one process: a line each, both ways.
class McpLines {
 public:
    explicit McpLines(std::shared_ptr<RunningCommand> process) : process_(std::move(process)) {
        process_->wake_on_output = true;
    }

    enum class End { answered, silent, gone, flooded, too_long, cancelled };
    struct Asked {
        End end = End::gone;
        std::optional<RpcMessage> answer;
        bool sent = false;  // at least a byte of the request was handed on
    };
    // Writes the request, and waits for its answer until `until`.
    asio::awaitable<Asked> ask(RpcId id, std::string message, bool modern, outbox::Deadline until);
    // False: it could not be written to its end. `sent` says whether a byte of it was.
    asio::awaitable<bool> write(std::string message, outbox::Deadline until, bool& sent);

 private:
    // Nothing more will be read of it. What ended may have left an answer in its pipe; a grandchild
    // that keeps the pipe open is waited for as long as one of a command.
    [[nodiscard]] bool gone();
    [[nodiscard]] std::vector<RpcMessage> take_lines();

    std::shared_ptr<RunningCommand> process_;
    std::optional<outbox::Deadline> patience_;  // since it ended
};

}  // namespace tools
