#include "tools/http_connection.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <utility>

#include "tools/http_client_address.hpp"
#include "tools/http_client_request.hpp"

namespace tools {

namespace {

using boost::system::error_code;
using outbox::BootClock;
using outbox::Deadline;
using tcp = asio::ip::tcp;

constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);

// Timers stand still while the machine sleeps, the boot clock does not: look at it this often.
constexpr std::chrono::milliseconds kTick{250};

std::chrono::nanoseconds until_tick(Deadline deadline) {
    return std::clamp<std::chrono::nanoseconds>(
        deadline.left(), std::chrono::nanoseconds{0}, kTick
    );
}

bool is_address(const std::string& host) {
    error_code ec;
    asio::ip::make_address(host, ec);
    return !ec;
}

std::string tls_reason(const error_code& ec, SSL* ssl) {
    long verdict = SSL_get_verify_result(ssl);
    if (verdict != X509_V_OK) return X509_verify_cert_error_string(verdict);
    if (ec.category() == asio::error::get_ssl_category()) {
        const char* reason = ERR_reason_error_string(static_cast<unsigned long>(ec.value()));
        if (reason != nullptr) return reason;
    }
    return ec.message();
}

// Whom the certificate must name; OpenSSL checks it with the rest when verification is on.
bool name_peer(SSL* ssl, const std::string& host) {
    X509_VERIFY_PARAM* parameters = SSL_get0_param(ssl);
    if (is_address(host)) return X509_VERIFY_PARAM_set1_ip_asc(parameters, host.c_str()) == 1;
    X509_VERIFY_PARAM_set_hostflags(
        parameters, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS | X509_CHECK_FLAG_NEVER_CHECK_SUBJECT
    );
    // SNI is for names only (RFC 6066).
    return X509_VERIFY_PARAM_set1_host(parameters, host.c_str(), host.size()) == 1 &&
           SSL_set_tlsext_host_name(ssl, host.c_str()) == 1;
}

ConnectFailure give_up(std::string code, const Origin& origin, const std::string& why) {
    return {std::move(code), "No connection to " + to_text(origin) + ": " + why + "."};
}

}  // namespace

// Outlives its caller: getaddrinfo cannot be interrupted, only be waited for no longer.
struct HttpConnection::Lookup {
    tcp::resolver resolver;
    asio::steady_timer answered;
    bool done = false;
    error_code error;
    tcp::resolver::results_type results;
    explicit Lookup(const asio::any_io_executor& executor)
        : resolver(executor), answered(executor) {}
};

HttpConnection::HttpConnection(
    asio::any_io_executor executor, Origin origin, asio::ssl::context* tls
)
    : origin_(std::move(origin)),
      socket_(executor),
      timer_(executor),
      self_(std::make_shared<HttpConnection*>(this)) {
    if (tls != nullptr) tls_ = std::make_unique<Tls>(socket_, *tls);
}

HttpConnection::~HttpConnection() = default;

void HttpConnection::watch(Deadline deadline) {
    deadline_ = deadline;
    expired_ = false;
    arm();
}

void HttpConnection::unwatch() {
    timer_.cancel();
    watching_for_answer_ = false;
}

void HttpConnection::arm() {
    timer_.expires_after(until_tick(deadline_));
    timer_.async_wait([self = std::weak_ptr<HttpConnection*>(self_)](const error_code& ec) {
        if (ec) return;
        if (auto alive = self.lock()) (*alive)->tick();
    });
}

void HttpConnection::tick() {
    error_code ignored;
    if (deadline_.passed()) {
        expired_ = true;
        socket_.cancel(ignored);
        return;
    }
    // A TLS socket may hold session tickets, which are no answer.
    if (watching_for_answer_ && !tls_ && socket_.available(ignored) > 0) {
        answer_seen_ = true;
        socket_.cancel(ignored);
    }
    arm();
}

asio::awaitable<std::optional<ConnectFailure>> HttpConnection::open(ConnectOptions options) {
    Deadline limit{std::min(options.deadline.at, BootClock::now() + options.timeout)};
    Endpoints endpoints;
    auto looking_up = look_up(limit, endpoints);
    auto failure = co_await std::move(looking_up);
    if (failure) co_return failure;
    if (!options.allow_private_hosts) {
        std::erase_if(endpoints, [](const auto& e) { return is_private(e.address()); });
        if (endpoints.empty()) {
            co_return give_up("not_sent_private_host", origin_, "its address is a private one");
        }
    }
    auto connecting = connect(limit, endpoints);
    failure = co_await std::move(connecting);
    if (failure || !tls_) co_return failure;
    auto shaking = shake_hands(limit, options.verify);
    co_return co_await std::move(shaking);
}

asio::awaitable<std::optional<ConnectFailure>> HttpConnection::look_up(
    Deadline limit, Endpoints& found
) {
    auto port = static_cast<std::uint16_t>(origin_.port);
    error_code ec;
    auto literal = asio::ip::make_address(origin_.host, ec);
    if (!ec) {
        found.emplace_back(literal, port);
        co_return std::nullopt;
    }
    auto lookup = std::make_shared<Lookup>(socket_.get_executor());
    auto on_answer = [lookup](const error_code& error, tcp::resolver::results_type results) {
        lookup->done = true;
        lookup->error = error;
        lookup->results = std::move(results);
        lookup->answered.cancel();
    };
    lookup->resolver.async_resolve(
        origin_.host, std::to_string(port), tcp::resolver::numeric_service, std::move(on_answer)
    );
    while (!lookup->done && !limit.passed()) {
        lookup->answered.expires_after(until_tick(limit));
        co_await lookup->answered.async_wait(kTuple);
        auto state = co_await asio::this_coro::cancellation_state;
        if (state.cancelled() != asio::cancellation_type::none) {
            co_return give_up("not_sent_cancelled", origin_, "this process stops");
        }
    }
    if (!lookup->done)
        co_return give_up("not_sent_dns", origin_, "the name server did not answer in time");
    if (lookup->error) {
        co_return give_up(
            "not_sent_dns", origin_, "name not found (" + lookup->error.message() + ")"
        );
    }
    for (const auto& entry : lookup->results) found.push_back(entry.endpoint());
    co_return std::nullopt;
}

asio::awaitable<std::optional<ConnectFailure>> HttpConnection::connect(
    Deadline limit, const Endpoints& endpoints
) {
    std::string last = "it has no address";
    std::size_t left = endpoints.size();
    for (const auto& endpoint : endpoints) {
        // Every address gets its share of the time: a dead first one must not hide the others.
        auto share = std::max(limit.left(), std::chrono::nanoseconds{0}) / static_cast<int>(left--);
        error_code ec;
        socket_.close(ec);
        watch({BootClock::now() + share});
        auto [error] = co_await socket_.async_connect(endpoint, kTuple);
        unwatch();
        if (!error) {
            socket_.set_option(tcp::no_delay(true), ec);
            socket_.non_blocking(true, ec);
            co_return std::nullopt;
        }
        if (error == asio::error::operation_aborted && !expired_) {
            co_return give_up("not_sent_cancelled", origin_, "this process stops");
        }
        last = expired_ ? "no answer in time" : error.message();
    }
    co_return give_up("not_sent_connect", origin_, last);
}

asio::awaitable<std::optional<ConnectFailure>> HttpConnection::shake_hands(
    Deadline limit, bool verify
) {
    SSL* ssl = tls_->native_handle();
    error_code ec;
    tls_->set_verify_mode(verify ? asio::ssl::verify_peer : asio::ssl::verify_none, ec);
    if (ec || !name_peer(ssl, origin_.host)) {
        co_return give_up("not_sent_tls", origin_, "TLS cannot be set up for this name");
    }
    watch(limit);
    auto [error] = co_await tls_->async_handshake(asio::ssl::stream_base::client, kTuple);
    unwatch();
    if (!error) co_return std::nullopt;
    if (error == asio::error::operation_aborted) {
        if (expired_) co_return give_up("not_sent_tls", origin_, "the TLS handshake took too long");
        co_return give_up("not_sent_cancelled", origin_, "this process stops");
    }
    co_return give_up("not_sent_tls", origin_, "TLS: " + tls_reason(error, ssl));
}

asio::awaitable<HttpConnection::Transfer> HttpConnection::write_some(Buffers data) {
    if (tls_) {
        auto [error, bytes] = co_await tls_->async_write_some(data, kTuple);
        co_return Transfer{error, bytes};
    }
    auto [error, bytes] = co_await socket_.async_write_some(data, kTuple);
    co_return Transfer{error, bytes};
}

asio::awaitable<HttpConnection::Transfer> HttpConnection::read_some(asio::mutable_buffer into) {
    if (!expired_) {
        Transfer got;
        if (tls_) {
            auto [error, bytes] = co_await tls_->async_read_some(into, kTuple);
            got = {error, bytes};
        } else {
            auto [error, bytes] = co_await socket_.async_read_some(into, kTuple);
            got = {error, bytes};
        }
        if (got.error != asio::error::operation_aborted || !expired_) co_return got;
    }
    co_return read_present(into);
}

HttpConnection::Transfer HttpConnection::read_present(asio::mutable_buffer into) {
    Transfer got;
    got.bytes = tls_ ? tls_->read_some(into, got.error) : socket_.read_some(into, got.error);
    return got;
}

bool HttpConnection::idle_and_alive() {
    if (!socket_.is_open()) return false;
    // Bytes nobody asked for (a 408, a close_notify) are as good as a close: do not use it.
    char byte = 0;
    auto got = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

void HttpConnection::cut() {
    error_code ignored;
    timer_.cancel();
    if (!socket_.is_open()) return;
    // Without lingering the kernel answers with a reset instead of sending on in the background.
    socket_.set_option(asio::socket_base::linger(true, 0), ignored);
    socket_.close(ignored);
}

}  // namespace tools
