#pragma once

#include <map>
#include <memory>
#include <string>

#include "tools/http_senders.hpp"
#include "tools/mcp_http.hpp"
#include "tools/mcp_stdio.hpp"
#include "tools/mcp_template.hpp"

namespace tools {

// Makes the servers of a toolset: what is known of one is shared by all tools that speak to it as
// the same client. Used while the toolset is built; what it made belongs to the tools.
class McpServers {
 public:
    explicit McpServers(HttpSenders& senders) : senders_(senders) {}

    [[nodiscard]] std::shared_ptr<McpServer> of(const McpTemplate& call, const HttpOptions& http);

 private:
    HttpSenders& senders_;
    std::map<std::string, std::shared_ptr<McpKnowledge>> known_;
    std::shared_ptr<McpEras> eras_ = std::make_shared<McpEras>();
};

}  // namespace tools
