#pragma once

#include <memory>
#include <utility>

#include "tools/adapter.hpp"
#include "tools/mcp_tool.hpp"

namespace tools {

// Asks about an attempt by the task that its call was answered with, where that is known, and by
// the tool's own look-up otherwise, or where the task cannot tell. "Absent" of that look-up does
// not count while nobody knows whether the task is still at work.
class McpTaskProbe final : public Probe {
 public:
    McpTaskProbe(
        std::shared_ptr<const McpExecute> execute,
        std::shared_ptr<McpServer> server,
        std::unique_ptr<Probe> otherwise
    )
        : execute_(std::move(execute)),
          server_(std::move(server)),
          otherwise_(std::move(otherwise)) {}

    asio::awaitable<outbox::Verdict> ask(outbox::ToolCall call, outbox::Deadline deadline) override;

 private:
    std::shared_ptr<const McpExecute> execute_;
    std::shared_ptr<McpServer> server_;
    std::unique_ptr<Probe> otherwise_;
};

}  // namespace tools
