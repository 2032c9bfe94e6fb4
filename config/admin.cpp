#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>

#include "config/sections.hpp"

namespace config {
namespace {

// host:port, with an IPv6 address in brackets.
bool parse_listen(std::string_view text, std::string& host, int& port) {
    const auto colon = text.rfind(':');
    if (colon == std::string_view::npos) return false;
    auto name = text.substr(0, colon);
    if (name.size() > 2 && name.front() == '[' && name.back() == ']') {
        name = name.substr(1, name.size() - 2);
    } else if (name.find_first_of(":[]") != std::string_view::npos) {
        return false;
    }
    const auto digits = text.substr(colon + 1);
    int number = -1;
    const auto* last = digits.data() + digits.size();
    const auto [end, error] = std::from_chars(digits.data(), last, number);
    if (name.empty() || error != std::errc() || end != last || number < 0 || number > 65535)
        return false;
    host = name;
    port = number;
    return true;
}

bool is_loopback(std::string_view host) {
    const bool number = host.find_first_not_of("0123456789.") == std::string_view::npos;
    return host == "localhost" || host == "::1" || (number && host.substr(0, 4) == "127.");
}

// A field name of its own (RFC 9110): none that HTTP, MCP or a browser gives a meaning.
bool is_run_header(std::string_view name) {
    constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
    constexpr std::string_view kTaken[] = {
        "accept",
        "authorization",
        "connection",
        "content-length",
        "content-type",
        "cookie",
        "host",
        "origin",
        "referer",
        "transfer-encoding",
        "user-agent"
    };
    std::string lower;
    for (const char c : name) {
        const bool upper = c >= 'A' && c <= 'Z';
        const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (!upper && !plain && kOthers.find(c) == std::string_view::npos) return false;
        lower += upper ? static_cast<char>(c - 'A' + 'a') : c;
    }
    return !lower.empty() && !lower.starts_with("mcp-") &&
           std::find(std::begin(kTaken), std::end(kTaken), lower) == std::end(kTaken);
}

}  // namespace

void read_mcp_face(MapReader& root, McpFace& out) {
    auto in = root.section("mcp");
    if (in.string("run_header", out.run_header) && out.run_header &&
        !is_run_header(*out.run_header)) {
        in.error(
            *in.value("run_header"),
            "run_header",
            fmt::format("{} cannot name the run", shown(*in.value("run_header"))),
            "write a header of your own, for example Agent-Run-Id; an MCP session is no run: it "
            "does "
            "not survive a restart of the agent"
        );
    }
    in.duration("wait", out.wait, {10ms, std::chrono::hours{1}});
    in.string("token_file", out.token_file);
    in.finish();
}

void read_admin(MapReader& root, Admin& out) {
    auto in = root.section("admin");
    std::string listen;
    if (in.string("listen", listen) && !parse_listen(listen, out.host, out.port)) {
        in.error(
            *in.value("listen"),
            "listen",
            fmt::format("{} is no address to listen on", shown(*in.value("listen"))),
            "write host:port, for example 127.0.0.1:9464 or [::1]:9464"
        );
    }
    in.string("token_file", out.token_file);
    in.strings("hosts", out.hosts);
    const auto* token = in.value("token_file");
    if (!is_loopback(out.host) && !token) {
        root.diagnostics().error(
            in.key_mark(),
            fmt::format("admin.token_file is missing: {} is not a loopback address", out.host),
            "name a file that holds the token, or listen on 127.0.0.1"
        );
    }
    in.finish();
}

}  // namespace config
