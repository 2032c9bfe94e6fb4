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
#include "tools/client_certificate.hpp"

namespace tools {

namespace asio = boost::asio;

// Where connections are pooled by; fixed by the configuration file, never by an argument.
struct Origin {
    bool tls = false;
    std::string host;  // name, IPv4, or IPv6 without brackets
    int port = 80;
    friend auto operator<=>(const Origin&, const Origin&) = default;
};

class AnswerReader;

struct HttpRequest {
    std::string method;
    Origin origin;
    std::string target;  // path and query, already encoded
    // Host, Content-Length, User-Agent and Connection are the client's own; nothing here may hold
    // CR, LF or NUL (the caller checked, the client refuses once more: not sent).
    std::vector<std::pair<std::string, std::string>> headers;
    std::string body;
    // Reads the answer while it comes; null: it is kept until it is whole. Outlives the sending.
    AnswerReader* reader = nullptr;
};

struct HttpResponse {
    int status = 0;
    std::vector<std::pair<std::string, std::string>> headers;  // names as received
    std::string body;  // decoded; cut at the limit when truncated
    bool truncated = false;
    // A 401 to a token that had been fetched for an earlier request: the next one carries a fresh
    // one. Set by AuthorizedSender.
    bool token_was_stale = false;
    // First value of a header, by case-insensitive name.
    [[nodiscard]] std::optional<std::string> header(std::string_view name) const;
};

// For answers that may go on for ever, such as an event stream: it is handed what came and says
// when it has seen enough. Called within the sending, on the io thread; while it waits for
// something nothing is read. What is compressed is not handed to it, but decoded when it is whole.
class AnswerReader {
 public:
    virtual ~AnswerReader() = default;
    // `head` has no body. What it takes out of `body` does not count against max_response_bytes any
    // more. True: nothing behind this is needed; the connection is not used again.
    virtual asio::awaitable<bool> read(const HttpResponse& head, std::string& body) = 0;
};

struct HttpFailure {
    // False: not a byte of the request was handed to the kernel (or the proxy that got it refused
    // to pass it on), so there is definitely no effect.
    bool sent = false;
    outbox::Cause cause = outbox::Cause::other;  // of a sent one: timeout, reset, unreadable
    // Not sent: not_sent_invalid, not_sent_dns, not_sent_connect, not_sent_tls, not_sent_proxy,
    // not_sent_private_host, not_sent_credential, not_sent_deadline, not_sent_cancelled. Sent:
    // timeout, reset, unreadable, cancelled.
    outbox::Error error;
};
using HttpResult = std::variant<HttpResponse, HttpFailure>;

// An HTTP proxy: CONNECT for https, the absolute form for http.
struct HttpProxy {
    std::string host;
    int port = 0;
    std::string authorization;  // value of Proxy-Authorization; a secret; empty: none
    friend auto operator<=>(const HttpProxy&, const HttpProxy&) = default;
};

struct HttpOptions {
    std::chrono::milliseconds connect_timeout{5'000};
    std::size_t max_response_bytes = 1024 * 1024;  // of a body, decoded
    bool tls_verify = true;
    std::optional<std::string> ca_file = std::nullopt;
    std::size_t max_connections_per_host = 64;
    // False: loopback, private and link-local addresses are refused, whatever name led to them. A
    // proxy itself may have one; what it connects to is its own business.
    bool allow_private_hosts = true;
    std::optional<HttpProxy> proxy = std::nullopt;
    std::shared_ptr<const ClientCertificate> certificate = nullptr;
    friend auto operator<=>(const HttpOptions&, const HttpOptions&) = default;
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
