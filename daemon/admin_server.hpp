#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "daemon/admin_guard.hpp"
#include "daemon/http_server.hpp"
#include "daemon/metrics.hpp"

namespace outboxd {

// admin.listen: /metrics, /livez and /readyz, open to everybody who can connect, and what others
// add to it. One place (AdminGuard) decides who may ask; handlers only answer.
class AdminServer {
 public:
    // What /readyz says.
    struct Ready {
        std::optional<std::string> missing;  // a sentence; empty when ready
        std::string note{};                  // what is not well all the same; lines
    };
    using Readiness = std::function<Ready()>;

    struct Route {
        std::string method;  // GET answers HEAD as well
        std::string path;    // with a slash at its end: everything under it; else this path alone
        Access access = Access::write;
        ServerHandler handler;
    };

    AdminServer(
        asio::any_io_executor executor,
        AdminOptions options,
        const Metrics& metrics,
        Readiness readiness
    );

    // Before run(). The longest path that fits a request wins, whatever was added first.
    void add(Route route);

    // Empty when it listens, else why not.
    [[nodiscard]] std::optional<std::string> listen();
    [[nodiscard]] int port() const { return server_.port(); }
    asio::awaitable<void> run() { return server_.run(); }
    void stop() { server_.stop(); }

 private:
    asio::awaitable<ServerResponse> handle(ServerRequest request);
    asio::awaitable<ServerResponse> route(ServerRequest request);
    void add_text(std::string path, std::function<ServerResponse()> answer);

    AdminOptions options_;
    AdminGuard guard_;
    std::vector<Route> routes_;
    HttpServer server_;
};

}  // namespace outboxd
