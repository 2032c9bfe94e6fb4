#include "outbox/utf8.hpp"

#include <cstdint>

namespace outbox {
namespace {

std::uint8_t byte(std::string_view text, std::size_t at) {
    return static_cast<std::uint8_t>(text[at]);
}

}  // namespace

std::size_t utf8_sequence(std::string_view text, std::size_t at) {
    const auto lead = byte(text, at);
    if (lead < 0x80) return 1;
    const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
    if (lead < 0xC2 || lead > 0xF4 || text.size() - at < length) return 0;
    for (std::size_t i = 1; i < length; ++i) {
        if ((byte(text, at + i) & 0xC0U) != 0x80U) return 0;
    }
    const auto second = byte(text, at + 1);
    if (lead == 0xE0 && second < 0xA0) return 0;  // overlong
    if (lead == 0xED && second > 0x9F) return 0;  // surrogates
    if (lead == 0xF0 && second < 0x90) return 0;  // overlong
    if (lead == 0xF4 && second > 0x8F) return 0;  // beyond U+10FFFF
    return length;
}

std::string repair_utf8(std::string_view text) {
    std::string repaired;
    repaired.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        const auto length = utf8_sequence(text, at);
        repaired += length == 0 ? kReplacement : text.substr(at, length);
        at += length == 0 ? 1 : length;
    }
    return repaired;
}

char32_t code_point(std::string_view text, std::size_t at) {
    const char32_t lead = byte(text, at);
    if (lead < 0x80) return lead;
    const auto next = [&](std::size_t i) -> char32_t { return byte(text, at + i) & 0x3FU; };
    if (lead < 0xE0) return (lead & 0x1FU) << 6U | next(1);
    if (lead < 0xF0) return (lead & 0x0FU) << 12U | next(1) << 6U | next(2);
    return (lead & 0x07U) << 18U | next(1) << 12U | next(2) << 6U | next(3);
}

std::string_view utf8_head(std::string_view text, std::size_t max_bytes) {
    if (text.size() <= max_bytes) return text;
    auto end = max_bytes;
    while (end > 0 && (byte(text, end) & 0xC0U) == 0x80U) --end;
    return text.substr(0, end);
}

}  // namespace outbox
