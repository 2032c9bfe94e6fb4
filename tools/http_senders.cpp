#include "tools/http_senders.hpp"

#include <utility>

#include "tools/authorized_sender.hpp"
#include "tools/encoding.hpp"

namespace tools {
namespace {

HttpProxy proxy_of(const config::Proxy& proxy) {
    HttpProxy result{.host = proxy.host, .port = proxy.port, .authorization = {}};
    if (!proxy.user.empty() || !proxy.secret.value.empty()) {
        result.authorization = "Basic " + base64(proxy.user + ":" + proxy.secret.value);
    }
    return result;
}

}  // namespace

HttpOptions http_options(
    const config::Http& http, std::chrono::milliseconds connect_timeout, std::size_t max_response
) {
    HttpOptions options;
    options.connect_timeout = connect_timeout;
    options.max_response_bytes = max_response;
    options.tls_verify = http.tls_verify;
    options.ca_file = http.ca_file;
    options.max_connections_per_host = static_cast<std::size_t>(http.max_connections_per_host);
    options.allow_private_hosts = http.allow_private_hosts;
    if (http.proxy) options.proxy = proxy_of(*http.proxy);
    return options;
}

std::shared_ptr<HttpSender> HttpSenders::of(
    HttpOptions options, const RequestCredential& credential
) {
    if (!credential.certificate().empty()) {
        options.certificate = certificate(credential.certificate());
    }
    auto sender = client(options);
    if (credential.name().empty() && credential.certificate().empty()) return sender;
    return std::make_shared<AuthorizedSender>(
        std::move(sender),
        credential.name(),
        credential.wants_token() ? tokens(credential.name()) : nullptr,
        services_.observer,
        credential.certificate()
    );
}

std::shared_ptr<HttpSender> HttpSenders::client(const HttpOptions& options) {
    auto& client = clients_[options];
    if (!client) {
        client =
            std::make_shared<HttpClientSender>(services_.executor, options, services_.failpoints);
    }
    return client;
}

std::shared_ptr<OAuthTokens> HttpSenders::tokens(const std::string& credential) {
    auto& tokens = tokens_[credential];
    if (tokens) return tokens;
    constexpr std::size_t kMaxAnswer = std::size_t{64} * 1024;
    const auto& defaults = config_.defaults;
    OAuthTokens::Events events;
    events.fetched = [mask = mask_](const std::string& token) { mask->learn(token); };
    if (auto* observer = services_.observer) {
        events.failed = [observer, credential] { observer->credential_error(credential); };
    }
    tokens = std::make_shared<OAuthTokens>(
        services_.executor,
        config_.credentials.at(credential),
        client(http_options(defaults.http, defaults.connect_timeout, kMaxAnswer)),
        std::move(events)
    );
    return tokens;
}

std::shared_ptr<const ClientCertificate> HttpSenders::certificate(const std::string& credential) {
    auto& known = certificates_[credential];
    if (known) return known;
    const auto& files = config_.credentials.at(credential);
    // check_credentials() found no fault with it a moment ago.
    auto read = read_client_certificate(
        files.name, files.certificate, files.secret.value, std::chrono::system_clock::now()
    );
    if (auto* certificate = std::get_if<ClientCertificate>(&read)) {
        known = std::make_shared<const ClientCertificate>(std::move(*certificate));
    }
    return known;
}

}  // namespace tools
