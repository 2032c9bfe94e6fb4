#include "config/mask.hpp"

#include <algorithm>
#include <array>
#include <cctype>

namespace config {
namespace {

using Kind = Value::Kind;

// ${env:TOKEN:-hunter2}: the default is a secret too.
std::string mask_defaults(const std::string& source) {
    std::string out;
    std::size_t at = 0;
    while (at < source.size()) {
        const auto open = source.find("${env:", at);
        const auto close = open == std::string::npos ? open : source.find('}', open);
        if (close == std::string::npos) break;
        const auto dash = source.find(":-", open + 6);
        const bool has_default = dash != std::string::npos && dash < close;
        out.append(source, at, (has_default ? dash + 2 : close) - at);
        if (has_default) out += "***";
        out += '}';
        at = close + 1;
    }
    return out.append(source, std::min(at, source.size()), std::string::npos);
}

// Stands for a ${…} where only the literal part of a text is looked at.
constexpr char kSubstituted = '\x01';

std::string literal_part(const std::string& source) {
    std::string out;
    std::size_t at = 0;
    for (;;) {
        const auto open = source.find("${", at);
        const auto close = open == std::string::npos ? open : source.find('}', open);
        if (close == std::string::npos) return out.append(source, at, std::string::npos);
        out.append(source, at, open - at);
        out += kSubstituted;
        at = close + 1;
    }
}

bool is_literal(std::string_view value) {
    return value.find_first_not_of(kSubstituted) != std::string_view::npos;
}

void mask(Value& value, bool sensitive) {
    if (value.is(Kind::string) && sensitive) {
        if (value.source.empty()) {
            if (value.text.find("{{") == std::string::npos) value.text = "***";
        } else {
            value.source = mask_defaults(value.source);
        }
    }
    for (auto& item : value.items) mask(item, sensitive);
    for (auto& member : value.members)
        mask(member.value, sensitive || is_sensitive_name(member.key));
}

}  // namespace

bool holds_literal_password(const std::string& source) {
    const auto text = literal_part(source);
    constexpr std::string_view kWord = "password";
    for (auto at = text.find(kWord); at != std::string::npos; at = text.find(kWord, at + 1)) {
        const auto equals = text.find_first_not_of(' ', at + kWord.size());
        if (equals == std::string::npos || text[equals] != '=') continue;
        const auto value = text.find_first_not_of(' ', equals + 1);
        if (value == std::string::npos) continue;
        const auto end = text.find_first_of(" &", value);
        if (is_literal(std::string_view(text).substr(value, end - value))) return true;
    }
    const auto scheme = text.find("://");
    if (scheme == std::string::npos) return false;
    const auto at = text.find('@', scheme);
    const auto colon = text.find(':', scheme + 3);
    return at != std::string::npos && colon < at &&
           is_literal(std::string_view(text).substr(colon + 1, at - colon - 1));
}

std::string shown_secret(const std::string& source) {
    if (source.find("$${") != std::string::npos) return {};  // a literal is in it
    if (holds_literal_password(source)) return {};
    return mask_defaults(source);
}

bool is_sensitive_name(std::string_view name) {
    std::string letters;
    for (const char c : name) {
        if (std::isalnum(static_cast<unsigned char>(c))) {
            letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
        }
    }
    constexpr std::array<std::string_view, 8> kEndings{
        "authorization", "cookie", "apikey", "token", "password", "passwd", "secret", "privatekey"
    };
    return std::any_of(kEndings.begin(), kEndings.end(), [&](std::string_view ending) {
        return letters.size() >= ending.size() &&
               letters.compare(letters.size() - ending.size(), ending.size(), ending) == 0;
    });
}

void mask_requests(Value& tree) {
    constexpr std::array<std::string_view, 7> kParts{
        "headers", "query", "form", "json", "multipart", "env", "parameters"
    };
    // Elsewhere arguments: is a JSON Schema.
    const auto* type = tree.find("type");
    const bool mcp = type != nullptr && type->text == "mcp";
    for (auto& member : tree.members) {
        const bool call = mcp && (member.key == "arguments" || member.key == "meta");
        if (call || std::find(kParts.begin(), kParts.end(), member.key) != kParts.end()) {
            mask(member.value, false);
        } else if (member.key == "execute" || member.key == "reconcile") {
            mask_requests(member.value);
        }
    }
}

}  // namespace config
