#include "daemon/admin_server.hpp"

#include <algorithm>
#include <utility>

namespace outboxd {

namespace {

ServerResponse text(std::string body) {
    ServerResponse response;
    response.content_type = "text/plain; charset=utf-8";
    response.body = std::move(body);
    return response;
}

std::string lower(std::string_view text) {
    std::string lowered(text);
    for (char& c : lowered) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return lowered;
}

// "Desk.example.com:9464" → "desk.example.com", "[::1]:9464" → "::1".
std::string host_name(std::string_view header) {
    if (header.starts_with('[')) return lower(header.substr(1, header.find(']') - 1));
    return lower(header.substr(0, header.find(':')));
}

bool is_loopback_name(const std::string& name) {
    // Four numbers that begin with 127, not a name such as 127.example.com.
    bool numeric = name.find_first_not_of("0123456789.") == std::string::npos;
    return name == "localhost" || name == "::1" || (numeric && name.starts_with("127."));
}

bool is_read(const ServerRequest& request) {
    return request.method == "GET" || request.method == "HEAD";
}

ServerResponse only_get() {
    auto response = problem(405, "Method not allowed", "This path can only be read.");
    response.headers.emplace_back("Allow", "GET, HEAD");
    return response;
}

}  // namespace

AdminServer::AdminServer(
    asio::any_io_executor executor,
    AdminOptions options,
    const Metrics& metrics,
    Readiness readiness
)
    : options_(std::move(options)),
      metrics_(metrics),
      readiness_(std::move(readiness)),
      server_(std::move(executor), ServerOptions{}, [this](ServerRequest request) {
          return handle(std::move(request));
      }) {
    for (auto& host : options_.hosts) host = lower(host);
}

std::optional<std::string> AdminServer::listen() {
    return server_.listen(options_.host, options_.port);
}

bool AdminServer::is_known_host(const ServerRequest& request) const {
    auto header = request.header("Host");
    if (!header) return false;
    auto name = host_name(*header);
    return is_loopback_name(name) ||
           std::find(options_.hosts.begin(), options_.hosts.end(), name) != options_.hosts.end();
}

asio::awaitable<ServerResponse> AdminServer::handle(ServerRequest request) {
    ServerResponse response =
        is_known_host(request)
            ? route(request)
            : problem(
                  421,
                  "Misdirected request",
                  "The Host header names neither this machine nor one of admin.hosts."
              );
    response.headers.emplace_back("Cache-Control", "no-store");
    response.headers.emplace_back("X-Content-Type-Options", "nosniff");
    co_return response;
}

ServerResponse AdminServer::route(const ServerRequest& request) const {
    bool known =
        request.path == "/metrics" || request.path == "/livez" || request.path == "/readyz";
    if (!known) return problem(404, "Not found", "There is nothing at this path.");
    if (!is_read(request)) return only_get();
    if (request.path == "/metrics") {
        ServerResponse response = text(metrics_.serialize());
        response.content_type = "text/plain; version=0.0.4; charset=utf-8";
        return response;
    }
    if (request.path == "/livez") return text("alive\n");
    auto missing = readiness_();
    return missing ? problem(503, "Not ready", *missing) : text("ready\n");
}

}  // namespace outboxd
