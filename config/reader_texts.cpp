// MapReader: texts, lists of them, and the parts that are handed on as they are.
#include <fmt/format.h>

#include "config/reader.hpp"

namespace config {
namespace {

using Kind = Value::Kind;

bool is_scalar(const Value& value) {
    return value.is(Kind::string) || value.is(Kind::number) || value.is(Kind::boolean);
}

}  // namespace

bool MapReader::string(std::string_view key, std::string& out) {
    const auto* found = scalar(key);
    if (!found) return false;
    if (found->text.empty()) {
        error(*found, key, "must not be empty", {});
        return false;
    }
    out = found->text;
    return true;
}

bool MapReader::string(std::string_view key, std::optional<std::string>& out) {
    std::string read;
    if (!string(key, read)) return false;
    out = std::move(read);
    return true;
}

std::optional<Text> MapReader::as_text(const Value& value, std::string_view key) {
    if (value.unresolved) return Text{{}, value.mark};
    if (is_scalar(value)) return to_text_value(value);
    error(value, key, fmt::format("must be a text, not {}", shown(value)), {});
    return std::nullopt;
}

bool MapReader::text(std::string_view key, Text& out) {
    const auto* found = value(key);
    if (!found) return false;
    auto read = as_text(*found, key);
    if (!read) return false;
    out = std::move(*read);
    return true;
}

bool MapReader::text(std::string_view key, std::optional<Text>& out) {
    Text read;
    if (!text(key, read)) return false;
    out = std::move(read);
    return true;
}

bool MapReader::texts(std::string_view key, std::vector<Text>& out) {
    const auto* found = value(key);
    if (!found || found->unresolved) return false;
    if (!found->is(Kind::sequence)) {
        error(*found, key, fmt::format("must be a list, not {}", shown(*found)), "write [a, b]");
        return false;
    }
    for (const auto& item : found->items) {
        if (auto read = as_text(item, key)) out.push_back(std::move(*read));
    }
    return true;
}

bool MapReader::strings(std::string_view key, std::vector<std::string>& out) {
    std::vector<Text> read;
    if (!texts(key, read)) return false;
    for (auto& text : read) out.push_back(std::move(text.value));
    return true;
}

bool MapReader::text_map(std::string_view key, std::vector<std::pair<Text, Text>>& out) {
    const auto* found = value(key);
    if (!found || found->unresolved) return false;
    if (!found->is(Kind::mapping)) {
        error(
            *found,
            key,
            fmt::format("must be a mapping, not {}", shown(*found)),
            "write { name: value }"
        );
        return false;
    }
    for (const auto& m : found->members) {
        auto read = as_text(m.value, fmt::format("{}.{}", key, m.key));
        if (read) out.emplace_back(Text{m.key, m.key_mark}, std::move(*read));
    }
    return true;
}

bool MapReader::free(std::string_view key, std::optional<Value>& out) {
    const auto* found = value(key);
    if (!found) return false;
    out = *found;
    return true;
}

bool MapReader::free_mapping(std::string_view key, std::optional<Value>& out) {
    const auto* found = value(key);
    if (!found || found->unresolved) return false;
    if (!found->is(Kind::mapping)) {
        error(*found, key, fmt::format("must be a mapping, not {}", shown(*found)), {});
        return false;
    }
    out = *found;
    return true;
}

}  // namespace config
