#pragma once

#include <boost/asio/io_context.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "outbox/failpoint.hpp"
#include "tests/support/run_coroutine.hpp"
#include "tests/support/stub_http_server.hpp"
#include "tools/http_client.hpp"

namespace tests {

using namespace std::chrono_literals;

// A client on a context of its own; stubs of the test live on the same context.
struct World {
    asio::io_context context{1};
    outbox::Failpoints failpoints;
    std::unique_ptr<tools::HttpClient> client;

    explicit World(tools::HttpOptions options = {})
        : client(std::make_unique<tools::HttpClient>(
              context.get_executor(), std::move(options), failpoints
          )) {}

    tools::HttpResult send(tools::HttpRequest request, outbox::Deadline deadline) {
        return test::run_coroutine(context, client->send(std::move(request), deadline), 20s);
    }
    tools::HttpResult send(tools::HttpRequest request) {
        return send(std::move(request), outbox::Deadline::after(5s));
    }
    // Lets everything else on the context go on for a while.
    void run_for(std::chrono::milliseconds duration) {
        context.restart();
        context.run_for(duration);
    }
};

inline tools::HttpRequest get(int port, std::string target = "/") {
    tools::HttpRequest request;
    request.method = "GET";
    request.origin = {.tls = false, .host = "127.0.0.1", .port = port};
    request.target = std::move(target);
    return request;
}

inline tools::HttpRequest post(int port, std::string body) {
    auto request = get(port);
    request.method = "POST";
    request.headers = {{"Content-Type", "application/json"}};
    request.body = std::move(body);
    return request;
}

// "200 body" of an answer, "sent code" or "unsent code" of a failure: one text to compare.
inline std::string summary(const tools::HttpResult& result) {
    if (const auto* response = std::get_if<tools::HttpResponse>(&result)) {
        return std::to_string(response->status) + " " + response->body;
    }
    const auto& failure = std::get<tools::HttpFailure>(result);
    return (failure.sent ? "sent " : "unsent ") + failure.error.code;
}

inline std::string message(const tools::HttpResult& result) {
    const auto* failure = std::get_if<tools::HttpFailure>(&result);
    return failure == nullptr ? std::string() : failure->error.message;
}

}  // namespace tests
