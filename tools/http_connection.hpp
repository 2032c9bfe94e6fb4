#pragma once

#include <array>
#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/system/error_code.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "outbox/clock.hpp"
#include "tools/http_client.hpp"

namespace tools {

// Why a connection did not come about; never a byte of a request was written.
struct ConnectFailure {
    std::string code;  // not_sent_dns, not_sent_connect, not_sent_tls, …
    std::string message;
};

struct ConnectOptions {
    std::chrono::milliseconds timeout{5'000};  // name, TCP and TLS together
    outbox::Deadline deadline;
    bool verify = true;
    bool allow_private_hosts = true;
    const HttpProxy* proxy = nullptr;  // null: directly; outlives the connection
};

// How long to wait until the boot clock is looked at again, with this deadline ahead.
[[nodiscard]] std::chrono::nanoseconds until_tick(outbox::Deadline deadline);

// One TCP or TLS connection and the boot clock deadline its steps run against. Serves one request
// at a time, on the io thread. Reads and writes never throw: they end with an error code.
class HttpConnection {
 public:
    struct Transfer {
        boost::system::error_code error;
        std::size_t bytes = 0;
    };

    // tls: null for plain TCP; must outlive the connection.
    HttpConnection(asio::any_io_executor executor, Origin origin, asio::ssl::context* tls);
    ~HttpConnection();
    HttpConnection(const HttpConnection&) = delete;
    HttpConnection& operator=(const HttpConnection&) = delete;

    // Looks the host (or the proxy's) up, tries all its addresses one after the other, asks the
    // proxy for a tunnel, shakes hands. Empty when connected.
    asio::awaitable<std::optional<ConnectFailure>> open(ConnectOptions options);

    // Ends a waiting read or write at the deadline. expired() tells that from a cancellation.
    void watch(outbox::Deadline deadline);
    void unwatch();
    [[nodiscard]] bool expired() const { return expired_; }

    using Buffers = std::array<asio::const_buffer, 2>;
    asio::awaitable<Transfer> write_some(Buffers data);
    // After the deadline it still hands over what has already arrived, without waiting.
    asio::awaitable<Transfer> read_some(asio::mutable_buffer into);
    // While a request is being written: an answer that comes before its end stops the writing.
    void stop_writing_on_answer(bool on) { watching_for_answer_ = on; }
    [[nodiscard]] bool answer_seen() const { return answer_seen_; }

    // Neither closed by the other side nor talked to since the last answer.
    [[nodiscard]] bool idle_and_alive();
    // Closes at once and throws away what the kernel has not sent yet.
    void cut();

 private:
    using Endpoints = std::vector<asio::ip::tcp::endpoint>;
    struct Lookup;

    void arm();
    void tick();
    asio::awaitable<std::optional<ConnectFailure>> look_up(
        outbox::Deadline limit, Endpoints& found
    );
    asio::awaitable<std::optional<ConnectFailure>> connect(
        outbox::Deadline limit, const Endpoints& endpoints
    );
    asio::awaitable<std::optional<ConnectFailure>> open_tunnel(outbox::Deadline limit);
    asio::awaitable<std::optional<ConnectFailure>> shake_hands(outbox::Deadline limit, bool verify);
    [[nodiscard]] ConnectFailure give_up(std::string code, const std::string& why) const;
    [[nodiscard]] std::string unreached(const char* code) const;
    Transfer read_present(asio::mutable_buffer into);

    using Tls = asio::ssl::stream<asio::ip::tcp::socket&>;

    Origin origin_;
    const HttpProxy* proxy_ = nullptr;
    asio::ip::tcp::socket socket_;
    std::unique_ptr<Tls> tls_;  // null for plain TCP
    asio::steady_timer timer_;
    outbox::Deadline deadline_{};
    bool expired_ = false;
    bool watching_for_answer_ = false;
    bool answer_seen_ = false;
    std::shared_ptr<HttpConnection*> self_;  // timer handlers hold it weakly
};

}  // namespace tools
