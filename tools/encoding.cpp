#include "tools/encoding.hpp"

#include <algorithm>
#include <cstdint>

#include "outbox/sha256.hpp"

namespace tools {
namespace {

bool is_unreserved(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

bool is_control(char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
}

// Groups of `bits` bits, most significant first; the last one is filled up with zeros.
std::string in_groups(std::string_view bytes, unsigned bits, std::string_view alphabet) {
    std::string out;
    out.reserve(bytes.size() * 8 / bits + 2);
    std::uint32_t buffer = 0;
    unsigned held = 0;
    const std::uint32_t mask = (1U << bits) - 1U;
    for (const char c : bytes) {
        buffer = (buffer << 8U) | static_cast<unsigned char>(c);
        held += 8;
        while (held >= bits) {
            held -= bits;
            out += alphabet[(buffer >> held) & mask];
        }
        buffer &= (1U << held) - 1U;
    }
    if (held > 0) out += alphabet[(buffer << (bits - held)) & mask];
    return out;
}

int hex_digit(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return -1;
}

std::optional<std::uint32_t> base64_digit(char c) {
    constexpr std::string_view kAlphabet =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const auto at = kAlphabet.find(c);
    if (at == std::string_view::npos) return std::nullopt;
    return static_cast<std::uint32_t>(at);
}

}  // namespace

std::string percent_encode(std::string_view text) {
    constexpr std::string_view kDigits = "0123456789ABCDEF";
    std::string out;
    out.reserve(text.size());
    for (const char c : text) {
        if (is_unreserved(c)) {
            out += c;
        } else {
            out += '%';
            out += kDigits[static_cast<unsigned char>(c) >> 4U];
            out += kDigits[static_cast<unsigned char>(c) & 0x0fU];
        }
    }
    return out;
}

std::string base64(std::string_view bytes) {
    auto out =
        in_groups(bytes, 6, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/");
    out.append((4 - out.size() % 4) % 4, '=');
    return out;
}

std::optional<std::string> base64_decode(std::string_view text) {
    const auto padding = text.size() - std::min(text.find('='), text.size());
    if (padding > 2 || (padding > 0 && text.size() % 4 != 0)) return std::nullopt;
    text.remove_suffix(padding);
    if (text.size() % 4 == 1) return std::nullopt;
    std::string out;
    out.reserve(text.size() * 3 / 4);
    std::uint32_t buffer = 0;
    unsigned held = 0;
    for (const char c : text) {
        const auto digit = base64_digit(c);
        if (!digit) return std::nullopt;
        buffer = (buffer << 6U) | *digit;
        held += 6;
        if (held < 8) continue;
        held -= 8;
        out += static_cast<char>((buffer >> held) & 0xffU);
        buffer &= (1U << held) - 1U;
    }
    // Bits left over that are not zero: some other text would mean the same bytes.
    if (buffer != 0) return std::nullopt;
    return out;
}

std::string base64url(std::string_view bytes) {
    return in_groups(bytes, 6, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_");
}

std::string base32hex(std::string_view bytes) {
    return in_groups(bytes, 5, "0123456789abcdefghijklmnopqrstuv");
}

std::string hex(std::string_view bytes) {
    return in_groups(bytes, 4, "0123456789abcdef");
}

std::string digest_bytes(std::string_view text) {
    constexpr std::size_t kDigits = 64;
    const bool is_digest =
        text.size() == kDigits &&
        std::all_of(text.begin(), text.end(), [](char c) { return hex_digit(c) >= 0; });
    std::string bytes;
    if (is_digest) {
        for (std::size_t i = 0; i < kDigits; i += 2) {
            bytes += static_cast<char>(hex_digit(text[i]) * 16 + hex_digit(text[i + 1]));
        }
        return bytes;
    }
    for (const auto byte : outbox::sha256({text})) bytes += static_cast<char>(byte);
    return bytes;
}

std::string digest_uuid(std::string_view text) {
    auto bytes = digest_bytes(text).substr(0, 16);
    bytes[6] = static_cast<char>((static_cast<unsigned char>(bytes[6]) & 0x0fU) | 0x40U);
    bytes[8] = static_cast<char>((static_cast<unsigned char>(bytes[8]) & 0x3fU) | 0x80U);
    auto out = hex(bytes);
    for (const std::size_t dash : {8U, 13U, 18U, 23U}) out.insert(dash, 1, '-');
    return out;
}

std::string digest_short(std::string_view text) {
    constexpr std::size_t kLength = 22;
    return base64url(digest_bytes(text)).substr(0, kLength);
}

std::string jql_literal(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        switch (c) {
            case '"':
                out += "\\\"";
                break;
            case '\\':
                out += "\\\\";
                break;
            case '\n':
                out += "\\n";
                break;
            case '\r':
                out += "\\r";
                break;
            case '\t':
                out += "\\t";
                break;
            default:
                out += is_control(c) ? ' ' : c;
        }
    }
    return out += '"';
}

std::optional<std::string> xml_escape(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (const char c : text) {
        switch (c) {
            case '&':
                out += "&amp;";
                break;
            case '<':
                out += "&lt;";
                break;
            case '>':
                out += "&gt;";
                break;
            case '"':
                out += "&quot;";
                break;
            case '\'':
                out += "&apos;";
                break;
            case '\r':
                out += "&#13;";
                break;
            case '\t':
            case '\n':
                out += c;
                break;
            default:
                if (static_cast<unsigned char>(c) < 0x20) return std::nullopt;
                out += c;
        }
    }
    return out;
}

std::optional<std::string> ical_escape(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        switch (c) {
            case '\\':
                out += "\\\\";
                break;
            case ';':
                out += "\\;";
                break;
            case ',':
                out += "\\,";
                break;
            case '\r':
                if (i + 1 < text.size() && text[i + 1] == '\n') break;
                out += "\\n";
                break;
            case '\n':
                out += "\\n";
                break;
            case '\t':
                out += c;
                break;
            default:
                if (is_control(c)) return std::nullopt;
                out += c;
        }
    }
    return out;
}

bool has_control(std::string_view text) {
    return std::any_of(text.begin(), text.end(), is_control);
}

}  // namespace tools
