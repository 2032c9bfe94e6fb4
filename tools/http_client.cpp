#include "tools/http_client.hpp"

#include <openssl/ssl.h>

#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>
#include <exception>
#include <string_view>
#include <utility>

#include "tools/content_decoding.hpp"
#include "tools/http_client_parser.hpp"
#include "tools/http_client_pool.hpp"
#include "tools/http_client_request.hpp"
#include "tools/http_connection.hpp"

namespace tools {

namespace {

using boost::system::error_code;
using outbox::BootClock;
using outbox::Cause;
using outbox::Deadline;
using outbox::FailpointId;

HttpFailure not_sent(std::string code, std::string message) {
    return {.sent = false, .cause = Cause::other, .error = {std::move(code), std::move(message)}};
}

HttpFailure sent(Cause cause, std::string code, std::string message) {
    return {.sent = true, .cause = cause, .error = {std::move(code), std::move(message)}};
}

HttpFailure deadline_before_first_byte(const std::string& where) {
    return not_sent("not_sent_deadline", "The time for this attempt ended " + where + ".");
}

HttpFailure stopped_before_first_byte() {
    return not_sent("not_sent_cancelled", "This process stops; nothing was sent.");
}

asio::awaitable<bool> cancelled() {
    auto state = co_await asio::this_coro::cancellation_state;
    co_return state.cancelled() != asio::cancellation_type::none;
}

HttpFailure timed_out(const Origin& origin) {
    return sent(Cause::timeout, "timeout", "No whole answer from " + to_text(origin) + " in time.");
}

HttpFailure stopped() {
    return sent(Cause::other, "cancelled", "This process stopped before the answer came.");
}

HttpFailure broken(const Origin& origin, const error_code& ec) {
    return sent(
        Cause::reset,
        "reset",
        "The connection to " + to_text(origin) +
            " broke before the whole answer came: " + ec.message() + "."
    );
}

// A pause that was cancelled is over; the checks that follow see the cancellation.
asio::awaitable<void> pass(outbox::Failpoints& failpoints, FailpointId id) {
    auto hit = failpoints.hit(id);
    try {
        co_await std::move(hit);
    } catch (const boost::system::system_error& error) {
        if (error.code() != asio::error::operation_aborted) throw;
    }
}

// Whom a request is handed to with its whole address; for https there is a tunnel instead.
const HttpProxy* forwarding_proxy(const HttpOptions& options, const Origin& origin) {
    return options.proxy && !origin.tls ? &*options.proxy : nullptr;
}

// 407 is the proxy's own word: it did not pass the request on.
bool refused_by_proxy(const HttpResult& result) {
    const auto* response = std::get_if<HttpResponse>(&result);
    return response != nullptr && response->status == 407;
}

// How long an answer is looked for after writing failed: a server that refuses early closes.
constexpr std::chrono::milliseconds kAfterBrokenWrite{500};
// A small body travels with its head, in one packet and one TLS record.
constexpr std::size_t kJoinedBody = std::size_t{16} * 1024;

// One request on one connection: from the first byte on, nothing is ever written twice.
class Exchange {
 public:
    Exchange(
        HttpConnection& connection,
        outbox::Failpoints& failpoints,
        const HttpRequest& request,
        const HttpOptions& options
    )
        : connection_(connection),
          failpoints_(failpoints),
          origin_(request.origin),
          head_(request_head(request, forwarding_proxy(options, request.origin))),
          body_(request.body),
          reader_(request.reader),
          max_body_(options.max_response_bytes),
          parser_(request.method == "HEAD", max_body_) {
        if (body_.size() > kJoinedBody) return;
        head_ += body_;
        body_ = {};
    }

    asio::awaitable<HttpResult> run(Deadline deadline) {
        connection_.watch(deadline);
        auto writing = write(deadline);
        co_await std::move(writing);
        if (!started_) {
            connection_.unwatch();
            co_return deadline_before_first_byte("before the first byte");
        }
        if (write_error_) {
            connection_.watch({std::min(deadline.at, BootClock::now() + kAfterBrokenWrite)});
        }
        auto reading = read();
        HttpResult result = co_await std::move(reading);
        connection_.unwatch();
        if (!reusable_) connection_.cut();
        co_return result;
    }

    [[nodiscard]] bool reusable() const { return reusable_; }

 private:
    asio::awaitable<void> write(Deadline deadline) {
        connection_.stop_writing_on_answer(true);
        std::size_t total = head_.size() + body_.size();
        // The deadline is read right before every write; nothing is waited for in between.
        while (written_ < total && !write_error_ && !connection_.answer_seen()) {
            if (deadline.passed()) break;
            started_ = true;
            auto step = connection_.write_some(unwritten());
            auto done = co_await std::move(step);
            written_ += done.bytes;
            if (done.error == asio::error::operation_aborted) {
                cancelled_ = !connection_.expired() && !connection_.answer_seen();
                break;
            }
            write_error_ = done.error;
            if (failpoints_.armed()) {
                auto stopping_here = pass(failpoints_, FailpointId::after_first_byte);
                co_await std::move(stopping_here);
            }
        }
        whole_request_ = written_ == total;
        connection_.stop_writing_on_answer(false);
    }

    [[nodiscard]] HttpConnection::Buffers unwritten() const {
        std::size_t of_head = std::min(written_, head_.size());
        std::string_view head = head_;
        return {asio::buffer(head.substr(of_head)), asio::buffer(body_.substr(written_ - of_head))};
    }

    asio::awaitable<HttpResult> read() {
        auto state = ResponseParser::State::more;
        while (state == ResponseParser::State::more) {
            if (cancelled_) co_return stopped();
            auto step = connection_.read_some(parser_.prepare());
            auto got = co_await std::move(step);
            if (!got.error) {
                state = parser_.commit(got.bytes);
                if (failpoints_.armed()) {
                    auto stopping_here = pass(failpoints_, FailpointId::mid_answer);
                    co_await std::move(stopping_here);
                }
            } else if (got.error == asio::error::eof && parser_.begun()) {
                state = parser_.end();
            } else if (write_error_) {
                co_return broken(origin_, write_error_);
            } else if (connection_.expired()) {
                co_return timed_out(origin_);
            } else if (got.error == asio::error::operation_aborted) {
                co_return stopped();
            } else {
                co_return broken(origin_, got.error);
            }
            if (reader_ != nullptr && state != ResponseParser::State::broken) {
                auto showing = parser_.show(*reader_);
                if (co_await std::move(showing)) break;
            }
            auto asking = cancelled();
            cancelled_ = co_await std::move(asking);
        }
        if (state == ResponseParser::State::broken) {
            co_return sent(Cause::unreadable, "unreadable", parser_.problem());
        }
        HttpResponse response = parser_.take();
        reusable_ =
            whole_request_ && !connection_.expired() && !response.truncated && parser_.reusable();
        if (auto problem = decode_content(response, max_body_)) {
            co_return sent(Cause::unreadable, "unreadable", std::move(*problem));
        }
        co_return response;
    }

    HttpConnection& connection_;
    outbox::Failpoints& failpoints_;
    const Origin& origin_;
    std::string head_;
    std::string_view body_;
    AnswerReader* reader_;
    std::size_t max_body_;
    ResponseParser parser_;
    std::size_t written_ = 0;
    error_code write_error_;
    bool started_ = false;  // the first byte may have been handed to the kernel
    bool cancelled_ = false;
    bool whole_request_ = false;
    bool reusable_ = false;
};

}  // namespace

std::optional<std::string> HttpResponse::header(std::string_view name) const {
    auto found = std::find_if(headers.begin(), headers.end(), [&](const auto& entry) {
        return same_name(entry.first, name);
    });
    if (found == headers.end()) return std::nullopt;
    return found->second;
}

class HttpClient::Impl {
 public:
    Impl(asio::any_io_executor executor, HttpOptions options, outbox::Failpoints& failpoints)
        : executor_(executor),
          options_(std::move(options)),
          failpoints_(failpoints),
          pool_(std::make_shared<HttpPool>(executor, options_.max_connections_per_host)) {}

    asio::awaitable<HttpResult> run(HttpRequest request, Deadline deadline);
    void close_idle() { pool_->close_idle(); }

 private:
    using Failed = std::optional<HttpFailure>;

    asio::awaitable<Failed> ready_to_send(
        HttpPool::Lease& lease, const Origin& origin, Deadline deadline
    );
    asio::awaitable<Failed> connect(
        HttpPool::Lease& lease, const Origin& origin, Deadline deadline
    );
    // Empty when the certificates could be loaded.
    std::optional<std::string> load_tls();

    asio::any_io_executor executor_;
    HttpOptions options_;
    outbox::Failpoints& failpoints_;
    std::unique_ptr<asio::ssl::context> tls_;  // before the pool: connections refer to it
    std::shared_ptr<HttpPool> pool_;
};

std::optional<std::string> HttpClient::Impl::load_tls() {
    if (tls_) return std::nullopt;
    auto context = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_client);
    SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
    error_code ec;
    if (options_.ca_file) {
        context->load_verify_file(*options_.ca_file, ec);
        if (ec) return "The file of certificates " + *options_.ca_file + " cannot be read.";
    } else {
        context->set_default_verify_paths(ec);
        if (ec) return "The system's certificates cannot be read: " + ec.message() + ".";
    }
    if (const auto& own = options_.certificate) {
        context->use_certificate_chain(asio::buffer(own->chain), ec);
        if (!ec) context->use_private_key(asio::buffer(own->key), asio::ssl::context::pem, ec);
        if (ec) return "The client certificate " + own->credential + " cannot be used.";
    }
    tls_ = std::move(context);
    return std::nullopt;
}

asio::awaitable<HttpClient::Impl::Failed> HttpClient::Impl::connect(
    HttpPool::Lease& lease, const Origin& origin, Deadline deadline
) {
    if (origin.tls) {
        // Found here nothing is sent; the other side would break off in the middle of the request.
        const auto& own = options_.certificate;
        if (own && std::chrono::system_clock::now() >= own->expires) {
            co_return not_sent(
                "not_sent_credential", "The client certificate " + own->credential + " has expired."
            );
        }
        if (auto problem = load_tls()) co_return not_sent("not_sent_tls", *problem);
    }
    auto* tls = origin.tls ? tls_.get() : nullptr;
    lease.connection = std::make_unique<HttpConnection>(executor_, origin, tls);
    ConnectOptions how{
        .timeout = options_.connect_timeout,
        .deadline = deadline,
        .verify = options_.tls_verify,
        .allow_private_hosts = options_.allow_private_hosts,
        .proxy = options_.proxy ? &*options_.proxy : nullptr
    };
    auto opening = lease.connection->open(how);
    auto failure = co_await std::move(opening);
    if (!failure) co_return std::nullopt;
    if (deadline.passed()) co_return deadline_before_first_byte("while connecting");
    co_return not_sent(std::move(failure->code), std::move(failure->message));
}

// Leaves a connection that was alive an instant ago, with the deadline still ahead.
asio::awaitable<HttpClient::Impl::Failed> HttpClient::Impl::ready_to_send(
    HttpPool::Lease& lease, const Origin& origin, Deadline deadline
) {
    while (true) {
        lease.connection = pool_->take_idle(origin);
        bool pooled = lease.connection != nullptr;
        if (!pooled) {
            if (failpoints_.armed()) {
                auto stopping_here = pass(failpoints_, FailpointId::before_connect);
                co_await std::move(stopping_here);
            }
            auto connecting = connect(lease, origin, deadline);
            auto failure = co_await std::move(connecting);
            if (failure) co_return failure;
        }
        if (failpoints_.armed()) {
            auto stopping_here = pass(failpoints_, FailpointId::before_first_byte);
            co_await std::move(stopping_here);
        }
        auto stop = cancelled();
        if (co_await std::move(stop)) co_return stopped_before_first_byte();
        if (deadline.passed()) {
            lease.reusable = lease.connection->idle_and_alive();
            co_return deadline_before_first_byte("before the first byte");
        }
        // A pooled connection found dead is replaced: nothing was written to it.
        if (!pooled || lease.connection->idle_and_alive()) co_return std::nullopt;
    }
}

asio::awaitable<HttpResult> HttpClient::Impl::run(HttpRequest request, Deadline deadline) {
    if (auto problem = check_request(request)) co_return not_sent("not_sent_invalid", *problem);
    auto waiting = pool_->wait_for_place(request.origin, deadline);
    auto place = co_await std::move(waiting);
    if (place == HttpPool::Wait::cancelled) co_return stopped_before_first_byte();
    if (place == HttpPool::Wait::deadline) {
        co_return deadline_before_first_byte("while waiting for a free connection");
    }
    HttpPool::Lease lease(pool_, request.origin);
    auto preparing = ready_to_send(lease, request.origin, deadline);
    auto failure = co_await std::move(preparing);
    if (failure) co_return std::move(*failure);

    Exchange exchange(*lease.connection, failpoints_, request, options_);
    auto running = exchange.run(deadline);
    HttpResult result = co_await std::move(running);
    lease.reusable = exchange.reusable();
    if (forwarding_proxy(options_, request.origin) && refused_by_proxy(result)) {
        co_return not_sent("not_sent_proxy", "The proxy answered with status 407.");
    }
    co_return result;
}

HttpClient::HttpClient(
    asio::any_io_executor executor, HttpOptions options, outbox::Failpoints& failpoints
)
    : impl_(std::make_unique<Impl>(std::move(executor), std::move(options), failpoints)) {}

HttpClient::~HttpClient() {
    impl_->close_idle();
}

asio::awaitable<HttpResult> HttpClient::send(HttpRequest request, Deadline deadline) {
    // A cancellation is answered with what is known about the first byte, not with an exception.
    bool throwing = co_await asio::this_coro::throw_if_cancelled();
    co_await asio::this_coro::throw_if_cancelled(false);
    auto running = impl_->run(std::move(request), deadline);
    HttpResult result;
    std::exception_ptr error;
    try {
        result = co_await std::move(running);
    } catch (...) {
        error = std::current_exception();
    }
    co_await asio::this_coro::throw_if_cancelled(throwing);
    if (error) std::rethrow_exception(error);
    co_return result;
}

void HttpClient::close_idle() {
    impl_->close_idle();
}

}  // namespace tools
