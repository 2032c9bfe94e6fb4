#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/http_server.hpp"

namespace outboxd {

// What a request needs before it reaches a handler.
enum class Access {
    open,   // nothing: metrics, probes, the page's static shell
    read,   // the token; without a token_file free on a loopback address
    write,  // the token, from no other site's page; without a token_file refused
    agent,  // as write, with the token for agents where there is one
};

struct AdminOptions {
    std::string host = "127.0.0.1";
    int port = 9464;
    std::vector<std::string> hosts;         // further names the Host header may carry
    std::optional<std::string> token_file;  // holds the bearer token; read for each request
    std::optional<std::string> agent_token_file = {};  // the one of /mcp; empty: token_file
};

// Who may do what on the admin port: the one place that decides it. A page in somebody's browser
// must neither reach the port by pointing its own name here (DNS rebinding: Host) nor post to it
// from another site (Origin, Sec-Fetch-Site, and a media type that no form can send).
class AdminGuard {
 public:
    explicit AdminGuard(AdminOptions options);

    // Empty when the tokens can be read, or none is configured; else a sentence.
    [[nodiscard]] std::optional<std::string> token_problem() const;
    // Empty when the request may pass, else the answer.
    [[nodiscard]] std::optional<ServerResponse> check_host(const ServerRequest& request) const;
    [[nodiscard]] std::optional<ServerResponse> check_access(
        const ServerRequest& request, Access access
    ) const;

 private:
    // Where a token lies, and the key that says so.
    struct TokenPlace {
        std::string key;
        std::optional<std::string> file;
    };
    [[nodiscard]] TokenPlace place_of(Access access) const;
    [[nodiscard]] std::optional<ServerResponse> check_token(
        const ServerRequest& request, Access access
    ) const;

    AdminOptions options_;
};

// Headers that every answer carries.
void secure(ServerResponse& response);

}  // namespace outboxd
