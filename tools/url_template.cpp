#include "tools/url_template.hpp"

#include <algorithm>
#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>
#include <charconv>
#include <string_view>
#include <utility>

#include "tools/encoding.hpp"

namespace tools {
namespace {

namespace urls = boost::urls;
using Piece = Template::Piece;

constexpr const char* kFixedHosts =
    "hosts are fixed by the file: a template may fill path segments, query and headers";

bool is_dots(const std::string& segment) {
    return segment == "." || segment == "..";
}

// The URL with a plain character where a template stands, for checking its shape.
std::string shape(const std::vector<Piece>& pieces) {
    std::string text;
    for (const auto& piece : pieces) text += piece.expression ? std::string("x") : piece.literal;
    return text;
}

// Length of "scheme://host:port" at the head of the URL; npos when it has none.
std::size_t origin_length(const std::string& text) {
    const auto slashes = text.find("://");
    if (slashes == std::string::npos) return std::string::npos;
    return std::min(text.find_first_of("/?#", slashes + 3), text.size());
}

struct Split {
    std::vector<Template> segments;
    std::optional<Template> query;
};

// Cuts what stands behind the host at the "/" and the "?" of the file itself.
Split split(const std::vector<Piece>& pieces) {
    Split result;
    std::vector<Piece> current;
    bool in_query = false;
    const auto flush = [&] { result.segments.emplace_back(std::exchange(current, {})); };
    for (const auto& piece : pieces) {
        if (piece.expression || in_query) {
            current.push_back(piece);
            continue;
        }
        std::string literal;
        for (std::size_t i = 0; i < piece.literal.size(); ++i) {
            const char c = piece.literal[i];
            if (c != '/' && c != '?') {
                literal += c;
                continue;
            }
            if (!literal.empty()) current.push_back({std::exchange(literal, {}), std::nullopt});
            flush();
            if (c == '?') {
                in_query = true;
                literal = piece.literal.substr(i + 1);
                break;
            }
        }
        if (!literal.empty()) current.push_back({std::move(literal), std::nullopt});
    }
    if (in_query) {
        result.query = Template(std::move(current));
    } else {
        flush();
    }
    return result;
}

std::optional<Origin> checked_origin(
    const std::string& url, const config::Mark& mark, config::Diagnostics& diagnostics
) {
    const auto parsed = urls::parse_uri(url);
    if (!parsed) {
        diagnostics.error(
            mark,
            "not a valid URL: " + url,
            "write it as https://host/path; encode spaces and the like as %20"
        );
        return std::nullopt;
    }
    if (parsed->has_userinfo()) {
        diagnostics.error(
            mark, "a URL cannot hold a user name or password", "name them under credentials:"
        );
        return std::nullopt;
    }
    if (parsed->has_fragment()) {
        diagnostics.error(mark, "a URL for requests has no #fragment", "write # as %23");
        return std::nullopt;
    }
    auto origin = origin_of(url);
    if (!origin) {
        diagnostics.error(
            mark, "a URL must start with http:// or https:// and a host; a port is 1 to 65535"
        );
    }
    return origin;
}

}  // namespace

std::optional<Origin> origin_of(const std::string& url) {
    const auto parsed = urls::parse_uri(url);
    if (!parsed) return std::nullopt;
    const auto scheme = parsed->scheme_id();
    if (scheme != urls::scheme::http && scheme != urls::scheme::https) return std::nullopt;
    Origin origin;
    origin.tls = scheme == urls::scheme::https;
    origin.port = origin.tls ? 443 : 80;
    if (parsed->has_port() && !parsed->port().empty()) {
        // By hand: port_number() of a number beyond 16 bits is another port.
        const std::string_view digits = parsed->port();
        const auto [end, error] =
            std::from_chars(digits.data(), digits.data() + digits.size(), origin.port);
        if (error != std::errc() || end != digits.data() + digits.size() || origin.port < 1 ||
            origin.port > 65535) {
            return std::nullopt;
        }
    }
    std::string host(parsed->encoded_host());
    if (host.size() > 2 && host.front() == '[') host = host.substr(1, host.size() - 2);
    for (char& c : host) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    if (host.empty()) return std::nullopt;
    origin.host = std::move(host);
    return origin;
}

std::string origin_text(const Origin& origin) {
    const bool v6 = origin.host.find(':') != std::string::npos;
    return std::string(origin.tls ? "https://" : "http://") + (v6 ? "[" : "") + origin.host +
           (v6 ? "]" : "") + ":" + std::to_string(origin.port);
}

std::optional<UrlTemplate> UrlTemplate::compile(const config::Text& url, CompileContext& context) {
    const auto compiled = Template::compile(url, context);
    auto pieces = compiled.pieces();
    if (pieces.empty()) {
        context.diagnostics.error(url.mark, "a URL is missing", "for instance https://host/path");
        return std::nullopt;
    }
    const auto length = pieces[0].expression ? std::string::npos : origin_length(pieces[0].literal);
    const bool open = length != std::string::npos && length == pieces[0].literal.size();
    const bool templated = pieces.size() > 1 || pieces[0].expression;
    if (templated && (length == std::string::npos || open)) {
        context.diagnostics.error(url.mark, "a template in the scheme, host or port", kFixedHosts);
        return std::nullopt;
    }
    const auto origin = checked_origin(shape(pieces), url.mark, context.diagnostics);
    if (!origin) return std::nullopt;
    UrlTemplate result;
    result.origin_ = *origin;
    auto& head = pieces[0].literal;
    head.erase(0, head[length] == '/' ? length + 1 : length);
    auto parts = split(pieces);
    result.segments_ = std::move(parts.segments);
    result.query_ = std::move(parts.query);
    for (const auto& segment : result.segments_) {
        if (!segment.optional()) continue;
        context.diagnostics.error(
            url.mark, "a path segment cannot be left out", "use | default(…) instead of | optional"
        );
    }
    return result;
}

Rendered<std::string> UrlTemplate::render(const Scope& scope) const {
    std::string target;
    for (const auto& segment : segments_) {
        auto text = segment.render_text(scope, percent_encode);
        if (!text.ok()) return text.error();
        const auto rendered = text.value().value_or("");
        if (segment.has_expressions() && (rendered.empty() || is_dots(rendered))) {
            return invalid_argument(
                "a path segment of the URL would be " +
                (rendered.empty() ? std::string("empty") : "\"" + rendered + "\"")
            );
        }
        target += '/';
        target += rendered;
    }
    if (!query_) return target;
    auto query = query_->render_text(scope, percent_encode);
    if (!query.ok()) return query.error();
    if (!query.value()) {
        return missing_argument("a value of the URL's query is missing; put it under query:");
    }
    return target + '?' + *query.value();
}

}  // namespace tools
