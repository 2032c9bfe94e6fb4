#include "daemon/http_server.hpp"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/chunk_encode.hpp>
#include <boost/beast/http/empty_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/read.hpp>
#include <boost/beast/http/serializer.hpp>
#include <boost/beast/http/string_body.hpp>
#include <boost/beast/http/write.hpp>
#include <exception>
#include <list>

#include "outbox/json.hpp"

namespace outboxd {

namespace beast = boost::beast;
namespace http = beast::http;
using tcp = asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);
constexpr std::chrono::milliseconds kAcceptPause{100};

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

struct Session {
    beast::tcp_stream stream;
    // Shared with a cancellation on its way, which may arrive after the session's own end.
    std::shared_ptr<asio::cancellation_signal> cancel =
        std::make_shared<asio::cancellation_signal>();
    explicit Session(tcp::socket socket) : stream(std::move(socket)) {}
};

ServerRequest to_request(http::request<http::string_body>& message) {
    ServerRequest request;
    request.method = std::string(message.method_string());
    auto target = std::string_view(message.target().data(), message.target().size());
    auto mark = target.find('?');
    request.path = std::string(target.substr(0, mark));
    if (mark != std::string_view::npos) request.query = std::string(target.substr(mark + 1));
    for (const auto& field : message) {
        request.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
    }
    request.body = std::move(message.body());
    return request;
}

template <class Body>
http::response<Body> to_message(const ServerResponse& response, bool keep_alive) {
    http::response<Body> message;
    message.version(11);
    message.result(static_cast<unsigned>(response.status));
    message.set(http::field::content_type, response.content_type);
    for (const auto& [name, value] : response.headers) message.set(name, value);
    message.keep_alive(keep_alive);
    if (response.stream) {
        message.chunked(true);
    } else if (response.status != 204 && response.status != 304) {
        message.content_length(response.body.size());
    }
    return message;
}

// Chunks on a connection, each within the time of a request.
class ChunkedBody : public ResponseStream {
 public:
    ChunkedBody(beast::tcp_stream& stream, std::chrono::milliseconds write_time)
        : stream_(stream), write_time_(write_time) {}

    asio::awaitable<bool> write(std::string piece) override {
        if (piece.empty()) co_return alive_;  // an empty chunk would end the body
        auto sending = send(http::make_chunk(asio::buffer(piece)));
        co_return co_await std::move(sending);
    }
    asio::awaitable<bool> finish() { return send(http::make_chunk_last()); }

 private:
    template <class Chunk>
    asio::awaitable<bool> send(Chunk chunk) {
        if (!alive_) co_return false;
        stream_.expires_after(write_time_);
        auto [ec, bytes] = co_await asio::async_write(stream_, chunk, kTuple);
        stream_.expires_never();
        alive_ = !ec;
        co_return alive_;
    }

    beast::tcp_stream& stream_;
    std::chrono::milliseconds write_time_;
    bool alive_ = true;
};

// What the parser refused, as an answer; empty when there is nobody to answer.
std::optional<ServerResponse> refusal(const error_code& ec) {
    if (ec == http::error::body_limit) {
        return problem(413, "Too large", "The body is larger than this server accepts.");
    }
    if (ec == http::error::header_limit) {
        return problem(431, "Too large", "The headers are larger than this server accepts.");
    }
    if (ec == http::error::end_of_stream || ec == http::error::partial_message) return std::nullopt;
    static const error_code kHttp = http::error::bad_method;
    if (ec.category() == kHttp.category()) {
        return problem(400, "Bad request", "This is no valid HTTP request.");
    }
    return std::nullopt;
}

}  // namespace

std::optional<std::string> ServerRequest::header(std::string_view name) const {
    std::optional<std::string> found;
    for (const auto& [key, value] : headers) {
        if (!beast::iequals(key, beast::string_view(name.data(), name.size()))) continue;
        if (found) return std::nullopt;
        found = value;
    }
    return found;
}

std::string percent_decode(std::string_view text, bool plus_is_space) {
    std::string decoded;
    decoded.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        int high = text[i] == '%' && i + 2 < text.size() ? hex_digit(text[i + 1]) : -1;
        int low = high >= 0 ? hex_digit(text[i + 2]) : -1;
        if (low >= 0) {
            decoded += static_cast<char>(high * 16 + low);
            i += 2;
        } else {
            decoded += plus_is_space && text[i] == '+' ? ' ' : text[i];
        }
    }
    return decoded;
}

std::optional<std::string> ServerRequest::parameter(std::string_view name) const {
    std::string_view rest = query;
    while (!rest.empty()) {
        auto pair = rest.substr(0, rest.find('&'));
        rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
        auto mark = std::min(pair.find('='), pair.size());
        if (percent_decode(pair.substr(0, mark), true) != name) continue;
        return percent_decode(pair.substr(std::min(mark + 1, pair.size())), true);
    }
    return std::nullopt;
}

ServerResponse problem(int status, std::string_view title, std::string_view detail) {
    outbox::Json body;
    body.set("type", "about:blank");
    body.set("status", status);
    body.set("title", title);
    body.set("detail", detail);
    ServerResponse response;
    response.status = status;
    response.content_type = "application/problem+json";
    response.body = outbox::to_text(body);
    return response;
}

class HttpServer::Impl {
 public:
    Impl(asio::any_io_executor executor, ServerOptions options, ServerHandler handler)
        : executor_(executor),
          options_(options),
          handler_(std::move(handler)),
          acceptor_(executor),
          pause_(executor) {}

    std::optional<std::string> listen(const std::string& host, int port);
    [[nodiscard]] int port() const;
    asio::awaitable<void> run();
    void stop();

 private:
    asio::awaitable<void> serve(Session& session);
    asio::awaitable<bool> serve_one(Session& session, beast::flat_buffer& buffer);
    asio::awaitable<bool> answer(
        Session& session, ServerResponse response, bool head, bool keep_alive
    );
    asio::awaitable<bool> answer_in_pieces(
        Session& session, ServerResponse response, bool keep_alive
    );
    asio::awaitable<ServerResponse> ask_handler(ServerRequest request);
    void start(tcp::socket socket);

    asio::any_io_executor executor_;
    ServerOptions options_;
    ServerHandler handler_;
    tcp::acceptor acceptor_;
    asio::steady_timer pause_;
    std::list<Session> sessions_;
    bool stopping_ = false;
};

std::optional<std::string> HttpServer::Impl::listen(const std::string& host, int port) {
    error_code ec;
    auto address = asio::ip::make_address(host == "localhost" ? "127.0.0.1" : host, ec);
    if (ec) return "The address " + host + " to listen on is not an IP address.";
    tcp::endpoint endpoint(address, static_cast<std::uint16_t>(port));
    acceptor_.open(endpoint.protocol(), ec);
    if (!ec) acceptor_.set_option(asio::socket_base::reuse_address(true), ec);
    if (!ec) acceptor_.bind(endpoint, ec);
    if (!ec) acceptor_.listen(asio::socket_base::max_listen_connections, ec);
    if (!ec) return std::nullopt;
    error_code ignored;
    acceptor_.close(ignored);
    return "Cannot listen on " + host + ":" + std::to_string(port) + ": " + ec.message() + ".";
}

int HttpServer::Impl::port() const {
    error_code ec;
    return acceptor_.local_endpoint(ec).port();
}

asio::awaitable<void> HttpServer::Impl::run() {
    while (!stopping_) {
        auto [ec, socket] = co_await acceptor_.async_accept(kTuple);
        if (stopping_) break;
        if (ec == asio::error::operation_aborted) stop();
        if (!ec && sessions_.size() < options_.max_connections) start(std::move(socket));
        if (ec && !stopping_) {
            // Out of descriptors, most likely: they come back when others close.
            pause_.expires_after(kAcceptPause);
            co_await pause_.async_wait(kTuple);
        }
    }
    while (!sessions_.empty()) {
        pause_.expires_at(asio::steady_timer::time_point::max());
        co_await pause_.async_wait(kTuple);
    }
}

void HttpServer::Impl::start(tcp::socket socket) {
    error_code ignored;
    socket.set_option(tcp::no_delay(true), ignored);
    sessions_.emplace_front(std::move(socket));
    auto session = sessions_.begin();
    // A session ends its own way; whatever it throws concerns this connection alone.
    auto ended = [this, session](const std::exception_ptr&) {
        sessions_.erase(session);
        if (stopping_) pause_.cancel();
    };
    asio::co_spawn(
        executor_,
        serve(*session),
        asio::bind_cancellation_slot(session->cancel->slot(), std::move(ended))
    );
}

void HttpServer::Impl::stop() {
    if (stopping_) return;
    stopping_ = true;
    error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
    for (auto& session : sessions_) {
        session.stream.close();
        asio::post(executor_, [cancel = session.cancel] {
            cancel->emit(asio::cancellation_type::terminal);
        });
    }
}

asio::awaitable<void> HttpServer::Impl::serve(Session& session) {
    beast::flat_buffer buffer;
    bool more = true;
    while (more && !stopping_) {
        auto one = serve_one(session, buffer);
        more = co_await std::move(one);
    }
    error_code ignored;
    session.stream.socket().shutdown(tcp::socket::shutdown_both, ignored);
}

asio::awaitable<bool> HttpServer::Impl::serve_one(Session& session, beast::flat_buffer& buffer) {
    auto& stream = session.stream;
    error_code ec;
    if (buffer.size() == 0) {
        stream.expires_after(options_.idle_time);
        auto [error, bytes] = co_await stream.async_read_some(buffer.prepare(1024), kTuple);
        if (error) co_return false;
        buffer.commit(bytes);
    }
    http::request_parser<http::string_body> parser;
    parser.header_limit(static_cast<std::uint32_t>(options_.max_head));
    parser.body_limit(options_.max_body);
    stream.expires_after(options_.read_time);
    auto [read_error, read] = co_await http::async_read(stream, buffer, parser, kTuple);
    bool head = parser.get().method() == http::verb::head;
    if (read_error) {
        auto refused = refusal(read_error);
        if (!refused) co_return false;
        auto answering = answer(session, std::move(*refused), head, false);
        co_return co_await std::move(answering);
    }
    bool keep_alive = parser.get().keep_alive();
    stream.expires_never();  // how long an answer takes is the handler's business
    auto asking = ask_handler(to_request(parser.get()));
    auto response = co_await std::move(asking);
    if (response.drop) co_return false;
    auto answering = answer(session, std::move(response), head, keep_alive);
    co_return co_await std::move(answering);
}

asio::awaitable<ServerResponse> HttpServer::Impl::ask_handler(ServerRequest request) {
    auto handling = handler_(std::move(request));
    ServerResponse response;
    try {
        response = co_await std::move(handling);
    } catch (const std::exception&) {
        if (stopping_) throw;
        response = problem(500, "Internal error", "This server failed to answer.");
    }
    co_return response;
}

asio::awaitable<bool> HttpServer::Impl::answer(
    Session& session, ServerResponse response, bool head, bool keep_alive
) {
    keep_alive = keep_alive && !stopping_;
    session.stream.expires_after(options_.read_time);
    if (head) {
        // The head alone: of a chunked body not even the last chunk.
        auto message = to_message<http::empty_body>(response, keep_alive);
        http::response_serializer<http::empty_body> only(message);
        auto [ec, bytes] = co_await http::async_write_header(session.stream, only, kTuple);
        co_return !ec && keep_alive;
    }
    if (response.stream) {
        auto answering = answer_in_pieces(session, std::move(response), keep_alive);
        co_return co_await std::move(answering);
    }
    auto message = to_message<http::string_body>(response, keep_alive);
    message.body() = std::move(response.body);
    auto [ec, bytes] = co_await http::async_write(session.stream, message, kTuple);
    co_return !ec && keep_alive;
}

asio::awaitable<bool> HttpServer::Impl::answer_in_pieces(
    Session& session, ServerResponse response, bool keep_alive
) {
    auto message = to_message<http::empty_body>(response, keep_alive);
    http::response_serializer<http::empty_body> head(message);
    auto [ec, bytes] = co_await http::async_write_header(session.stream, head, kTuple);
    if (ec) co_return false;
    session.stream.expires_never();
    ChunkedBody body(session.stream, options_.read_time);
    auto writing = response.stream(body);
    co_await std::move(writing);  // what it throws ends the session, so the body stays unfinished
    auto finishing = body.finish();
    const bool complete = co_await std::move(finishing);
    co_return complete&& keep_alive;
}

HttpServer::HttpServer(asio::any_io_executor executor, ServerOptions options, ServerHandler handler)
    : impl_(std::make_unique<Impl>(std::move(executor), options, std::move(handler))) {}

HttpServer::~HttpServer() = default;

std::optional<std::string> HttpServer::listen(const std::string& host, int port) {
    return impl_->listen(host, port);
}

int HttpServer::port() const {
    return impl_->port();
}

asio::awaitable<void> HttpServer::run() {
    return impl_->run();
}

void HttpServer::stop() {
    impl_->stop();
}

}  // namespace outboxd
