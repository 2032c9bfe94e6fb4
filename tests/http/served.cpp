#include "tests/http/served.hpp"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

namespace tests {

namespace {

constexpr auto kTuple = asio::as_tuple(asio::use_awaitable);

asio::awaitable<std::string> talk_to(asio::io_context& context, int port, std::string bytes) {
    asio::ip::tcp::socket socket(context);
    asio::ip::tcp::endpoint endpoint(
        asio::ip::address_v4::loopback(), static_cast<std::uint16_t>(port)
    );
    co_await socket.async_connect(endpoint, kTuple);
    co_await asio::async_write(socket, asio::buffer(bytes), kTuple);
    std::string answer;
    co_await asio::async_read(socket, asio::dynamic_buffer(answer), kTuple);
    co_return answer;
}

}  // namespace

std::string talk(World& world, int port, std::string bytes) {
    return test::run_coroutine(
        world.context, talk_to(world.context, port, std::move(bytes)), std::chrono::seconds{10}
    );
}

}  // namespace tests
