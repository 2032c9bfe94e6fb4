#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "config/config.hpp"
#include "outbox/policy.hpp"
#include "tools/arguments_schema.hpp"
#include "tools/command_tool.hpp"
#include "tools/http_probe.hpp"
#include "tools/http_tool.hpp"
#include "tools/mcp_tool.hpp"
#include "tools/sql_tool.hpp"

namespace tools {

struct LogExecute {};

// A tool of the configuration with everything compiled that can be compiled without a running
// daemon: what check-config makes, and what adapters are built from.
struct CompiledTool {
    outbox::ToolPolicy policy;
    std::variant<HttpExecute, CommandExecute, SqlExecute, McpExecute, LogExecute> execute;
    // Empty: manual, resend, a read tool that has none, or an effect in the outbox's own
    // transaction.
    std::optional<std::variant<HttpLookup, CommandLookup, SqlLookup, McpLookup>> lookup;
    HttpOptions http;
    std::size_t output_limit = 0;
    std::string target;  // tool_policy.hpp
    std::string lookup_target;
    std::unique_ptr<const ArgumentsSchema> arguments = nullptr;  // null: none is given
};

// Mistakes and lints go to the diagnostics; empty when the tool cannot be used.
[[nodiscard]] std::optional<CompiledTool> compile_tool(
    const config::Tool& tool, const config::Config& config, config::Diagnostics& diagnostics
);

}  // namespace tools
