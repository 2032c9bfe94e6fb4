#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/config.hpp"
#include "tools/command_template.hpp"
#include "tools/mcp_protocol.hpp"
#include "tools/request_template.hpp"
#include "tools/value_template.hpp"

namespace tools {

// A tools/call of the configuration, compiled: what it is called with, and the server.
class McpTemplate {
 public:
    enum class Phase {
        execute,  // says which operation it is for, so that a server can tell a repetition
        look_up,
    };
    // Mistakes are reported; empty when there is no call to be made of it.
    static std::optional<McpTemplate> compile(
        const config::Mcp& mcp, Phase phase, const Credentials& credentials, CompileContext& context
    );

    [[nodiscard]] Rendered<McpCall> render(const Scope& scope) const;

    // Null: the server is started for each call.
    [[nodiscard]] const RequestTemplate* server() const { return server_ ? &*server_ : nullptr; }
    // Equal for calls to one server as one client, which may share a session.
    [[nodiscard]] const std::string& identity() const { return identity_; }
    // Of what a server that is started may say in one line.
    std::size_t output_limit = 1024 * 1024;

 private:
    [[nodiscard]] outbox::Json own_meta(const Scope& scope) const;

    std::string tool_;
    ValueTemplate arguments_;
    ValueTemplate meta_;
    std::optional<RequestTemplate> server_;
    std::optional<CommandTemplate> command_;
    std::string identity_;
    bool tells_operation_ = false;
};

}  // namespace tools
