#include "daemon/admin_server.hpp"

#include <utility>

namespace outboxd {

namespace {

// A call over MCP brings arguments of up to 1 MiB, and what is around them.
constexpr std::size_t kMaxBody = std::size_t{2} * 1024 * 1024;
// Twice what waits on /mcp at most (mcp::Face::kMaxCalls): agents that wait, or have gone, must not
// keep a probe, Prometheus or the page out.
constexpr std::size_t kMaxConnections = 512;

ServerResponse text(std::string body) {
    ServerResponse response;
    response.content_type = "text/plain; charset=utf-8";
    response.body = std::move(body);
    return response;
}

bool fits(const AdminServer::Route& route, const ServerRequest& request) {
    return route.path.ends_with('/') && route.path.size() > 1 ? request.path.starts_with(route.path)
                                                              : request.path == route.path;
}

ServerResponse not_allowed(std::string methods) {
    auto response =
        problem(405, "Method not allowed", "This path takes another method: " + methods + ".");
    response.headers.emplace_back("Allow", std::move(methods));
    return response;
}

}  // namespace

AdminServer::AdminServer(
    asio::any_io_executor executor,
    AdminOptions options,
    const Metrics& metrics,
    Readiness readiness
)
    : options_(options),
      guard_(std::move(options)),
      server_(
          std::move(executor),
          ServerOptions{.max_body = kMaxBody, .max_connections = kMaxConnections},
          [this](ServerRequest request) { return handle(std::move(request)); }
      ) {
    add_text("/livez", [] { return text("alive\n"); });
    add_text("/metrics", [&metrics] {
        ServerResponse response = text(metrics.serialize());
        response.content_type = "text/plain; version=0.0.4; charset=utf-8";
        return response;
    });
    add_text("/readyz", [readiness = std::move(readiness)] {
        const auto ready = readiness();
        return ready.missing ? problem(503, "Not ready", *ready.missing)
                             : text("ready\n" + ready.note);
    });
}

void AdminServer::add(Route route) {
    routes_.push_back(std::move(route));
}

void AdminServer::add_text(std::string path, std::function<ServerResponse()> answer) {
    add(
        {.method = "GET",
         .path = std::move(path),
         .access = Access::open,
         .handler = [answer = std::move(answer)](ServerRequest) -> asio::awaitable<ServerResponse> {
             co_return answer();
         }}
    );
}

std::optional<std::string> AdminServer::listen() {
    if (auto problem = guard_.token_problem()) return problem;
    return server_.listen(options_.host, options_.port);
}

asio::awaitable<ServerResponse> AdminServer::handle(ServerRequest request) {
    auto routing = route(std::move(request));
    auto response = co_await std::move(routing);
    secure(response);
    co_return response;
}

asio::awaitable<ServerResponse> AdminServer::route(ServerRequest request) {
    if (auto refused = guard_.check_host(request)) co_return std::move(*refused);
    const std::string method = request.method == "HEAD" ? "GET" : request.method;
    const Route* best = nullptr;
    std::size_t longest = 0;
    std::string methods;  // of the longest path that fits
    for (const auto& route : routes_) {
        if (!fits(route, request) || route.path.size() < longest) continue;
        if (route.path.size() > longest) {
            best = nullptr;
            methods.clear();
        }
        longest = route.path.size();
        methods += (methods.empty() ? "" : ", ") + route.method;
        if (route.method == "GET") methods += ", HEAD";
        if (route.method == method) best = &route;
    }
    if (longest == 0) co_return problem(404, "Not found", "There is nothing at this path.");
    if (best == nullptr) co_return not_allowed(std::move(methods));
    if (auto refused = guard_.check_access(request, best->access)) co_return std::move(*refused);
    auto handling = best->handler(std::move(request));
    co_return co_await std::move(handling);
}

}  // namespace outboxd
