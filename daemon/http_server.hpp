#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace outboxd {

namespace asio = boost::asio;

struct ServerRequest {
    std::string method;
    std::string path;   // as received, percent-encoded, without the query
    std::string query;  // as received, without the question mark
    std::vector<std::pair<std::string, std::string>> headers;
    std::string body;

    // The value of a header, by case-insensitive name; empty when it is missing or there twice.
    [[nodiscard]] std::optional<std::string> header(std::string_view name) const;
    // First value of a query parameter, decoded.
    [[nodiscard]] std::optional<std::string> parameter(std::string_view name) const;
};

// A body that goes out in pieces while it is made, as server-sent events do.
class ResponseStream {
 public:
    virtual ~ResponseStream() = default;
    // Sends a piece, and waits until the connection took it. False: the client is gone, stop.
    [[nodiscard]] virtual asio::awaitable<bool> write(std::string piece) = 0;
};

struct ServerResponse {
    int status = 200;
    std::string content_type = "application/json";
    std::string body;
    std::vector<std::pair<std::string, std::string>> headers;
    // Instead of a body: runs once the head is sent, and the body ends when it returns. What it
    // throws cuts the connection. A client that leaves is noticed by the next write: one that
    // waits for long should write something meanwhile.
    std::function<asio::awaitable<void>(ResponseStream&)> stream;
    bool drop = false;  // close the connection instead of answering: for services that misbehave
};

// application/problem+json (RFC 9457): title for a class of errors, detail for this one.
[[nodiscard]] ServerResponse problem(int status, std::string_view title, std::string_view detail);

// Percent-decoding; with plus_is_space as in form values. Broken escapes stay as they are.
[[nodiscard]] std::string percent_decode(std::string_view text, bool plus_is_space);

using ServerHandler = std::function<asio::awaitable<ServerResponse>(ServerRequest)>;

struct ServerOptions {
    std::size_t max_head = std::size_t{16} * 1024;
    std::size_t max_body = std::size_t{1024} * 1024;
    std::chrono::milliseconds read_time{10'000};  // for one whole request, once it began or is due
    std::chrono::milliseconds idle_time{60'000};  // between two requests
    std::size_t max_connections = 256;            // one more is closed at once
};

// A small HTTP/1.1 server without TLS: one coroutine per connection, all on the executor's thread.
// What the handler throws becomes a 500. Stop it with stop(), and destroy it only when run() has
// returned: it returns when the last connection is gone.
class HttpServer {
 public:
    HttpServer(asio::any_io_executor executor, ServerOptions options, ServerHandler handler);
    ~HttpServer();
    HttpServer(const HttpServer&) = delete;
    HttpServer& operator=(const HttpServer&) = delete;

    // Binds; port 0 takes a free one. Empty when it listens, else a sentence that says why not.
    [[nodiscard]] std::optional<std::string> listen(const std::string& host, int port);
    [[nodiscard]] int port() const;

    asio::awaitable<void> run();
    // Closes the listener and every connection; before run(), or twice, is fine.
    void stop();

 private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace outboxd
