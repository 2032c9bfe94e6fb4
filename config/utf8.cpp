#include "config/utf8.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace config {

std::size_t utf8_sequence(std::string_view text, std::size_t at) {
    const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[at + i]); };
    const auto lead = byte(0);
    if (lead < 0x80) return 1;
    const std::size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
    if (lead < 0xc2 || lead > 0xf4 || at + length > text.size()) return 0;
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xc0) != 0x80) return 0;
    }
    const bool overlong = (lead == 0xe0 && byte(1) < 0xa0) || (lead == 0xf0 && byte(1) < 0x90);
    const bool surrogate = lead == 0xed && byte(1) > 0x9f;
    const bool beyond = lead == 0xf4 && byte(1) > 0x8f;
    return overlong || surrogate || beyond ? 0 : length;
}

std::string readable(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size();) {
        const auto length = utf8_sequence(text, i);
        out += length == 0 ? std::string_view("\xef\xbf\xbd") : text.substr(i, length);
        i += std::max<std::size_t>(length, 1);
    }
    return out;
}

std::string json_string(std::string_view text) {
    std::string out = "\"";
    for (const char c : readable(text)) {
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (c == '\n') {
            out += "\\n";
        } else if (static_cast<unsigned char>(c) < 0x20) {
            out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
        } else {
            out += c;
        }
    }
    return out + '"';
}

}  // namespace config
