#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <memory>
#include <string>
#include <vector>

namespace tests {

namespace asio = boost::asio;

// A forward proxy that answers CONNECT with what the test says, and a tunnel behind a 200. What
// comes in the absolute form is answered here. Runs on the test's own executor.
class StubProxy {
 public:
    struct Options {
        std::string connect_answer = "HTTP/1.1 200 Connection established\r\n\r\n";
        std::string forward_answer = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
        bool silent = false;  // reads and never answers
        int target_port = 0;  // 0: the one that CONNECT names
    };
    StubProxy(asio::any_io_executor executor, Options options);
    explicit StubProxy(asio::any_io_executor executor)
        : StubProxy(std::move(executor), Options{}) {}
    ~StubProxy();
    StubProxy(const StubProxy&) = delete;
    StubProxy& operator=(const StubProxy&) = delete;

    [[nodiscard]] int port() const;
    // What was asked of the proxy itself: heads of CONNECT and of forwarded requests.
    [[nodiscard]] const std::vector<std::string>& heads() const;

    class Shared;

 private:
    std::shared_ptr<Shared> shared_;
};

}  // namespace tests
