#pragma once

#include <optional>
#include <string>
#include <vector>

#include "config/value.hpp"
#include "tools/http_client.hpp"
#include "tools/template.hpp"

namespace tools {

// A URL whose scheme, host and port are fixed by the file. Templates fill path segments and query
// values, percent-encoded, so a rendered "/" or ".." cannot make a segment.
class UrlTemplate {
 public:
    // Mistakes are reported; empty when the URL cannot be used.
    static std::optional<UrlTemplate> compile(const config::Text& url, CompileContext& context);

    [[nodiscard]] const Origin& origin() const { return origin_; }
    // "/api/tickets/7?state=open". Refuses a segment that renders empty, "." or "..".
    [[nodiscard]] Rendered<std::string> render(const Scope& scope) const;
    [[nodiscard]] bool has_query() const { return query_.has_value(); }

 private:
    Origin origin_;
    std::vector<Template> segments_;
    std::optional<Template> query_;
};

// Scheme, host and port of an absolute URL without templates; empty when it is none of http(s).
[[nodiscard]] std::optional<Origin> origin_of(const std::string& url);
// "https://host:8443", as it stands in a URL.
[[nodiscard]] std::string origin_text(const Origin& origin);

}  // namespace tools
