#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "daemon/admin_server.hpp"
#include "daemon/api_database.hpp"

namespace outboxd {

// /api/v1 on the admin port: what the page and an operator's scripts read and steer with. It does
// nothing that the command line does not do as well, through the same calls (outbox::pg::Client).
// All on the io thread, but for the database and what is made of its rows, which have two lanes:
// one for reading, one for steering.
class Api {
 public:
    Api(asio::any_io_executor executor, const std::string& dsn, const config::Config& config);
    Api(const Api&) = delete;
    Api& operator=(const Api&) = delete;

    // A reload: what is hidden and rendered from here on.
    void use(const config::Config& config);
    // Before the server runs; the API outlives it.
    void serve_on(AdminServer& server);
    // For who serves several: one request, which the server's guard let pass.
    asio::awaitable<ServerResponse> answer(ServerRequest request) {
        return request.method == "POST" ? post(std::move(request)) : get(std::move(request));
    }

 private:
    using Path = std::vector<std::string>;

    asio::awaitable<ServerResponse> get(ServerRequest request);
    asio::awaitable<ServerResponse> post(ServerRequest request);
    asio::awaitable<ServerResponse> read(const ServerRequest& request, const Path& path);
    asio::awaitable<ServerResponse> list(const ServerRequest& request);
    asio::awaitable<ServerResponse> story(std::string id);
    asio::awaitable<ServerResponse> stats();
    asio::awaitable<std::string> count();
    asio::awaitable<ServerResponse> compensate(const std::string& id, const std::string& body);

    // Counting a backlog of a million takes a while, and every page that is open asks every other
    // second: an answer serves for ten times as long as it took.
    struct Counted {
        std::string text;
        std::chrono::steady_clock::time_point until{};
        bool counting = false;  // somebody is at it; who comes meanwhile gets what there is
    };

    std::shared_ptr<const config::Config> config_;  // without its secrets
    Counted counted_;
    ApiDatabase reading_;
    ApiDatabase steering_;
};

}  // namespace outboxd
