#pragma once

#include <boost/asio/awaitable.hpp>
#include <utility>

#include "tools/http_client.hpp"

namespace tools {

// The HTTP client as tools see it, so that their rules are tested without a socket.
class HttpSender {
 public:
    virtual ~HttpSender() = default;
    virtual asio::awaitable<HttpResult> send(HttpRequest request, outbox::Deadline deadline) = 0;
};

// The real one. Shared by the tools with equal options; the last of them ends it.
class HttpClientSender final : public HttpSender {
 public:
    HttpClientSender(
        asio::any_io_executor executor, HttpOptions options, outbox::Failpoints& failpoints
    )
        : client_(std::move(executor), std::move(options), failpoints) {}

    asio::awaitable<HttpResult> send(HttpRequest request, outbox::Deadline deadline) override {
        return client_.send(std::move(request), deadline);
    }

 private:
    HttpClient client_;
};

}  // namespace tools
