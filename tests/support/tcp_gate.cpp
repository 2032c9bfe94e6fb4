#include "tests/support/tcp_gate.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <exception>
#include <limits>
#include <set>
#include <thread>
#include <utility>

namespace tests {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);
constexpr std::size_t kNever = std::numeric_limits<std::size_t>::max();

asio::generic::stream_protocol::endpoint parse(const std::string& target) {
    if (target.starts_with('/')) return asio::local::stream_protocol::endpoint(target);
    auto colon = target.rfind(':');
    std::string host = target.substr(0, colon);
    if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
    auto port = static_cast<std::uint16_t>(std::stoi(target.substr(colon + 1)));
    return tcp::endpoint(asio::ip::make_address(host), port);
}

}  // namespace

class TcpGate::Impl {
 public:
    explicit Impl(const std::string& target)
        : target_(parse(target)),
          acceptor_(context_, tcp::endpoint(asio::ip::address_v4::loopback(), 0)),
          port_(acceptor_.local_endpoint().port()) {
        asio::co_spawn(context_, accept(), [](const std::exception_ptr&) {});
        thread_ = std::thread([this] { context_.run(); });
    }

    ~Impl() {
        context_.stop();
        thread_.join();
    }

    struct Pair {
        tcp::socket client;
        asio::generic::stream_protocol::socket server;
        std::size_t client_left;
        std::size_t server_left;

        void reset() {
            error_code ignored;
            client.set_option(asio::socket_base::linger(true, 0), ignored);
            client.close(ignored);
            server.close(ignored);
        }
    };
    using PairPtr = std::shared_ptr<Pair>;  // two coroutines pump one pair

    void drop_all() {
        asio::post(context_, [this] {
            for (const auto& pair : open_) pair->reset();
        });
    }

    std::atomic<bool> refuse_{false};
    std::atomic<bool> swallow_{false};
    std::atomic<std::int64_t> delay_ms_{0};
    std::atomic<std::size_t> client_limit_{kNever};
    std::atomic<std::size_t> server_limit_{kNever};
    std::atomic<int> connections_{0};

    [[nodiscard]] int port() const { return port_; }

 private:
    asio::awaitable<void> accept() {
        while (true) {
            auto [ec, socket] = co_await acceptor_.async_accept(kTuple);
            if (ec) co_return;
            ++connections_;
            auto pair = std::make_shared<Pair>(Pair{
                std::move(socket),
                asio::generic::stream_protocol::socket(context_),
                client_limit_,
                server_limit_
            });
            auto [failed] = co_await pair->server.async_connect(target_, kTuple);
            if (failed || refuse_) {
                pair->reset();
                continue;
            }
            error_code ignored;
            pair->client.set_option(tcp::no_delay(true), ignored);
            open_.insert(pair);
            auto ended = [this, pair](const std::exception_ptr&) {
                pair->reset();
                open_.erase(pair);
            };
            asio::co_spawn(context_, pump(pair, true), ended);
            asio::co_spawn(context_, pump(pair, false), ended);
        }
    }

    asio::awaitable<void> pump(PairPtr pair, bool from_client) {
        std::array<char, 16'384> chunk{};
        auto& left = from_client ? pair->client_left : pair->server_left;
        while (left > 0) {
            auto into = asio::buffer(chunk.data(), std::min(chunk.size(), left));
            error_code ec;
            std::size_t got = 0;
            if (from_client) {
                std::tie(ec, got) = co_await pair->client.async_read_some(into, kTuple);
            } else {
                std::tie(ec, got) = co_await pair->server.async_read_some(into, kTuple);
            }
            if (ec) co_return;
            if (left != kNever) left -= got;
            asio::steady_timer timer(context_, std::chrono::milliseconds(delay_ms_.load()));
            if (delay_ms_ > 0) co_await timer.async_wait(kTuple);
            if (swallow_) continue;
            auto data = asio::buffer(chunk.data(), got);
            if (from_client) {
                co_await asio::async_write(pair->server, data, kTuple);
            } else {
                co_await asio::async_write(pair->client, data, kTuple);
            }
        }
    }

    asio::io_context context_{1};
    asio::generic::stream_protocol::endpoint target_;
    tcp::acceptor acceptor_;
    int port_;
    std::set<PairPtr> open_;
    std::thread thread_;
};

TcpGate::TcpGate(const std::string& target) : impl_(std::make_unique<Impl>(target)) {}
TcpGate::~TcpGate() = default;

int TcpGate::port() const {
    return impl_->port();
}
int TcpGate::connections() const {
    return impl_->connections_;
}
void TcpGate::refuse(bool on) {
    impl_->refuse_ = on;
}
void TcpGate::delay(std::chrono::milliseconds duration) {
    impl_->delay_ms_ = duration.count();
}
void TcpGate::swallow(bool on) {
    impl_->swallow_ = on;
}
void TcpGate::cut_after_client_bytes(std::size_t count) {
    impl_->client_limit_ = count;
}
void TcpGate::cut_after_server_bytes(std::size_t count) {
    impl_->server_limit_ = count;
}
void TcpGate::never_cut() {
    impl_->client_limit_ = kNever;
    impl_->server_limit_ = kNever;
}
void TcpGate::drop_all() {
    impl_->drop_all();
}

}  // namespace tests
