// http.proxy: an address, with a user and a password in it where the proxy asks for them.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "config/mask.hpp"
#include "config/sections.hpp"

namespace config {
namespace {

constexpr const char* kHint =
    "for example http://proxy.example.com:3128, with a password "
    "http://user:${cred:proxy_password}@proxy.example.com:3128; none for no proxy";

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

std::string percent_decoded(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool escape = text[i] == '%' && i + 2 < text.size();
        const int high = escape ? hex_digit(text[i + 1]) : -1;
        const int low = escape ? hex_digit(text[i + 2]) : -1;
        if (high < 0 || low < 0) {
            out += text[i];
            continue;
        }
        out += static_cast<char>(high * 16 + low);
        i += 2;
    }
    return out;
}

bool is_host(std::string_view host) {
    const bool v6 = host.find(':') != std::string_view::npos;
    return !host.empty() && std::all_of(host.begin(), host.end(), [&](char c) {
        const bool digit = c >= '0' && c <= '9';
        const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        return digit || letter || c == '.' || (v6 ? c == ':' || c == '%' : c == '-' || c == '_');
    });
}

// The host and port of "host:port" or "[v6]:port"; what is wrong with it, or empty.
std::string_view read_authority(std::string_view text, Proxy& out) {
    const auto colon = text.rfind(':');
    const auto bracket = text.rfind(']');
    const bool no_port =
        colon == std::string_view::npos || (bracket != std::string_view::npos && colon < bracket);
    auto host = text.substr(0, no_port ? text.size() : colon);
    if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
        host = host.substr(1, host.size() - 2);
    } else if (host.find(':') != std::string_view::npos) {
        return "an IPv6 address stands in brackets: http://[::1]:3128";
    }
    if (!is_host(host)) return "has no host, or one with odd characters";
    if (no_port) return "says no port";
    const auto digits = text.substr(colon + 1);
    const auto [end, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), out.port);
    const bool number = error == std::errc() && end == digits.data() + digits.size();
    if (!number || out.port < 1 || out.port > 65535) return "has a port that is none";
    out.host = std::string(host);
    return {};
}

// Keeps to http://[user[:password]@]host:port. The password may hold what it likes, "@" included.
std::string_view read_url(std::string_view url, Proxy& out) {
    constexpr std::string_view kScheme = "http://";
    if (url.rfind(kScheme, 0) != 0) return "must begin with http://";
    auto rest = url.substr(kScheme.size());
    if (const auto at = rest.rfind('@'); at != std::string_view::npos) {
        const auto user = rest.substr(0, at);
        const auto colon = user.find(':');
        out.user = percent_decoded(user.substr(0, colon));
        if (colon != std::string_view::npos) {
            out.secret.value = percent_decoded(user.substr(colon + 1));
        }
        rest = rest.substr(at + 1);
    }
    if (!rest.empty() && rest.back() == '/') rest.remove_suffix(1);
    if (rest.find_first_of("/?#") != std::string_view::npos) return "is more than an address";
    return read_authority(rest, out);
}

}  // namespace

void read_proxy(MapReader& in, Http& out) {
    std::string url;
    if (!in.string("proxy", url)) return;
    const auto& given = *in.value("proxy");
    if (url == "none") {
        out.proxy.reset();
        return;
    }
    Proxy proxy;
    proxy.secret.source = given.source;
    proxy.secret.mark = given.mark;
    if (const auto problem = read_url(url, proxy); !problem.empty()) {
        // Not the address itself: there may be a password in it.
        in.error(given, "proxy", problem, kHint);
        return;
    }
    const auto& written = given.source.empty() ? url : given.source;
    if (!proxy.secret.value.empty() && holds_literal_password(written)) {
        in.diagnostics().warning(
            given.mark,
            fmt::format("{}.proxy: a password in the file itself", in.path()),
            "use ${cred:name}, ${file:/path} or ${env:VAR} in its place"
        );
    }
    out.proxy = std::move(proxy);
}

}  // namespace config
