#include "tests/support/stub_http_server.hpp"

#include <algorithm>
#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <exception>
#include <list>
#include <optional>
#include <utility>

#include "tools/http_client_request.hpp"

namespace tests {

namespace {

using tcp = asio::ip::tcp;
using boost::system::error_code;

constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);

std::size_t content_length(std::string_view head) {
    constexpr std::string_view kName = "content-length:";
    for (std::size_t at = 0; at + kName.size() <= head.size(); ++at) {
        if (!tools::same_name(head.substr(at, kName.size()), kName)) continue;
        return std::stoul(std::string(head.substr(at + kName.size(), 20)));
    }
    return 0;
}

}  // namespace

class StubHttpServer::Shared {
 public:
    Shared(asio::any_io_executor executor, Script script, Options options)
        : acceptor_(executor), script_(std::move(script)) {
        tcp::endpoint endpoint(asio::ip::make_address(options.address), 0);
        acceptor_.open(endpoint.protocol());
        acceptor_.bind(endpoint);
        if (!options.down) acceptor_.listen(1024);
        if (options.certificate_file.empty()) return;
        tls_.emplace(asio::ssl::context::tls_server);
        tls_->use_certificate_chain_file(options.certificate_file);
        tls_->use_private_key_file(options.key_file, asio::ssl::context::pem);
        if (options.client_authority.empty()) return;
        tls_->load_verify_file(options.client_authority);
        tls_->set_verify_mode(asio::ssl::verify_peer | asio::ssl::verify_fail_if_no_peer_cert);
    }

    static asio::awaitable<void> accept(std::shared_ptr<Shared> self);
    static asio::awaitable<void> serve(std::shared_ptr<Shared> self, StubConnection::State& state);

    tcp::acceptor acceptor_;
    Script script_;
    std::optional<asio::ssl::context> tls_;
    std::list<StubConnection::State> open_;
    int connections_ = 0;
    std::size_t bytes_ = 0;
    std::vector<std::string> requests_;
};

struct StubConnection::State {
    tcp::socket socket;
    std::unique_ptr<asio::ssl::stream<tcp::socket&>> tls;
    std::string buffer;
    StubHttpServer::Shared& server;
    int number;

    State(tcp::socket s, StubHttpServer::Shared& shared, int n)
        : socket(std::move(s)), server(shared), number(n) {}

    // False when the client is gone.
    asio::awaitable<bool> read_more() {
        std::array<char, 16'384> chunk{};
        auto into = asio::buffer(chunk);
        error_code ec;
        std::size_t got = 0;
        if (tls) {
            std::tie(ec, got) = co_await tls->async_read_some(into, kTuple);
        } else {
            std::tie(ec, got) = co_await socket.async_read_some(into, kTuple);
        }
        buffer.append(chunk.data(), got);
        server.bytes_ += got;
        co_return !ec;
    }
};

asio::awaitable<void> StubHttpServer::Shared::accept(std::shared_ptr<Shared> self) {
    while (self->acceptor_.is_open()) {
        auto [ec, socket] = co_await self->acceptor_.async_accept(kTuple);
        if (ec) break;
        auto& open = self->open_;
        open.emplace_front(std::move(socket), *self, self->connections_++);
        auto state = open.begin();
        auto ended = [self, state](const std::exception_ptr&) { self->open_.erase(state); };
        asio::co_spawn(self->acceptor_.get_executor(), serve(self, *state), std::move(ended));
    }
}

asio::awaitable<void> StubHttpServer::Shared::serve(
    std::shared_ptr<Shared> self, StubConnection::State& state
) {
    if (self->tls_) {
        state.tls = std::make_unique<asio::ssl::stream<tcp::socket&>>(state.socket, *self->tls_);
        auto [ec] = co_await state.tls->async_handshake(asio::ssl::stream_base::server, kTuple);
        if (ec) co_return;
    }
    StubConnection connection(state);
    auto running = self->script_(connection);
    co_await std::move(running);
}

asio::awaitable<std::string> StubConnection::read_head() {
    auto& buffer = state_.buffer;
    std::size_t end = std::string::npos;
    while ((end = buffer.find("\r\n\r\n")) == std::string::npos) {
        auto reading = state_.read_more();
        if (!co_await std::move(reading)) co_return std::string();
    }
    std::string head = buffer.substr(0, end + 4);
    buffer.erase(0, end + 4);
    co_return head;
}

asio::awaitable<std::string> StubConnection::read_bytes(std::size_t count) {
    bool more = true;
    while (more && state_.buffer.size() < count) {
        auto reading = state_.read_more();
        more = co_await std::move(reading);
    }
    std::string bytes = state_.buffer.substr(0, count);
    state_.buffer.erase(0, bytes.size());
    co_return bytes;
}

asio::awaitable<std::string> StubConnection::read_request() {
    auto heading = read_head();
    std::string request = co_await std::move(heading);
    if (request.empty()) co_return request;
    std::size_t length = content_length(request);
    auto reading = read_bytes(length);
    std::string body = co_await std::move(reading);
    if (body.size() < length) co_return std::string();
    request += body;
    state_.server.requests_.push_back(request);
    co_return request;
}

asio::awaitable<void> StubConnection::send(std::string bytes) {
    if (state_.tls) {
        co_await asio::async_write(*state_.tls, asio::buffer(bytes), kTuple);
    } else {
        co_await asio::async_write(state_.socket, asio::buffer(bytes), kTuple);
    }
}

asio::awaitable<void> StubConnection::drip(std::string bytes, std::chrono::milliseconds pause) {
    for (char byte : bytes) {
        auto sending = send(std::string(1, byte));
        co_await std::move(sending);
        auto waiting = sleep(pause);
        co_await std::move(waiting);
    }
}

asio::awaitable<void> StubConnection::sleep(std::chrono::milliseconds duration) {
    asio::steady_timer timer(state_.socket.get_executor(), duration);
    co_await timer.async_wait(kTuple);
}

asio::awaitable<void> StubConnection::stall() {
    bool more = true;
    while (more) {
        state_.buffer.clear();
        auto reading = state_.read_more();
        more = co_await std::move(reading);
    }
}

void StubConnection::reset() {
    error_code ignored;
    state_.socket.set_option(asio::socket_base::linger(true, 0), ignored);
    state_.socket.close(ignored);
}

void StubConnection::close() {
    error_code ignored;
    state_.socket.shutdown(tcp::socket::shutdown_both, ignored);
    state_.socket.close(ignored);
}

int StubConnection::number() const {
    return state_.number;
}

StubHttpServer::StubHttpServer(asio::any_io_executor executor, Script script)
    : StubHttpServer(std::move(executor), std::move(script), Options{}) {}

StubHttpServer::StubHttpServer(asio::any_io_executor executor, Script script, Options options)
    : shared_(std::make_shared<Shared>(executor, std::move(script), options)) {
    if (options.down) return;
    auto ended = [](const std::exception_ptr&) {};
    asio::co_spawn(executor, Shared::accept(shared_), std::move(ended));
}

void StubHttpServer::listen() {
    shared_->acceptor_.listen(1024);
    auto ended = [](const std::exception_ptr&) {};
    asio::co_spawn(shared_->acceptor_.get_executor(), Shared::accept(shared_), std::move(ended));
}

StubHttpServer::~StubHttpServer() {
    stop();
}

void StubHttpServer::stop() {
    error_code ignored;
    shared_->acceptor_.close(ignored);
    for (auto& state : shared_->open_) {
        state.socket.set_option(asio::socket_base::linger(true, 0), ignored);
        state.socket.close(ignored);
    }
}

int StubHttpServer::port() const {
    return shared_->acceptor_.local_endpoint().port();
}
int StubHttpServer::connections() const {
    return shared_->connections_;
}
std::size_t StubHttpServer::bytes() const {
    return shared_->bytes_;
}
const std::vector<std::string>& StubHttpServer::requests() const {
    return shared_->requests_;
}

std::string ok(std::string_view body) {
    return "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " +
           std::to_string(body.size()) + "\r\n\r\n" + std::string(body);
}

asio::awaitable<void> answer_ok(StubConnection& connection) {
    while (true) {
        auto reading = connection.read_request();
        auto request = co_await std::move(reading);
        if (request.empty()) co_return;
        auto sending = connection.send(ok());
        co_await std::move(sending);
    }
}

}  // namespace tests
