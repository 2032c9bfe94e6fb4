#pragma once

#include <map>
#include <memory>
#include <string>

#include "config/config.hpp"
#include "tools/http_sender.hpp"
#include "tools/oauth_tokens.hpp"
#include "tools/request_credential.hpp"
#include "tools/secret_mask.hpp"
#include "tools/toolset.hpp"

namespace tools {

// How requests of these settings go out.
[[nodiscard]] HttpOptions http_options(
    const config::Http& http, std::chrono::milliseconds connect_timeout, std::size_t max_response
);

// Makes the senders of a toolset: one HTTP client per distinct options, so that tools of one
// provider share its connections, and one token per credential. Used while the toolset is built;
// what it made belongs to the tools.
class HttpSenders {
 public:
    HttpSenders(
        const config::Config& config, const Services& services, std::shared_ptr<SecretMask> mask
    )
        : config_(config), services_(services), mask_(std::move(mask)) {}

    [[nodiscard]] std::shared_ptr<HttpSender> of(
        HttpOptions options, const RequestCredential& credential
    );

 private:
    std::shared_ptr<HttpSender> client(const HttpOptions& options);
    std::shared_ptr<OAuthTokens> tokens(const std::string& credential);
    std::shared_ptr<const ClientCertificate> certificate(const std::string& credential);

    const config::Config& config_;
    const Services& services_;
    std::shared_ptr<SecretMask> mask_;
    std::map<HttpOptions, std::shared_ptr<HttpSender>> clients_;
    std::map<std::string, std::shared_ptr<OAuthTokens>> tokens_;
    std::map<std::string, std::shared_ptr<const ClientCertificate>> certificates_;
};

}  // namespace tools
