#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "outbox/clock.hpp"
#include "outbox/failpoint.hpp"
#include "outbox/outcome.hpp"

namespace tools {

namespace asio = boost::asio;

// Where connections are pooled by; fixed by the configuration file, never by an argument.
struct Origin {
    bool tls = false;
    std::string host;  // name, IPv4, or IPv6 without brackets
    int port = 80;
    friend auto operator<=>(const Origin&, const Origin&) = default;
};

struct HttpRequest {
    std::string method;
    Origin origin;
    std::string target;  // path and query, already encoded
    // Host, Content-Length, User-Agent and Connection are the client's own; nothing here may hold
    // CR, LF or NUL (the caller checked, the client refuses once more: not sent).
    std::vector<std::pair<std::string, std::string>> headers;
    std::string body;
};

struct HttpResponse {
    int status = 0;
    std::vector<std::pair<std::string, std::string>> headers;  // names as received
    std::string body;  // decoded; cut at the limit when truncated
    bool truncated = false;
    // First value of a header, by case-insensitive name.
    [[nodiscard]] std::optional<std::string> header(std::string_view name) const;
};

struct HttpFailure {
    // False: not a byte of the request was handed to the kernel, so there is definitely no effect.
    bool sent = false;
    outbox::Cause cause = outbox::Cause::other;  // of a sent one: timeout, reset, unreadable
    // Not sent: not_sent_invalid, not_sent_dns, not_sent_connect, not_sent_tls,
    // not_sent_private_host, not_sent_deadline, not_sent_cancelled. Sent: timeout, reset,
    // unreadable, cancelled.
    outbox::Error error;
};
using HttpResult = std::variant<HttpResponse, HttpFailure>;

struct HttpOptions {
    std::chrono::milliseconds connect_timeout{5'000};
    std::size_t max_response_bytes = 1024 * 1024;
    bool tls_verify = true;
    std::optional<std::string> ca_file = std::nullopt;
    std::size_t max_connections_per_host = 64;
    bool allow_private_hosts = true;  // false: loopback, private and link-local addresses refused
};

// HTTP/1.1 with a connection pool per origin. Owned by the composition root, one per distinct
// HttpOptions; runs on the io thread. Redirects are never followed. A pooled connection that turns
// out dead before any byte was written is replaced; nothing is ever sent again after its first
// byte. The deadline is read on the boot clock right before the first byte, and a request half
// written when it passes is cut, never resumed.
class HttpClient {
 public:
    HttpClient(asio::any_io_executor executor, HttpOptions options, outbox::Failpoints& failpoints);
    ~HttpClient();
    HttpClient(const HttpClient&) = delete;
    HttpClient& operator=(const HttpClient&) = delete;

    asio::awaitable<HttpResult> send(HttpRequest request, outbox::Deadline deadline);

    // Closes idle connections; running requests go on.
    void close_idle();

 private:
    class Impl;
    std::unique_ptr<Impl> impl_;
};

}  // namespace tools
