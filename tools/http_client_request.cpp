#include "tools/http_client_request.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace tools {

namespace {

char lower(char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool is_token_char(char c) {
    constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
    return (c >= '0' && c <= '9') || (lower(c) >= 'a' && lower(c) <= 'z') ||
           kOthers.find(c) != std::string_view::npos;
}

bool is_token(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), is_token_char);
}

// Visible ASCII only: everything else in a target must have been percent-encoded.
bool is_target(std::string_view text) {
    return !text.empty() && text.front() == '/' &&
           std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 0x7f; });
}

bool is_header_value(std::string_view text) {
    return std::none_of(text.begin(), text.end(), [](char c) {
        auto byte = static_cast<unsigned char>(c);
        return (byte < 0x20 && byte != '\t') || byte == 0x7f;
    });
}

// Letters, digits and what addresses need: a host never reaches the Host header unchecked.
bool is_host(std::string_view text) {
    return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
        return is_token_char(c) || c == ':';
    });
}

// Whoever sets one of these could break the framing of the message.
bool is_framing(std::string_view name) {
    constexpr std::array<std::string_view, 6> kFraming = {
        "Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Expect"
    };
    return std::any_of(kFraming.begin(), kFraming.end(), [&](std::string_view framing) {
        return same_name(framing, name);
    });
}

bool has_header(const HttpRequest& request, std::string_view name) {
    return std::any_of(request.headers.begin(), request.headers.end(), [&](const auto& header) {
        return same_name(header.first, name);
    });
}

std::string bracketed(const std::string& host) {
    return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

void add_authorization(std::string& head, const HttpProxy& proxy) {
    if (!proxy.authorization.empty()) {
        head += "Proxy-Authorization: " + proxy.authorization + "\r\n";
    }
}

}  // namespace

bool same_name(std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
        return lower(x) == lower(y);
    });
}

std::string to_text(const Origin& origin) {
    return bracketed(origin.host) + ":" + std::to_string(origin.port);
}

std::optional<std::string> check_request(const HttpRequest& request) {
    if (!is_token(request.method)) return "The method is not an HTTP token.";
    if (!is_target(request.target))
        return "The path or query holds a character that is not encoded.";
    if (!is_host(request.origin.host)) return "The host name holds a forbidden character.";
    for (const auto& [name, value] : request.headers) {
        if (!is_token(name)) return "A header name holds a forbidden character.";
        if (is_framing(name)) return "The header " + name + " is set by the client itself.";
        if (!is_header_value(value)) {
            return "The value of header " + name + " holds a control character.";
        }
    }
    return std::nullopt;
}

std::string connect_head(const Origin& origin, const HttpProxy& proxy) {
    const auto authority = to_text(origin);
    std::string head = "CONNECT " + authority + " HTTP/1.1\r\nHost: " + authority + "\r\n";
    head += "User-Agent: outboxd\r\n";
    add_authorization(head, proxy);
    head += "\r\n";
    return head;
}

std::string request_head(const HttpRequest& request, const HttpProxy* proxy) {
    auto host = bracketed(request.origin.host);
    if (request.origin.port != (request.origin.tls ? 443 : 80)) {
        host += ':';
        host += std::to_string(request.origin.port);
    }
    std::string head;
    head.reserve(256 + request.target.size());
    head += request.method;
    head += ' ';
    if (proxy != nullptr) head += "http://" + host;
    head += request.target;
    head += " HTTP/1.1\r\nHost: " + host + "\r\n";
    if (proxy != nullptr) add_authorization(head, *proxy);
    if (!has_header(request, "User-Agent")) head += "User-Agent: outboxd\r\n";
    // What is decoded, and nothing else: an answer in another encoding could not be read.
    if (!has_header(request, "Accept-Encoding")) head += "Accept-Encoding: gzip\r\n";
    bool takes_body =
        request.method == "POST" || request.method == "PUT" || request.method == "PATCH";
    if (!request.body.empty() || takes_body) {
        head += "Content-Length: " + std::to_string(request.body.size()) + "\r\n";
    }
    for (const auto& [name, value] : request.headers) {
        head += name;
        head += ": ";
        head += value;
        head += "\r\n";
    }
    head += "\r\n";
    return head;
}

}  // namespace tools
