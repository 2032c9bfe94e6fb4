#include "tools/mcp_servers.hpp"

namespace tools {

std::shared_ptr<McpServer> McpServers::of(const McpTemplate& call, const HttpOptions& http) {
    const auto* server = call.server();
    if (server == nullptr) return std::make_shared<McpStdioServer>(eras_, call.identity());
    auto& known = known_[call.identity()];
    if (!known) known = std::make_shared<McpKnowledge>();
    return std::make_shared<McpHttpServer>(
        senders_.of(http, server->credential()),
        server->credential(),
        known,
        http.max_response_bytes
    );
}

}  // namespace tools
