#include "outbox/json.hpp"

#include <algorithm>
#include <charconv>

#include "outbox/decimal.hpp"
#include "outbox/sha256.hpp"
#include "outbox/utf8.hpp"

namespace outbox {
namespace {

bool equal_numbers(const Json::Number& a, const Json::Number& b) {
    if (a.text == b.text) return true;
    const auto left = parse_decimal(a.text);
    const auto right = parse_decimal(b.text);
    return !left.huge && !right.huge && left == right;
}

bool equal_arrays(const Json::Array& a, const Json::Array& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const Json& x, const Json& y) {
        return x.equals(y);
    });
}

// By sorted pointers: a thousand members must not cost a million comparisons.
std::vector<const Json::Member*> by_key(const Json::Object& object) {
    std::vector<const Json::Member*> members;
    members.reserve(object.size());
    for (const auto& member : object) members.push_back(&member);
    std::sort(members.begin(), members.end(), [](const auto* x, const auto* y) {
        return x->first < y->first;
    });
    return members;
}

bool equal_objects(const Json::Object& a, const Json::Object& b) {
    if (a.size() != b.size()) return false;
    const auto left = by_key(a);
    const auto right = by_key(b);
    return std::equal(left.begin(), left.end(), right.begin(), [](const auto* x, const auto* y) {
        return x->first == y->first && x->second.equals(y->second);
    });
}

// Decodes one reference token of RFC 6901; false when a ~ is followed by neither 0 nor 1.
bool decode_token(std::string_view token, std::string& decoded) {
    decoded.clear();
    for (std::size_t i = 0; i < token.size(); ++i) {
        if (token[i] != '~') {
            decoded += token[i];
            continue;
        }
        if (++i == token.size() || (token[i] != '0' && token[i] != '1')) return false;
        decoded += token[i] == '0' ? '~' : '/';
    }
    return true;
}

const Json* element(const Json::Array& array, std::string_view token) {
    if (token.empty() || (token.size() > 1 && token[0] == '0')) return nullptr;
    std::size_t index = 0;
    const auto parsed = std::from_chars(token.data(), token.data() + token.size(), index);
    if (parsed.ec != std::errc{} || parsed.ptr != token.data() + token.size()) return nullptr;
    return index < array.size() ? &array[index] : nullptr;
}

void append_string(std::string& out, std::string_view text) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    out += '"';
    for (const char c : text) {
        switch (c) {
            case '"':
                out += "\\\"";
                break;
            case '\\':
                out += "\\\\";
                break;
            case '\b':
                out += "\\b";
                break;
            case '\f':
                out += "\\f";
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
                if (static_cast<unsigned char>(c) < 0x20) {
                    out += "\\u00";
                    out += kDigits[static_cast<unsigned char>(c) >> 4U];
                    out += kDigits[static_cast<unsigned char>(c) & 0x0fU];
                } else {
                    out += c;
                }
        }
    }
    out += '"';
}

void append(std::string& out, const Json& value) {
    if (const auto* b = value.as_bool()) {
        out += *b ? "true" : "false";
    } else if (const auto* number = value.as_number()) {
        out += number->text;
    } else if (const auto* string = value.as_string()) {
        append_string(out, *string);
    } else if (const auto* array = value.as_array()) {
        out += '[';
        for (const auto& item : *array) {
            if (&item != array->data()) out += ',';
            append(out, item);
        }
        out += ']';
    } else if (const auto* object = value.as_object()) {
        out += '{';
        for (const auto& member : *object) {
            if (&member != object->data()) out += ',';
            append_string(out, member.first);
            out += ':';
            append(out, member.second);
        }
        out += '}';
    } else {
        out += "null";
    }
}

// jsonb knows neither NUL nor broken UTF-8.
std::string storable_string(std::string_view text) {
    auto repaired = repair_utf8(text);
    for (auto at = repaired.find('\0'); at != std::string::npos; at = repaired.find('\0', at)) {
        repaired.replace(at, 1, kReplacement);
    }
    return repaired;
}

// jsonb writes 1e131071 out in full and refuses what is beyond; nobody needs either.
bool storable_number(const std::string& text) {
    constexpr std::size_t kMaxText = 1'000;
    constexpr std::int64_t kMaxExponent = 400;
    if (text.size() > kMaxText) return false;
    const auto decimal = parse_decimal(text);
    if (decimal.huge || decimal.exponent > kMaxExponent || decimal.exponent < -kMaxExponent) {
        return false;
    }
    // Zero keeps the scale it was written with, so its exponent matters although its value is 0.
    const auto e = text.find_first_of("eE");
    return !decimal.digits.empty() || e == std::string::npos;
}

Json cleaned(Json value) {
    if (const auto* number = value.as_number()) {
        if (!storable_number(number->text)) {
            return parse_decimal(number->text).digits.empty() ? Json(0) : Json(number->text);
        }
    } else if (const auto* string = value.as_string()) {
        return storable_string(*string);
    } else if (auto* array = value.as_array()) {
        for (auto& item : *array) item = cleaned(std::move(item));
    } else if (auto* object = value.as_object()) {
        for (auto& [key, item] : *object) {
            key = storable_string(key);
            item = cleaned(std::move(item));
        }
    }
    return value;
}

}  // namespace

const Json* Json::find(std::string_view key) const {
    const auto* object = as_object();
    if (object == nullptr) return nullptr;
    for (const auto& member : *object) {
        if (member.first == key) return &member.second;
    }
    return nullptr;
}

void Json::set(std::string key, Json value) {
    if (is_null()) value_ = Object{};
    auto& object = std::get<Object>(value_);
    for (auto& member : object) {
        if (member.first == key) {
            member.second = std::move(value);
            return;
        }
    }
    object.emplace_back(std::move(key), std::move(value));
}

const Json* Json::at_pointer(std::string_view pointer) const {
    const Json* here = this;
    std::string token;
    while (!pointer.empty()) {
        if (pointer[0] != '/') return nullptr;
        const auto end = std::min(pointer.find('/', 1), pointer.size());
        if (!decode_token(pointer.substr(1, end - 1), token)) return nullptr;
        pointer.remove_prefix(end);
        const auto* array = here->as_array();
        here = array != nullptr ? element(*array, token) : here->find(token);
        if (here == nullptr) return nullptr;
    }
    return here;
}

bool Json::equals(const Json& other) const {
    if (value_.index() != other.value_.index()) return false;
    if (const auto* b = as_bool()) return *b == *other.as_bool();
    if (const auto* number = as_number()) return equal_numbers(*number, *other.as_number());
    if (const auto* string = as_string()) return *string == *other.as_string();
    if (const auto* array = as_array()) return equal_arrays(*array, *other.as_array());
    if (const auto* object = as_object()) return equal_objects(*object, *other.as_object());
    return true;
}

std::string to_text(const Json& value) {
    std::string out;
    append(out, value);
    return out;
}

Json storable(Json value, std::size_t max_bytes) {
    auto clean = cleaned(std::move(value));
    const auto text = to_text(clean);
    if (text.size() <= max_bytes) return clean;
    // Escaping makes a byte six at most; the head is for people, who read the first lines only.
    const auto head = std::min<std::size_t>(max_bytes / 8, 1'024);
    Json cut;
    cut.set("truncated", true);
    cut.set("sha256", sha256_hex(text));
    cut.set("bytes", static_cast<std::int64_t>(text.size()));
    cut.set("head", utf8_head(text, head));
    return cut;
}

}  // namespace outbox
