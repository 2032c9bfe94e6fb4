#pragma once

#include <memory>
#include <string>

#include "outbox/observer.hpp"
#include "tools/http_sender.hpp"
#include "tools/oauth_tokens.hpp"

namespace tools {

// Sends with a credential: puts the token on that has to be fetched (no token: not sent), and
// counts what the other side refuses. Only a 401 is a refusal: 403 is about what may be done.
class AuthorizedSender final : public HttpSender {
 public:
    // tokens: null for credentials that are on the request already. observer: null for none; it
    // outlives the sender. certificate: of the client, beside the credential or alone.
    AuthorizedSender(
        std::shared_ptr<HttpSender> sender,
        std::string credential,
        std::shared_ptr<OAuthTokens> tokens,
        outbox::Observer* observer,
        std::string certificate = {}
    )
        : sender_(std::move(sender)),
          credential_(std::move(credential)),
          tokens_(std::move(tokens)),
          observer_(observer),
          certificate_(std::move(certificate)) {}

    asio::awaitable<HttpResult> send(HttpRequest request, outbox::Deadline deadline) override;

 private:
    asio::awaitable<HttpResult> authorize_and_send(HttpRequest request, outbox::Deadline deadline);
    void count(const std::string& credential);

    std::shared_ptr<HttpSender> sender_;
    std::string credential_;
    std::shared_ptr<OAuthTokens> tokens_;
    outbox::Observer* observer_;
    std::string certificate_;
};

}  // namespace tools
