#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tools/mcp_channel.hpp"
#include "tools/mcp_server.hpp"
#include "tools/turn.hpp"

namespace tools {

// What is known of a server that is reached by HTTP. Shared by the tools of a toolset that speak to
// one server as one client; io thread.
struct McpKnowledge {
    std::optional<McpPeer> peer;                            // empty: not asked yet
    std::map<std::string, std::vector<McpMirror>> mirrors;  // by tool, learned when one is refused
    std::map<std::string, bool> as_task;  // by tool: it is to be called as a task; of this peer
    RpcId last_id = 0;
    Turn opening;  // one asks how to speak to it, the others wait

    RpcId next_id() { return ++last_id; }
};

// A server over Streamable HTTP, by the HTTP client of all tools: its deadlines, pool, TLS, proxy,
// credentials and knowledge about the first byte. What goes before a call (server/discover, or
// initialize and its session) has no effect: where it fails, the call was not sent.
class McpHttpServer final : public McpServer {
 public:
    McpHttpServer(
        std::shared_ptr<HttpSender> sender,
        RequestCredential credential,
        std::shared_ptr<McpKnowledge> knowledge,
        std::size_t max_event_bytes
    )
        : sender_(std::move(sender)),
          credential_(std::move(credential)),
          knowledge_(std::move(knowledge)),
          max_event_bytes_(max_event_bytes) {}

    asio::awaitable<McpEnd> call(McpCall call, const Scope& scope, outbox::Deadline deadline)
        override;

 private:
    std::shared_ptr<HttpSender> sender_;
    RequestCredential credential_;
    std::shared_ptr<McpKnowledge> knowledge_;
    std::size_t max_event_bytes_;
};

// A call's POST as it is shown to a person: of the current revision, with its message.
[[nodiscard]] HttpRequest shown_request(
    const McpCall& call, const RequestCredential& credential, const Scope& scope
);

}  // namespace tools
