#include "config/emit.hpp"

#include <fmt/format.h>

#include "config/diagnostics.hpp"
#include "config/scalar.hpp"
#include "config/utf8.hpp"

namespace config {
namespace {

using Kind = Value::Kind;

// Words that need no quotes: they hold nothing YAML looks at and would not become a number.
bool is_plain(const std::string& text) {
    constexpr auto kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/.-";
    if (text.empty() || text[0] == '-') return false;
    if (text.find_first_not_of(kLetters) != std::string::npos) return false;
    Value typed;
    typed.text = text;
    Diagnostics unused;
    type_plain_scalar(typed, unused);
    return typed.is(Kind::string) && unused.all().empty();
}

std::string quoted(const std::string& text) {
    std::string out = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out += '\\';
            out += c;
        } else if (c == '\n') {
            out += "\\n";
        } else if (byte < 0x20 || byte == 0x7f) {
            out += fmt::format("\\x{:02x}", byte);
        } else {
            out += c;
        }
    }
    return out + '"';
}

std::string word(const std::string& text) {
    return is_plain(text) ? text : quoted(text);
}

std::string escape_substitutions(const std::string& text) {
    std::string out;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text.compare(at, 2, "${") == 0) out += '$';
        out += text[at];
    }
    return out;
}

std::string scalar(const Value& value) {
    switch (value.kind) {
        case Kind::null:
            return "null";
        case Kind::boolean:
        case Kind::number:
            return value.text;
        case Kind::string:
            return word(value.source.empty() ? escape_substitutions(value.text) : value.source);
        case Kind::sequence:
            return "[]";
        case Kind::mapping:
            return "{}";
    }
    return {};
}

bool is_block(const Value& value) {
    return !value.items.empty() || !value.members.empty();
}

void write(std::string& out, const Value& value, std::size_t indent);

// Behind "key:" or "-": on the same line, or as a block below it.
void write_below(std::string& out, const Value& value, std::size_t indent) {
    if (is_block(value)) {
        out += '\n';
        write(out, value, indent);
    } else {
        out += ' ' + scalar(value) + '\n';
    }
}

void write(std::string& out, const Value& value, std::size_t indent) {
    const std::string margin(indent, ' ');
    for (const auto& member : value.members) {
        out += margin + word(member.key) + ':';
        write_below(out, member.value, indent + 2);
    }
    for (const auto& item : value.items) {
        out += margin + '-';
        write_below(out, item, indent + 2);
    }
}

void write_json(std::string& out, const Value& value) {
    switch (value.kind) {
        case Kind::null:
            out += "null";
            return;
        case Kind::boolean:
        case Kind::number:
            out += value.text;
            return;
        case Kind::string:
            out += json_string(value.source.empty() ? value.text : value.source);
            return;
        case Kind::sequence: {
            const char* before = "[";
            for (const auto& item : value.items) {
                out += before;
                write_json(out, item);
                before = ",";
            }
            out += value.items.empty() ? "[]" : "]";
            return;
        }
        case Kind::mapping: {
            const char* before = "{";
            for (const auto& member : value.members) {
                out += before + json_string(member.key) + ':';
                write_json(out, member.value);
                before = ",";
            }
            out += value.members.empty() ? "{}" : "}";
            return;
        }
    }
}

}  // namespace

std::string to_json(const Value& value) {
    std::string out;
    write_json(out, value);
    return out;
}

std::string to_yaml(const Value& value) {
    if (!is_block(value)) return scalar(value) + '\n';
    std::string out;
    write(out, value, 0);
    return out;
}

}  // namespace config
