#include "tools/request_credential.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "config/nearest.hpp"
#include "tools/answer.hpp"
#include "tools/client_certificate.hpp"
#include "tools/encoding.hpp"
#include "tools/url_template.hpp"

namespace tools {
namespace {

using Kind = config::Credential::Kind;

constexpr std::array<std::string_view, 3> kSignatureHeaders = {
    "webhook-id", "webhook-timestamp", "webhook-signature"
};

const config::Credential* find(
    const config::Text& named, const Credentials& credentials, CompileContext& context
) {
    const auto found = credentials.find(named.value);
    if (found != credentials.end()) return &found->second;
    std::vector<std::string> names;
    for (const auto& entry : credentials) names.push_back(entry.first);
    context.diagnostics.error(
        named.mark,
        "unknown credential " + named.value,
        names.empty() ? "declare it under credentials:" : config::nearest_hint(named.value, names)
    );
    return nullptr;
}

bool is_token(std::string_view text) {
    constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
    return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               kOthers.find(c) != std::string_view::npos;
    });
}

bool is_this_machine(const std::string& host) {
    return host == "localhost" || host == "::1" || host.rfind("127.", 0) == 0;
}

void check_token_url(const config::Credential& credential, config::Diagnostics& diagnostics) {
    const auto& url = credential.token_url;
    if (url.value.empty()) return;  // reported by the reader
    const auto origin = origin_of(url.value);
    if (!origin) {
        diagnostics.error(
            url.mark,
            "token_url of " + credential.name + " is no http or https address",
            "for example https://auth.example.com/oauth2/token"
        );
    } else if (!origin->tls && !is_this_machine(origin->host)) {
        diagnostics.warning(
            url.mark,
            "token_url of " + credential.name + ": the secret goes over plain http",
            "use https"
        );
    }
}

void check_certificate(const config::Credential& credential, config::Diagnostics& diagnostics) {
    if (credential.certificate.empty() || credential.secret.value.empty()) return;
    const auto read = read_client_certificate(
        credential.name,
        credential.certificate,
        credential.secret.value,
        std::chrono::system_clock::now()
    );
    const auto* problem = std::get_if<CertificateProblem>(&read);
    if (problem == nullptr) return;
    const auto& file = problem->in_key ? credential.key_file : credential.cert_file;
    diagnostics.error(
        problem->in_key ? credential.secret.mark : credential.cert_mark,
        file + ": " + problem->message,
        problem->hint
    );
}

}  // namespace

void check_credentials(const Credentials& credentials, config::Diagnostics& diagnostics) {
    for (const auto& [name, credential] : credentials) {
        switch (credential.kind) {
            case Kind::oauth2_client_credentials:
                check_token_url(credential, diagnostics);
                break;
            case Kind::standard_webhooks:
                if (credential.secret.value.empty()) break;  // reported by the reader
                if (WebhookSignature::compile(credential.secret.value)) break;
                diagnostics.error(
                    credential.secret.mark,
                    "the secret of " + name + " is no secret of Standard Webhooks",
                    "whsec_ and the base64 of 24 to 64 random bytes"
                );
                break;
            case Kind::mtls:
                check_certificate(credential, diagnostics);
                break;
            case Kind::bearer:
            case Kind::basic:
            case Kind::header:
            case Kind::query:
                break;
        }
    }
}

RequestCredential RequestCredential::compile(
    const config::HttpRequest& request, const Credentials& credentials, CompileContext& context
) {
    RequestCredential result;
    const auto* beside = request.mtls ? find(*request.mtls, credentials, context) : nullptr;
    if (beside != nullptr && beside->kind != Kind::mtls) {
        context.diagnostics.error(
            request.mtls->mark,
            "mtls: " + beside->name + " is no credential of kind mtls",
            "name it under credential:"
        );
    } else if (beside != nullptr) {
        result.certificate_ = beside->name;
    }
    if (!request.credential) return result;
    const auto* credential = find(*request.credential, credentials, context);
    if (credential == nullptr) return result;
    if (credential->kind == Kind::mtls && request.mtls) {
        context.diagnostics.error(
            request.credential->mark,
            "credential: and mtls: both name a client certificate",
            "TLS shows one: keep mtls:"
        );
    }
    result.use(*credential, context);
    const auto& header = result.header_;
    if (header && !is_token(header->first)) {
        context.diagnostics.error(
            credential->mark, "\"" + header->first + "\" is no name of a header"
        );
    }
    for (const auto& [name, value] : request.headers) {
        if (!result.sets(name.value)) continue;
        context.diagnostics.error(
            request.credential->mark,
            "the header " + name.value + " is set twice: by headers: and by the credential"
        );
    }
    return result;
}

void RequestCredential::use(const config::Credential& credential, CompileContext& context) {
    const auto& secret = credential.secret.value;
    name_ = credential.name;
    const bool in_header = credential.kind == Kind::bearer || credential.kind == Kind::basic ||
                           credential.kind == Kind::header;
    if (in_header && has_control(secret)) {
        context.diagnostics.error(
            credential.secret.mark,
            "the secret of " + name_ + " holds a line break or another control character",
            "a header cannot carry it"
        );
        return;
    }
    switch (credential.kind) {
        case Kind::bearer:
            header_ = {"Authorization", "Bearer " + secret};
            break;
        case Kind::basic:
            header_ = {"Authorization", "Basic " + base64(credential.user_or_name + ":" + secret)};
            break;
        case Kind::header:
            header_ = {credential.user_or_name, secret};
            break;
        case Kind::query:
            parameter_ = {credential.user_or_name, secret};
            break;
        case Kind::oauth2_client_credentials:
            wants_token_ = true;
            break;
        case Kind::standard_webhooks:
            signature_ = WebhookSignature::compile(secret);
            break;
        case Kind::mtls:
            certificate_ = credential.name;
            break;
    }
}

bool RequestCredential::sets(std::string_view header) const {
    if (header_ && same_header_name(header_->first, header)) return true;
    if (wants_token_ && same_header_name("Authorization", header)) return true;
    return signature_ && std::any_of(
                             kSignatureHeaders.begin(),
                             kSignatureHeaders.end(),
                             [&](std::string_view own) { return same_header_name(own, header); }
                         );
}

void RequestCredential::put_on(
    HttpRequest& request, const Scope& scope, std::chrono::system_clock::time_point now
) const {
    if (header_) request.headers.push_back(*header_);
    if (!signature_) return;
    // The same id with every attempt and every probe: the receiver knows a repeated one by it.
    const auto& id = scope.call.intent.id.value;
    const auto at = std::chrono::floor<std::chrono::seconds>(now);
    request.headers.emplace_back(kSignatureHeaders[0], id);
    request.headers.emplace_back(
        kSignatureHeaders[1], std::to_string(at.time_since_epoch().count())
    );
    request.headers.emplace_back(kSignatureHeaders[2], signature_->sign(id, at, request.body));
}

}  // namespace tools
