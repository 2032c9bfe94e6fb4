#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace tests {

namespace asio = boost::asio;

// One accepted connection, in the hands of a script. Sending and reading never throw: a broken
// connection reads as empty and swallows what is sent.
class StubConnection {
 public:
    struct State;
    explicit StubConnection(State& state) : state_(state) {}

    // Head and body (by Content-Length) of the next request; empty when the client is gone.
    asio::awaitable<std::string> read_request();
    asio::awaitable<std::string> read_head();
    // At least so many bytes, or what came before the end.
    asio::awaitable<std::string> read_bytes(std::size_t count);
    asio::awaitable<void> send(std::string bytes);
    // Byte by byte, with a pause after each.
    asio::awaitable<void> drip(std::string bytes, std::chrono::milliseconds pause);
    asio::awaitable<void> sleep(std::chrono::milliseconds duration);
    // Until the client closes; what it sends is counted and thrown away.
    asio::awaitable<void> stall();
    void reset();  // RST
    void close();  // FIN

    [[nodiscard]] int number() const;  // 0 for the first connection

 private:
    State& state_;
};

// A server that does exactly what a script says, for clients that must survive all of it. Runs on
// the test's own executor; counts what it saw.
class StubHttpServer {
 public:
    using Script = std::function<asio::awaitable<void>(StubConnection&)>;
    struct Options {
        std::string address = "127.0.0.1";
        std::string certificate_file = {};  // PEM; with it the server speaks TLS
        std::string key_file = {};
        std::string client_authority = {};  // PEM; with it clients must show a certificate
        bool down = false;                  // the port is ours, and refuses until listen()
    };

    StubHttpServer(asio::any_io_executor executor, Script script);
    StubHttpServer(asio::any_io_executor executor, Script script, Options options);
    ~StubHttpServer();
    StubHttpServer(const StubHttpServer&) = delete;
    StubHttpServer& operator=(const StubHttpServer&) = delete;

    [[nodiscard]] int port() const;
    [[nodiscard]] int connections() const;
    [[nodiscard]] std::size_t bytes() const;                         // received, after decryption
    [[nodiscard]] const std::vector<std::string>& requests() const;  // whole ones, in order
    void listen();                                                   // after Options::down
    void stop();  // refuses new connections, resets the present ones

    class Shared;

 private:
    std::shared_ptr<Shared> shared_;
};

// "HTTP/1.1 200 OK" with a body and its length.
[[nodiscard]] std::string ok(std::string_view body = "{}");
// Answers every request with ok(), for ever.
asio::awaitable<void> answer_ok(StubConnection& connection);

}  // namespace tests
