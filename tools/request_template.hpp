#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/config.hpp"
#include "tools/http_client.hpp"
#include "tools/multipart.hpp"
#include "tools/request_credential.hpp"
#include "tools/url_template.hpp"
#include "tools/value_template.hpp"

namespace tools {

// One HTTP request of the configuration, compiled: rendering gives the exact request, or refuses
// before anything is sent. Every place escapes by itself.
class RequestTemplate {
 public:
    // Mistakes are reported; empty when there is no request to be made of it.
    static std::optional<RequestTemplate> compile(
        const config::HttpRequest& request, const Credentials& credentials, CompileContext& context
    );

    [[nodiscard]] Rendered<HttpRequest> render(const Scope& scope) const;
    // Without what the credential puts on: for a body that is made later.
    [[nodiscard]] Rendered<HttpRequest> render_unsigned(const Scope& scope) const;
    // Sends the request to another path and query of the same origin: the next page of a listing.
    void retarget(HttpRequest& request, std::string target) const;
    [[nodiscard]] const Origin& origin() const { return url_.origin(); }
    [[nodiscard]] const RequestCredential& credential() const { return credential_; }

 private:
    using Named = std::vector<std::pair<std::string, Template>>;

    void compile_headers(const config::HttpRequest& request, CompileContext& context);
    void compile_query(const config::HttpRequest& request, CompileContext& context);
    void compile_body(const config::HttpRequest& request, CompileContext& context);
    [[nodiscard]] bool has_header(std::string_view name) const;
    // Why there is none, or nothing. The content type may depend on the body.
    [[nodiscard]] std::optional<outbox::Error> render_body(const Scope& scope, HttpRequest& request)
        const;
    [[nodiscard]] std::optional<outbox::Error> render_headers(
        const Scope& scope, HttpRequest& request
    ) const;

    std::string method_;
    UrlTemplate url_;
    Named headers_;
    Named query_;
    config::HttpRequest::Body body_kind_ = config::HttpRequest::Body::none;
    ValueTemplate body_value_;
    Template body_text_;
    MultipartTemplate body_parts_;
    bool crlf_ = false;
    RequestCredential credential_;
};

}  // namespace tools
