#include "tools/request_template.hpp"

#include <algorithm>
#include <array>

#include "tools/answer.hpp"
#include "tools/encoding.hpp"
#include "tools/form.hpp"
#include "tools/link_header.hpp"

namespace tools {
namespace {

using Body = config::HttpRequest::Body;

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
    result.credential_ = RequestCredential::compile(request, credentials, context);
    if (!url) return std::nullopt;
    if (!url->origin().tls && !result.credential_.certificate().empty()) {
        context.diagnostics.error(
            request.mtls ? request.mtls->mark : request.credential->mark,
            "a client certificate is shown by TLS alone, and the URL is http",
            "use https"
        );
    }
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
    } else if (body_kind_ == Body::multipart) {
        body_parts_ = MultipartTemplate::compile(request.body_value, context);
        if (has_header("Content-Type")) {
            context.diagnostics.error(
                request.body_value.mark,
                "Content-Type of a multipart body names the boundary, which is made for it",
                "remove the header"
            );
        }
    }
    if (body_kind_ == Body::form && !request.body_value.is(config::Value::Kind::mapping)) {
        context.diagnostics.error(request.body_value.mark, "form must be a mapping");
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
    if (!has_header("Accept")) request.headers.emplace_back("Accept", "application/json");
    return std::nullopt;
}

std::optional<outbox::Error> RequestTemplate::render_body(const Scope& scope, HttpRequest& request)
    const {
    std::string type;
    switch (body_kind_) {
        case Body::none:
            return std::nullopt;
        case Body::text: {
            auto text = body_text_.render_body(scope);
            if (!text.ok()) return text.error();
            request.body = crlf_ ? with_crlf(text.value()) : std::move(text.value());
            type = "text/plain; charset=utf-8";
            break;
        }
        case Body::multipart: {
            auto body = body_parts_.render(scope);
            if (!body.ok()) return body.error();
            request.body = std::move(body.value().text);
            type = std::move(body.value().content_type);
            break;
        }
        case Body::json:
        case Body::form: {
            auto value = body_value_.render(scope);
            if (!value.ok()) return value.error();
            const auto json = value.value().value_or(outbox::Json{});
            auto body = body_kind_ == Body::json ? Rendered<std::string>(outbox::to_text(json))
                                                 : form_encode(json);
            if (!body.ok()) return body.error();
            request.body = std::move(body.value());
            type =
                body_kind_ == Body::json ? "application/json" : "application/x-www-form-urlencoded";
            break;
        }
    }
    if (!has_header("Content-Type")) request.headers.emplace_back("Content-Type", std::move(type));
    return std::nullopt;
}

void RequestTemplate::retarget(HttpRequest& request, std::string target) const {
    request.target = std::move(target);
    const auto& secret = credential_.parameter();
    if (secret) request.target = with_parameter(request.target, secret->first, secret->second);
}

Rendered<HttpRequest> RequestTemplate::render(const Scope& scope) const {
    auto request = render_unsigned(scope);
    if (request.ok()) {
        credential_.put_on(request.value(), scope, std::chrono::system_clock::now());
    }
    return request;
}

Rendered<HttpRequest> RequestTemplate::render_unsigned(const Scope& scope) const {
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
    if (const auto& secret = credential_.parameter()) {
        request.target +=
            separator + percent_encode(secret->first) + '=' + percent_encode(secret->second);
    }
    if (auto refused = render_headers(scope, request)) return *refused;
    if (auto refused = render_body(scope, request)) return *refused;
    return request;
}

}  // namespace tools
