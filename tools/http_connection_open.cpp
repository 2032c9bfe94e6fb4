// HttpConnection: how it comes about. Not a byte of a request is written here.
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <string_view>
#include <utility>

#include "tools/http_client_address.hpp"
#include "tools/http_client_parser.hpp"
#include "tools/http_client_request.hpp"
#include "tools/http_connection.hpp"

namespace tools {

namespace {

using boost::system::error_code;
using outbox::BootClock;
using outbox::Deadline;
using tcp = asio::ip::tcp;

constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);

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

ConnectFailure HttpConnection::give_up(std::string code, const std::string& why) const {
    const auto via = proxy_ ? " through the proxy " + to_text({false, proxy_->host, proxy_->port})
                            : std::string();
    return {std::move(code), "No connection to " + to_text(origin_) + via + ": " + why + "."};
}

// Who was not there: the proxy, or the other side itself.
std::string HttpConnection::unreached(const char* code) const {
    return proxy_ ? "not_sent_proxy" : code;
}

asio::awaitable<std::optional<ConnectFailure>> HttpConnection::open(ConnectOptions options) {
    Deadline limit{std::min(options.deadline.at, BootClock::now() + options.timeout)};
    proxy_ = options.proxy;
    if (proxy_ && !options.allow_private_hosts) {
        // A name is looked up by the proxy; an address is what it is.
        error_code ec;
        const auto literal = asio::ip::make_address(origin_.host, ec);
        if (!ec && is_private(literal)) {
            co_return give_up("not_sent_private_host", "its address is a private one");
        }
    }
    Endpoints endpoints;
    auto looking_up = look_up(limit, endpoints);
    auto failure = co_await std::move(looking_up);
    if (failure) co_return failure;
    if (!proxy_ && !options.allow_private_hosts) {
        std::erase_if(endpoints, [](const auto& e) { return is_private(e.address()); });
        if (endpoints.empty()) {
            co_return give_up("not_sent_private_host", "its address is a private one");
        }
    }
    auto connecting = connect(limit, endpoints);
    failure = co_await std::move(connecting);
    if (failure || !tls_) co_return failure;
    if (proxy_) {
        auto tunneling = open_tunnel(limit);
        failure = co_await std::move(tunneling);
        if (failure) co_return failure;
    }
    auto shaking = shake_hands(limit, options.verify);
    co_return co_await std::move(shaking);
}

asio::awaitable<std::optional<ConnectFailure>> HttpConnection::look_up(
    Deadline limit, Endpoints& found
) {
    const auto& host = proxy_ ? proxy_->host : origin_.host;
    const auto port = static_cast<std::uint16_t>(proxy_ ? proxy_->port : origin_.port);
    error_code ec;
    auto literal = asio::ip::make_address(host, ec);
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
        host, std::to_string(port), tcp::resolver::numeric_service, std::move(on_answer)
    );
    while (!lookup->done && !limit.passed()) {
        lookup->answered.expires_after(until_tick(limit));
        co_await lookup->answered.async_wait(kTuple);
        auto state = co_await asio::this_coro::cancellation_state;
        if (state.cancelled() != asio::cancellation_type::none) {
            co_return give_up("not_sent_cancelled", "this process stops");
        }
    }
    if (!lookup->done)
        co_return give_up(unreached("not_sent_dns"), "the name server did not answer in time");
    if (lookup->error) {
        co_return give_up(
            unreached("not_sent_dns"), "name not found (" + lookup->error.message() + ")"
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
            co_return give_up("not_sent_cancelled", "this process stops");
        }
        last = expired_ ? "no answer in time" : error.message();
    }
    co_return give_up(unreached("not_sent_connect"), last);
}

// CONNECT: its bytes are the proxy's, none of them is one of the request.
asio::awaitable<std::optional<ConnectFailure>> HttpConnection::open_tunnel(Deadline limit) {
    const std::string head = connect_head(origin_, *proxy_);
    std::string_view rest = head;
    ResponseParser parser(true, 0);
    auto state = ResponseParser::State::more;
    error_code error;
    watch(limit);
    while (!rest.empty() && !error) {
        auto [ec, bytes] = co_await socket_.async_write_some(asio::buffer(rest), kTuple);
        rest.remove_prefix(bytes);
        error = ec;
    }
    while (state == ResponseParser::State::more && !error) {
        auto [ec, bytes] = co_await socket_.async_read_some(parser.prepare(), kTuple);
        if (!ec) state = parser.commit(bytes);
        error = ec;
    }
    unwatch();
    if (error == asio::error::operation_aborted && !expired_) {
        co_return give_up("not_sent_cancelled", "this process stops");
    }
    if (expired_) co_return give_up("not_sent_proxy", "it did not answer CONNECT in time");
    if (error) co_return give_up("not_sent_proxy", "CONNECT: " + error.message());
    if (state == ResponseParser::State::broken) {
        co_return give_up("not_sent_proxy", "it does not speak HTTP");
    }
    const int status = parser.take().status;
    if (status >= 200 && status < 300) co_return std::nullopt;
    co_return give_up(
        "not_sent_proxy", "it answered CONNECT with status " + std::to_string(status)
    );
}

asio::awaitable<std::optional<ConnectFailure>> HttpConnection::shake_hands(
    Deadline limit, bool verify
) {
    SSL* ssl = tls_->native_handle();
    error_code ec;
    tls_->set_verify_mode(verify ? asio::ssl::verify_peer : asio::ssl::verify_none, ec);
    if (ec || !name_peer(ssl, origin_.host)) {
        co_return give_up("not_sent_tls", "TLS cannot be set up for this name");
    }
    watch(limit);
    auto [error] = co_await tls_->async_handshake(asio::ssl::stream_base::client, kTuple);
    unwatch();
    if (!error) co_return std::nullopt;
    if (error == asio::error::operation_aborted) {
        if (expired_) co_return give_up("not_sent_tls", "the TLS handshake took too long");
        co_return give_up("not_sent_cancelled", "this process stops");
    }
    co_return give_up("not_sent_tls", "TLS: " + tls_reason(error, ssl));
}

}  // namespace tools
