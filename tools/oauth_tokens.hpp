#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "config/config.hpp"
#include "outbox/clock.hpp"
#include "outbox/outcome.hpp"
#include "tools/http_sender.hpp"

namespace tools {

// The request of RFC 6749, section 4.4.2.
[[nodiscard]] HttpRequest token_request(const config::Credential& credential);

struct NewToken {
    std::string value;
    std::chrono::seconds expires_in{};
};
// What a token endpoint said; else why there is no token, without a word that could be a secret.
[[nodiscard]] std::variant<NewToken, std::string> read_token(const HttpResult& result);

// How long a token is used: shortly before it expires a new one is fetched.
[[nodiscard]] std::chrono::nanoseconds used_for(std::chrono::seconds expires_in);

// The access token of one oauth2_client_credentials credential: fetched when somebody needs it,
// kept until shortly before it expires. One request at a time: whoever comes meanwhile waits for
// it, each no longer than its own deadline. A refusal is remembered for a second, so that a wrong
// secret does not become a request per attempt. Shared by the senders of a toolset; io thread.
class OAuthTokens {
 public:
    struct Events {
        std::function<void(const std::string& token)> fetched;
        std::function<void()> failed;
    };
    OAuthTokens(
        asio::any_io_executor executor,
        config::Credential credential,
        std::shared_ptr<HttpSender> sender,
        Events events
    );

    struct Token {
        std::string value;
        bool cached = false;  // false: fetched for this very call
    };
    // An error is not_sent_credential, or what ended the waiting. Never throws on a cancellation.
    using Got = std::variant<Token, outbox::Error>;
    asio::awaitable<Got> get(outbox::Deadline deadline);
    // The other side refused it: not used again.
    void refused(const std::string& token);

 private:
    struct State;
    static asio::awaitable<Got> get(std::shared_ptr<State> state, outbox::Deadline deadline);
    static asio::awaitable<Got> fetch(std::shared_ptr<State> state, outbox::Deadline deadline);

    std::shared_ptr<State> state_;  // calls that are cut off may outlive this
};

}  // namespace tools
