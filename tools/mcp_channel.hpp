#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tools/http_sender.hpp"
#include "tools/mcp_protocol.hpp"
#include "tools/request_credential.hpp"

namespace tools {

// The messages of one call over Streamable HTTP: each is a POST, and its answer a JSON document or
// a stream of events, on which the server may also ask. Lives as long as the call.
class McpChannel {
 public:
    struct Options {
        HttpSender& sender;
        const RequestCredential& credential;
        const HttpRequest& base;  // but for message, protocol headers and credential
        const Scope& scope;
        outbox::Deadline deadline;
        std::size_t max_event_bytes;
    };
    explicit McpChannel(Options options) : options_(options) {}

    // What a request ended as: the answer to it, or what came over HTTP instead.
    struct Posted {
        HttpResult result;
        std::optional<RpcMessage> answer;
        std::string problem;  // of a stream that was given up
    };
    struct Request {
        RpcId id;
        std::string message;
        std::string_view method;
        std::string_view name;  // Mcp-Name; empty: none
    };
    using Headers = std::vector<std::pair<std::string, std::string>>;
    asio::awaitable<Posted> post(Request request, McpPeer peer, Headers headers = {});
    // A message without an answer.
    asio::awaitable<HttpResult> send(
        std::string message, const McpPeer& peer, outbox::Deadline deadline
    );

 private:
    class Listening;

    asio::awaitable<void> resume(Posted& posted, Listening& listening, const McpPeer& peer);
    void sign(HttpRequest& request) const;

    Options options_;
};

// The headers of the protocol; method and name only where the revision has them.
void add_protocol_headers(
    HttpRequest& request, const McpPeer& peer, std::string_view method, std::string_view name
);

}  // namespace tools
