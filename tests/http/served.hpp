#pragma once

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <exception>
#include <string>

#include "tests/http/world.hpp"
#include "tests/support/catch.hpp"

namespace tests {

// A server of ours, running on the world's context until the test ends.
template <class Server>
class Served {
 public:
    Served(World& world, Server& server) : world_(world), server_(server) {
        auto ended = [this](const std::exception_ptr& error) {
            done_ = true;
            failure_ = error;
        };
        asio::co_spawn(world.context, server.run(), std::move(ended));
    }
    ~Served() {
        server_.stop();
        for (int i = 0; i < 100 && !done_; ++i) world_.run_for(std::chrono::milliseconds{20});
        CHECK(done_);  // run() returns once it was stopped, whatever its connections do
        CHECK_FALSE(failure_);
    }
    Served(const Served&) = delete;
    Served& operator=(const Served&) = delete;

 private:
    World& world_;
    Server& server_;
    bool done_ = false;
    std::exception_ptr failure_;
};

// Sends bytes as they are and returns what comes back until the server closes.
std::string talk(World& world, int port, std::string bytes);

}  // namespace tests
