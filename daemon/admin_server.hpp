#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "daemon/http_server.hpp"
#include "daemon/metrics.hpp"

namespace outboxd {

struct AdminOptions {
    std::string host = "127.0.0.1";
    int port = 9464;
    std::vector<std::string> hosts;  // further names the Host header may carry
};

// admin.listen: /metrics, /livez and /readyz, open to everybody who can connect. A Host header
// that is neither a loopback name nor configured is refused: a page in somebody's browser must not
// reach it by pointing its own name here.
class AdminServer {
 public:
    // Empty when ready, else a sentence that says what is missing.
    using Readiness = std::function<std::optional<std::string>()>;

    AdminServer(
        asio::any_io_executor executor,
        AdminOptions options,
        const Metrics& metrics,
        Readiness readiness
    );

    // Empty when it listens, else why not.
    [[nodiscard]] std::optional<std::string> listen();
    [[nodiscard]] int port() const { return server_.port(); }
    asio::awaitable<void> run() { return server_.run(); }
    void stop() { server_.stop(); }

 private:
    asio::awaitable<ServerResponse> handle(ServerRequest request);
    [[nodiscard]] ServerResponse route(const ServerRequest& request) const;
    [[nodiscard]] bool is_known_host(const ServerRequest& request) const;

    AdminOptions options_;
    const Metrics& metrics_;
    Readiness readiness_;
    HttpServer server_;
};

}  // namespace outboxd
