#include "daemon/admin_guard.hpp"

#include <algorithm>
#include <fstream>
#include <utility>

#include "outbox/sha256.hpp"

namespace outboxd {

namespace {

constexpr std::size_t kShortestToken = 16;
constexpr std::size_t kLongestToken = 4096;

// No script, style or image but this server's own files, nothing inline, no frame around it, and
// no text that becomes markup.
constexpr const char* kContentPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'none'; base-uri 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'";

std::string lower(std::string_view text) {
    std::string lowered(text);
    for (char& c : lowered) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return lowered;
}

// "Desk.example.com:9464" → "desk.example.com", "[::1]:9464" → "::1".
std::string host_name(std::string_view header) {
    if (header.starts_with('[')) return lower(header.substr(1, header.find(']') - 1));
    return lower(header.substr(0, header.find(':')));
}

bool is_loopback_name(const std::string& name) {
    // Four numbers that begin with 127, not a name such as 127.example.com.
    bool numeric = name.find_first_not_of("0123456789.") == std::string::npos;
    return name == "localhost" || name == "::1" || (numeric && name.starts_with("127."));
}

bool has(const ServerRequest& request, std::string_view name) {
    return std::any_of(request.headers.begin(), request.headers.end(), [&](const auto& header) {
        return lower(header.first) == name;
    });
}

// The page that asks is this server's own, or no page asks at all: browsers say Sec-Fetch-Site,
// older ones Origin, programs neither. A header that is there twice is nobody's.
bool is_same_site(const ServerRequest& request) {
    if (has(request, "sec-fetch-site")) {
        auto site = request.header("Sec-Fetch-Site");
        if (!site || (*site != "same-origin" && *site != "none")) return false;
    }
    if (!has(request, "origin")) return true;
    auto origin = request.header("Origin");
    auto host = request.header("Host");
    if (!origin || !host) return false;
    // The scheme is a proxy's business that speaks TLS before us; "null" has none.
    auto mark = origin->find("://");
    return mark != std::string::npos && lower(origin->substr(mark + 3)) == lower(*host);
}

bool is_json(const ServerRequest& request) {
    auto type = request.header("Content-Type");
    if (!type) return false;
    auto name = lower(type->substr(0, type->find(';')));
    while (name.ends_with(' ')) name.pop_back();
    return name == "application/json";
}

// Empty when the file holds no token that is worth the name; why says what is wrong.
std::string read_token(const std::string& key, const std::string& file, std::string& why) {
    std::ifstream in(file, std::ios::binary);
    std::string token(kLongestToken + 1, '\0');
    in.read(token.data(), static_cast<std::streamsize>(token.size()));
    token.resize(static_cast<std::size_t>(in.gcount()));
    while (!token.empty() && (token.back() == '\n' || token.back() == '\r')) token.pop_back();
    const bool printable =
        std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < '\x7f'; });
    if (token.size() >= kShortestToken && token.size() <= kLongestToken && printable) return token;
    why = key + " " + file +
          " must hold one line of 16 to 4096 printable ASCII characters without spaces.";
    return {};
}

// By digest: how long it takes says nothing about how much of it was right.
bool equals(std::string_view given, std::string_view token) {
    auto a = outbox::sha256({given});
    auto b = outbox::sha256({token});
    unsigned difference = 0;
    for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned>(a[i] ^ b[i]);
    return difference == 0;
}

std::optional<std::string> bearer(const ServerRequest& request) {
    auto header = request.header("Authorization");
    constexpr std::string_view kScheme = "bearer ";
    if (!header || lower(header->substr(0, kScheme.size())) != kScheme) return std::nullopt;
    return header->substr(kScheme.size());
}

}  // namespace

AdminGuard::AdminGuard(AdminOptions options) : options_(std::move(options)) {
    for (auto& host : options_.hosts) host = lower(host);
}

AdminGuard::TokenPlace AdminGuard::place_of(Access access) const {
    const bool own = access == Access::agent && options_.agent_token_file.has_value();
    return own ? TokenPlace{"mcp.token_file", options_.agent_token_file}
               : TokenPlace{"admin.token_file", options_.token_file};
}

std::optional<std::string> AdminGuard::token_problem() const {
    for (const auto access : {Access::write, Access::agent}) {
        const auto place = place_of(access);
        std::string why;
        if (place.file && read_token(place.key, *place.file, why).empty()) return why;
    }
    return std::nullopt;
}

std::optional<ServerResponse> AdminGuard::check_host(const ServerRequest& request) const {
    auto header = request.header("Host");
    auto name = host_name(header.value_or(""));
    auto known = std::find(options_.hosts.begin(), options_.hosts.end(), name);
    if (header && (is_loopback_name(name) || known != options_.hosts.end())) return std::nullopt;
    return problem(
        421,
        "Misdirected request",
        "The Host header names neither this machine nor one of admin.hosts."
    );
}

std::optional<ServerResponse> AdminGuard::check_access(const ServerRequest& request, Access access)
    const {
    if (access == Access::open) return std::nullopt;
    const bool writes = access != Access::read;
    if (writes && !is_same_site(request)) {
        return problem(
            403, "Forbidden", "This request comes from another site's page; nothing was done."
        );
    }
    if (auto refused = check_token(request, access)) return refused;
    if (writes && request.method == "POST" && !is_json(request)) {
        return problem(
            415, "Unsupported media type", "The body must come as Content-Type: application/json."
        );
    }
    return std::nullopt;
}

std::optional<ServerResponse> AdminGuard::check_token(const ServerRequest& request, Access access)
    const {
    const auto place = place_of(access);
    if (!place.file) {
        // Configured addresses are loopback then, but whoever builds on this may not know.
        if (access == Access::read && is_loopback_name(lower(options_.host))) return std::nullopt;
        return problem(
            403,
            "Forbidden",
            access == Access::agent
                ? "There is no /mcp without a token: neither mcp.token_file nor "
                  "admin.token_file names a file with one."
                : "Steering is off here: admin.token_file names no file with a "
                  "token."
        );
    }
    std::string why;
    const auto token = read_token(place.key, *place.file, why);
    if (token.empty()) return problem(503, "No token", why);
    auto given = bearer(request);
    if (given && equals(*given, token)) return std::nullopt;
    auto refused = problem(
        401,
        "Unauthorized",
        given ? "This is not the token in " + place.key + "."
              : "This needs the header Authorization: Bearer, with the token in " + place.key + "."
    );
    refused.headers.emplace_back("WWW-Authenticate", "Bearer");
    return refused;
}

void secure(ServerResponse& response) {
    for (const auto& [name, value] : std::initializer_list<std::pair<const char*, const char*>>{
             {"Cache-Control", "no-store"},
             {"Content-Security-Policy", kContentPolicy},
             {"Cross-Origin-Opener-Policy", "same-origin"},
             {"Cross-Origin-Resource-Policy", "same-origin"},
             {"Referrer-Policy", "no-referrer"},
             {"X-Content-Type-Options", "nosniff"},
             {"X-Frame-Options", "DENY"},
         }) {
        response.headers.emplace_back(name, value);
    }
}

}  // namespace outboxd
