#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "daemon/http_server.hpp"
#include "daemon/mcp/face.hpp"

namespace outboxd::mcp {

// What the headers of a POST must say about its message; empty when all is well. Pure.
[[nodiscard]] std::optional<Fault> check_headers(
    const ServerRequest& request, const Message& message
);

// The face over Streamable HTTP: one POST, one message, answered by JSON, or by a stream of events
// when the client wants to hear of progress. No sessions and no stream without a request, as the
// current revision has it and the earlier ones allow. Who may ask was decided before (AdminGuard).
class HttpFace {
 public:
    HttpFace(asio::any_io_executor executor, Face& face, std::optional<std::string> run_header)
        : executor_(std::move(executor)), face_(face), run_header_(std::move(run_header)) {}

    void configure(std::optional<std::string> run_header) { run_header_ = std::move(run_header); }

    asio::awaitable<ServerResponse> post(ServerRequest request);

    // Those who wait are told what is known, and nobody waits from here on: the daemon stops. What
    // was asked for is recorded all the same.
    void stop();

 private:
    // An exchange that stop() reaches, as long as this is kept.
    class Waiting;

    asio::awaitable<void> stream(Message message, RunSource run, ResponseStream& out);
    static asio::awaitable<bool> send(ResponseStream& out, std::string text);
    [[nodiscard]] RunSource run_of(const ServerRequest& request) const;

    asio::any_io_executor executor_;
    Face& face_;
    std::optional<std::string> run_header_;
    std::set<Exchange*> waiting_;
    bool stopping_ = false;
};

}  // namespace outboxd::mcp
