#include "tools/request_template.hpp"

#include <algorithm>
#include <array>

#include "config/nearest.hpp"
#include "tools/answer.hpp"
#include "tools/encoding.hpp"
#include "tools/form.hpp"
#include "tools/link_header.hpp"

namespace tools {
namespace {

using Body = config::HttpRequest::Body;
using CredentialKind = config::Credential::Kind;

// A token of RFC 9110: method and header names.
bool is_token(std::string_view text) {
    constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
    return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               kOthers.find(c) != std::string_view::npos;
    });
}

std::string with_crlf(std::string_view text) {
    std::string out;
    out.reserve(text.size() + text.size() / 32);
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] == '\n' && (i == 0 || text[i - 1] != '\r')) out += '\r';
        out += text[i];
    }
    return out;
}

std::string_view content_type(Body kind) {
    switch (kind) {
        case Body::none:
            return {};
        case Body::json:
            return "application/json";
        case Body::form:
            return "application/x-www-form-urlencoded";
        case Body::text:
            return "text/plain; charset=utf-8";
    }
    return {};
}

// Empty when the file gives this place no usable scalar.
std::optional<Template> query_scalar(const config::Value& value, CompileContext& context) {
    using Kind = config::Value::Kind;
    switch (value.kind) {
        case Kind::string:
            return Template::compile({value.text, value.mark}, context);
        case Kind::number:
        case Kind::boolean:
            return Template::literal(value.text);
        case Kind::null:
        case Kind::sequence:
        case Kind::mapping:
            break;
    }
    context.diagnostics.error(
        value.mark,
        "a query parameter must be a text, a number or a boolean",
        "a list of them repeats the parameter"
    );
    return std::nullopt;
}

}  // namespace

std::optional<RequestTemplate> RequestTemplate::compile(
    const config::HttpRequest& request, const Credentials& credentials, CompileContext& context
) {
    RequestTemplate result;
    result.method_ = request.method.value;
    if (!is_token(result.method_)) {
        context.diagnostics.error(
            request.method.value.empty() ? request.mark : request.method.mark,
            "method must be a word such as GET or POST"
        );
    }
    auto url = UrlTemplate::compile(request.url, context);
    result.compile_headers(request, context);
    result.compile_query(request, context);
    result.compile_body(request, context);
    result.use_credential(request, credentials, context);
    if (!url) return std::nullopt;
    result.url_ = std::move(*url);
    return result;
}

void RequestTemplate::compile_headers(const config::HttpRequest& request, CompileContext& context) {
    constexpr std::array<std::string_view, 6> kOwn = {
        "Host", "Content-Length", "Transfer-Encoding", "Connection", "Expect", "Upgrade"
    };
    for (const auto& [name, value] : request.headers) {
        if (!is_token(name.value)) {
            context.diagnostics.error(name.mark, "\"" + name.value + "\" is no name of a header");
        }
        const bool own = std::any_of(kOwn.begin(), kOwn.end(), [&](std::string_view h) {
            return same_header_name(h, name.value);
        });
        if (own) {
            context.diagnostics.error(name.mark, name.value + " is set by the HTTP client itself");
        }
        auto compiled = Template::compile(value, context);
        for (const auto& piece : compiled.pieces()) {
            if (!has_control(piece.literal)) continue;
            context.diagnostics.error(value.mark, "a header cannot hold control characters");
        }
        headers_.emplace_back(name.value, std::move(compiled));
    }
}

void RequestTemplate::compile_query(const config::HttpRequest& request, CompileContext& context) {
    for (const auto& [name, value] : request.query) {
        if (name.value.find("{{") != std::string::npos) {
            context.diagnostics.error(name.mark, "a template cannot be the name of a parameter");
        }
        if (value.is(config::Value::Kind::sequence)) {
            for (const auto& item : value.items) {
                if (auto text = query_scalar(item, context)) query_.emplace_back(name.value, *text);
            }
        } else if (auto text = query_scalar(value, context)) {
            query_.emplace_back(name.value, std::move(*text));
        }
    }
}

void RequestTemplate::compile_body(const config::HttpRequest& request, CompileContext& context) {
    body_kind_ = request.body;
    crlf_ = request.crlf;
    if (body_kind_ == Body::json || body_kind_ == Body::form) {
        body_value_ = ValueTemplate::compile(request.body_value, context);
    } else if (body_kind_ == Body::text) {
        body_text_ = Template::compile_escaped(request.body_text, context);
    }
    if (body_kind_ == Body::form && !request.body_value.is(config::Value::Kind::mapping)) {
        context.diagnostics.error(request.body_value.mark, "form must be a mapping");
    }
}

void RequestTemplate::use_credential(
    const config::HttpRequest& request, const Credentials& credentials, CompileContext& context
) {
    if (!request.credential) return;
    const auto found = credentials.find(request.credential->value);
    if (found == credentials.end()) {
        std::vector<std::string> names;
        for (const auto& entry : credentials) names.push_back(entry.first);
        context.diagnostics.error(
            request.credential->mark,
            "unknown credential " + request.credential->value,
            names.empty() ? "declare it under credentials:"
                          : config::nearest_hint(request.credential->value, names)
        );
        return;
    }
    const auto& credential = found->second;
    const auto& secret = credential.secret.value;
    if (credential.kind != CredentialKind::query && has_control(secret)) {
        context.diagnostics.error(
            credential.secret.mark,
            "the secret of " + credential.name + " holds a line break or another control character",
            "a header cannot carry it"
        );
        return;
    }
    switch (credential.kind) {
        case CredentialKind::bearer:
            secret_header_ = {"Authorization", "Bearer " + secret};
            break;
        case CredentialKind::basic:
            secret_header_ = {
                "Authorization", "Basic " + base64(credential.user_or_name + ":" + secret)
            };
            break;
        case CredentialKind::header:
            secret_header_ = {credential.user_or_name, secret};
            break;
        case CredentialKind::query:
            secret_query_ = {credential.user_or_name, secret};
            break;
    }
    if (secret_header_ && !is_token(secret_header_->first)) {
        context.diagnostics.error(
            credential.mark, "\"" + secret_header_->first + "\" is no name of a header"
        );
    }
    if (secret_header_ && has_header(secret_header_->first)) {
        context.diagnostics.error(
            request.credential->mark,
            "the header " + secret_header_->first +
                " is set twice: by headers: and by the credential"
        );
    }
}

bool RequestTemplate::has_header(std::string_view name) const {
    return std::any_of(headers_.begin(), headers_.end(), [&](const auto& header) {
        return same_header_name(header.first, name);
    });
}

std::optional<outbox::Error> RequestTemplate::render_headers(
    const Scope& scope, HttpRequest& request
) const {
    for (const auto& [name, value] : headers_) {
        auto text = value.render_text(scope);
        if (!text.ok()) return text.error();
        if (!text.value()) continue;
        if (has_control(*text.value())) {
            return invalid_argument(
                "the header " + name + " would hold a line break or another control character"
            );
        }
        request.headers.emplace_back(name, std::move(*text.value()));
    }
    if (secret_header_) request.headers.push_back(*secret_header_);
    if (!has_header("Accept")) request.headers.emplace_back("Accept", "application/json");
    if (body_kind_ != Body::none && !has_header("Content-Type")) {
        request.headers.emplace_back("Content-Type", std::string(content_type(body_kind_)));
    }
    return std::nullopt;
}

Rendered<std::string> RequestTemplate::render_body(const Scope& scope) const {
    switch (body_kind_) {
        case Body::none:
            return std::string{};
        case Body::text: {
            auto text = body_text_.render_body(scope);
            if (text.ok() && crlf_) return with_crlf(text.value());
            return text;
        }
        case Body::json:
        case Body::form:
            break;
    }
    auto value = body_value_.render(scope);
    if (!value.ok()) return value.error();
    const auto json = value.value().value_or(outbox::Json{});
    if (body_kind_ == Body::json) return outbox::to_text(json);
    return form_encode(json);
}

void RequestTemplate::retarget(HttpRequest& request, std::string target) const {
    request.target = std::move(target);
    if (!secret_query_) return;
    request.target = with_parameter(request.target, secret_query_->first, secret_query_->second);
}

Rendered<HttpRequest> RequestTemplate::render(const Scope& scope) const {
    HttpRequest request;
    request.method = method_;
    request.origin = url_.origin();
    auto target = url_.render(scope);
    if (!target.ok()) return target.error();
    request.target = std::move(target.value());
    char separator = url_.has_query() ? '&' : '?';
    for (const auto& [name, value] : query_) {
        auto text = value.render_text(scope, nullptr);
        if (!text.ok()) return text.error();
        if (!text.value()) continue;
        request.target += separator + percent_encode(name) + '=' + percent_encode(*text.value());
        separator = '&';
    }
    if (secret_query_) {
        request.target += separator + percent_encode(secret_query_->first) + '=' +
                          percent_encode(secret_query_->second);
    }
    if (auto refused = render_headers(scope, request)) return *refused;
    auto body = render_body(scope);
    if (!body.ok()) return body.error();
    request.body = std::move(body.value());
    return request;
}

}  // namespace tools
