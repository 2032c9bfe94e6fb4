#include "daemon/text.hpp"

#include "outbox/utf8.hpp"

#include <fmt/format.h>

namespace outboxd {
namespace {

struct CodePoint {
    char32_t value = 0;
    std::size_t length = 0;  // 0: broken UTF-8 at this place
};

CodePoint decode(std::string_view text) {
    const std::size_t length = outbox::utf8_sequence(text, 0);
    return length == 0 ? CodePoint{} : CodePoint{outbox::code_point(text, 0), length};
}

}  // namespace

std::string json_quoted(std::string_view text) {
    std::string out = "\"";
    while (!text.empty()) {
        const CodePoint point = decode(text);
        if (point.length == 0) {
            out += outbox::kReplacement;
        } else if (point.value == '"' || point.value == '\\') {
            out += {'\\', static_cast<char>(point.value)};
        } else if (point.value == '\n') {
            out += "\\n";
        } else if (point.value < 0x20 || (point.value >= 0x7f && point.value < 0xa0)) {
            out += fmt::format("\\u{:04x}", static_cast<unsigned>(point.value));
        } else {
            out += text.substr(0, point.length);
        }
        text.remove_prefix(point.length == 0 ? 1 : point.length);
    }
    return out += '"';
}

std::string printable(std::string_view text) {
    std::string out;
    while (!text.empty()) {
        const CodePoint point = decode(text);
        if (point.length == 0) {
            out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[0]));
        } else if (point.value == '\n') {
            out += "\\n";
        } else if (point.value == '\r') {
            out += "\\r";
        } else if (point.value == '\t') {
            out += "\\t";
        } else if (point.value < 0x20 || (point.value >= 0x7f && point.value < 0xa0)) {
            out += fmt::format("\\x{:02x}", static_cast<unsigned>(point.value));
        } else {
            out += text.substr(0, point.length);
        }
        text.remove_prefix(point.length == 0 ? 1 : point.length);
    }
    return out;
}

std::size_t code_points(std::string_view text) {
    std::size_t count = 0;
    for (const char c : text) count += (static_cast<unsigned char>(c) & 0xc0) != 0x80 ? 1 : 0;
    return count;
}

}  // namespace outboxd
