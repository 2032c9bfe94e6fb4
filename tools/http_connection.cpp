#include "tools/http_connection.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <utility>

namespace tools {

namespace {

using boost::system::error_code;
using outbox::Deadline;

constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);

// Timers stand still while the machine sleeps, the boot clock does not: look at it this often.
constexpr std::chrono::milliseconds kTick{250};

}  // namespace

std::chrono::nanoseconds until_tick(Deadline deadline) {
    return std::clamp<std::chrono::nanoseconds>(
        deadline.left(), std::chrono::nanoseconds{0}, kTick
    );
}

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
