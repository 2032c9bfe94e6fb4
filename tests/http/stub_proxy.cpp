#include "tests/http/stub_proxy.hpp"

#include <array>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <exception>
#include <list>
#include <utility>

namespace tests {

namespace {

using tcp = asio::ip::tcp;
using boost::system::error_code;

constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);

void shut(tcp::socket& socket) {
    error_code ignored;
    socket.shutdown(tcp::socket::shutdown_both, ignored);
}

asio::awaitable<void> relay(tcp::socket& from, tcp::socket& to) {
    std::array<char, 16'384> chunk{};
    while (true) {
        auto [ec, got] = co_await from.async_read_some(asio::buffer(chunk), kTuple);
        if (ec) break;
        auto [failed, written] = co_await asio::async_write(to, asio::buffer(chunk, got), kTuple);
        if (failed) break;
    }
    shut(from);
    shut(to);
}

}  // namespace

class StubProxy::Shared {
 public:
    Shared(asio::any_io_executor executor, Options options)
        : acceptor_(executor, {asio::ip::make_address("127.0.0.1"), 0}),
          options_(std::move(options)) {}

    struct Pair {
        tcp::socket client;
        tcp::socket server;
    };

    static asio::awaitable<void> accept(std::shared_ptr<Shared> self) {
        while (self->acceptor_.is_open()) {
            auto [ec, socket] = co_await self->acceptor_.async_accept(kTuple);
            if (ec) co_return;
            auto pair = std::make_shared<Pair>(
                Pair{std::move(socket), tcp::socket(self->acceptor_.get_executor())}
            );
            self->pairs_.push_back(pair);
            auto ended = [](const std::exception_ptr&) {};
            asio::co_spawn(self->acceptor_.get_executor(), serve(self, pair), std::move(ended));
        }
    }

    static asio::awaitable<void> serve(std::shared_ptr<Shared> self, std::shared_ptr<Pair> pair) {
        std::string buffer;
        while (true) {
            std::size_t end = 0;
            while ((end = buffer.find("\r\n\r\n")) == std::string::npos) {
                std::array<char, 4096> chunk{};
                auto [ec, got] = co_await pair->client.async_read_some(asio::buffer(chunk), kTuple);
                if (ec) co_return;
                buffer.append(chunk.data(), got);
            }
            const auto head = buffer.substr(0, end + 4);
            buffer.erase(0, end + 4);
            self->heads_.push_back(head);
            const bool connect = head.rfind("CONNECT ", 0) == 0;
            const auto& answer =
                connect ? self->options_.connect_answer : self->options_.forward_answer;
            if (self->options_.silent) continue;
            co_await asio::async_write(pair->client, asio::buffer(answer), kTuple);
            if (!connect || answer.find(" 200 ") == std::string::npos) continue;
            auto tunneling = tunnel(self, pair, head);
            co_await std::move(tunneling);
            co_return;
        }
    }

    static asio::awaitable<void> tunnel(
        std::shared_ptr<Shared> self, std::shared_ptr<Pair> pair, std::string head
    ) {
        const auto colon = head.find(':');
        const int named = std::stoi(head.substr(colon + 1, 5));
        const int port = self->options_.target_port > 0 ? self->options_.target_port : named;
        const tcp::endpoint target(
            asio::ip::make_address("127.0.0.1"), static_cast<std::uint16_t>(port)
        );
        auto [ec] = co_await pair->server.async_connect(target, kTuple);
        if (ec) {
            shut(pair->client);
            co_return;
        }
        auto ended = [pair](const std::exception_ptr&) {};
        asio::co_spawn(
            self->acceptor_.get_executor(), relay(pair->server, pair->client), std::move(ended)
        );
        auto relaying = relay(pair->client, pair->server);
        co_await std::move(relaying);
    }

    tcp::acceptor acceptor_;
    Options options_;
    std::list<std::shared_ptr<Pair>> pairs_;
    std::vector<std::string> heads_;
};

StubProxy::StubProxy(asio::any_io_executor executor, Options options)
    : shared_(std::make_shared<Shared>(executor, std::move(options))) {
    auto ended = [](const std::exception_ptr&) {};
    asio::co_spawn(executor, Shared::accept(shared_), std::move(ended));
}

StubProxy::~StubProxy() {
    error_code ignored;
    shared_->acceptor_.close(ignored);
    for (auto& pair : shared_->pairs_) {
        pair->client.close(ignored);
        pair->server.close(ignored);
    }
}

int StubProxy::port() const {
    return shared_->acceptor_.local_endpoint().port();
}

const std::vector<std::string>& StubProxy::heads() const {
    return shared_->heads_;
}

}  // namespace tests
