#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/config.hpp"
#include "tools/compile_context.hpp"
#include "tools/http_client.hpp"
#include "tools/scope.hpp"
#include "tools/webhook_signature.hpp"

namespace tools {

using Credentials = std::map<std::string, config::Credential>;

// `credential:` and `mtls:` of one request, compiled: what proves to the other side who asks.
// Secrets are resolved once, when the file loads, and are in no message.
class RequestCredential {
 public:
    static RequestCredential compile(
        const config::HttpRequest& request, const Credentials& credentials, CompileContext& context
    );

    // Its name in the file; empty: none.
    [[nodiscard]] const std::string& name() const { return name_; }
    // The name of the client certificate; empty: none.
    [[nodiscard]] const std::string& certificate() const { return certificate_; }
    // A token has to be fetched for it before a request can go out.
    [[nodiscard]] bool wants_token() const { return wants_token_; }

    // Whether the header is this credential's own.
    [[nodiscard]] bool sets(std::string_view header) const;
    // Headers, and the signature of the body that is there by now.
    void put_on(HttpRequest& request, const Scope& scope, std::chrono::system_clock::time_point now)
        const;
    // A parameter of the query: name and value.
    [[nodiscard]] const std::optional<std::pair<std::string, std::string>>& parameter() const {
        return parameter_;
    }

 private:
    void use(const config::Credential& credential, CompileContext& context);

    std::string name_;
    std::string certificate_;
    bool wants_token_ = false;
    std::optional<std::pair<std::string, std::string>> header_;
    std::optional<std::pair<std::string, std::string>> parameter_;
    std::optional<WebhookSignature> signature_;
};

// What can be wrong with credentials in themselves: certificates, keys, addresses of tokens.
void check_credentials(const Credentials& credentials, config::Diagnostics& diagnostics);

}  // namespace tools
