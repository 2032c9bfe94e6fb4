#include "tools/answer.hpp"

#include <algorithm>

namespace tools {

bool same_header_name(std::string_view a, std::string_view b) {
    const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](char x, char y) {
        return lower(x) == lower(y);
    });
}

const std::string* Answer::header(std::string_view name) const {
    for (const auto& [key, value] : headers) {
        if (same_header_name(key, name)) return &value;
    }
    return nullptr;
}

void parse_body(Answer& answer) {
    if (answer.truncated || answer.text.empty()) return;
    auto parsed = outbox::parse_foreign_json(answer.text);
    if (parsed.value) answer.body = std::move(parsed.value);
}

}  // namespace tools
