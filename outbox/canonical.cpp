#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <system_error>

#include "outbox/decimal.hpp"
#include "outbox/operation_key.hpp"
#include "outbox/utf8.hpp"

namespace outbox {
namespace {

constexpr std::size_t kMaxDigits = 100;
constexpr std::int64_t kMaxExponent = 400;

Canonical refuse(std::string message) {
    return {.text = {}, .error = KeyError{std::move(message)}};
}

// The number the way ECMAScript's Number.prototype.toString lays out the same digits
// (RFC 8785, 3.2.2.3): plain between 1e-6 and 1e21, else one digit, the rest, and an exponent.
std::string ecmascript_notation(const Decimal& decimal) {
    if (decimal.exponent > -6 && decimal.exponent <= 21) return plain_notation(decimal);
    std::string text = decimal.negative ? "-" : "";
    text += decimal.digits[0];
    if (decimal.digits.size() > 1) text += "." + decimal.digits.substr(1);
    const auto exponent = decimal.exponent - 1;
    text += exponent < 0 ? "e-" : "e+";
    return text + std::to_string(std::abs(exponent));
}

// Whether the exact value is the shortest form of some double: then RFC 8785 loses nothing.
bool is_shortest_double(const Decimal& decimal) {
    constexpr std::size_t kMaxShortest = 17;
    if (decimal.digits.size() > kMaxShortest) return false;
    const auto text =
        (decimal.negative ? "-0." : "0.") + decimal.digits + "e" + std::to_string(decimal.exponent);
    double value = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
    if (parsed.ec != std::errc{} || !std::isfinite(value) || value == 0) return false;
    std::array<char, 32> shortest{};
    const auto written = std::to_chars(
        shortest.data(), shortest.data() + shortest.size(), value, std::chars_format::scientific
    );
    return parse_decimal(std::string_view(shortest.data(), written.ptr)) == decimal;
}

// What ECMAScript's trim() takes off: WhiteSpace and LineTerminator.
bool is_trimmed(char32_t c) {
    return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0xA0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
           c == 0x205F || c == 0x3000 || c == 0xFEFF;
}

std::string_view trim(std::string_view text) {
    while (!text.empty() && is_trimmed(code_point(text, 0))) {
        text.remove_prefix(utf8_sequence(text, 0));
    }
    while (!text.empty()) {
        auto last = text.size() - 1;
        while ((static_cast<unsigned char>(text[last]) & 0xC0U) == 0x80U) --last;
        if (!is_trimmed(code_point(text, last))) break;
        text = text.substr(0, last);
    }
    return text;
}

// Order of UTF-16 code units, as RFC 8785 sorts keys: it differs from UTF-8's where a character
// beyond the BMP (a surrogate pair, 0xD800…) meets one of U+E000 to U+FFFF.
bool utf16_less(const Json::Member* a, const Json::Member* b) {
    const std::string_view left = a->first;
    const std::string_view right = b->first;
    auto [l, r] = std::mismatch(left.begin(), left.end(), right.begin(), right.end());
    if (l == left.end() || r == right.end()) return left.size() < right.size();
    const auto leads = [](char c) {
        const auto lead = static_cast<unsigned char>(c);
        // Four-byte sequences sort as 0xD800: after everything below U+E000, before the rest.
        const unsigned rank = lead >= 0xF0 ? 1 : lead >= 0xEE ? 2 : 0;
        return std::pair{rank, lead};
    };
    return leads(*l) < leads(*r);
}

class Writer {
 public:
    explicit Writer(bool trim_strings) : trim_(trim_strings) {}

    void write(const Json& value) {
        if (const auto* number = value.as_number()) {
            auto canonical = canonical_number(number->text);
            out_.text += canonical.text;
            if (canonical.error && !out_.error) out_.error = std::move(canonical.error);
        } else if (const auto* string = value.as_string()) {
            write_string(trim_ ? trim(*string) : std::string_view(*string));
        } else if (const auto* array = value.as_array()) {
            out_.text += '[';
            for (const auto& item : *array) {
                if (&item != array->data()) out_.text += ',';
                write(item);
            }
            out_.text += ']';
        } else if (const auto* object = value.as_object()) {
            write_object(*object);
        } else {
            out_.text += to_text(value);  // null, true, false
        }
    }
    Canonical take() {
        if (out_.error) out_.text.clear();
        return std::move(out_);
    }

 private:
    void write_object(const Json::Object& object) {
        std::vector<const Json::Member*> members;
        members.reserve(object.size());
        for (const auto& member : object) members.push_back(&member);
        std::sort(members.begin(), members.end(), utf16_less);
        out_.text += '{';
        for (const auto* member : members) {
            if (member != members.front()) out_.text += ',';
            write_string(member->first);
            out_.text += ':';
            write(member->second);
        }
        out_.text += '}';
    }
    // to_text escapes exactly what RFC 8785 escapes.
    void write_string(std::string_view text) {
        if (text.find('\0') != text.npos && !out_.error) {
            out_.error = KeyError{"a string holds U+0000, which jsonb cannot: leave it out"};
        }
        out_.text += to_text(Json(text));
    }

    bool trim_;
    Canonical out_;
};

}  // namespace

Canonical canonical_number(std::string_view number) {
    const auto decimal = parse_decimal(number);
    if (decimal.digits.empty()) return {.text = "0", .error = std::nullopt};
    if (decimal.digits.size() > kMaxDigits) {
        return refuse("a number has more than 100 significant digits: send it as a string");
    }
    // The exponent of the scientific form: one digit stands before the point.
    const auto exponent = decimal.exponent - 1;
    if (decimal.huge || exponent > kMaxExponent || exponent < -kMaxExponent) {
        return refuse("a number has an exponent beyond ±400: send it as a string");
    }
    auto text =
        is_shortest_double(decimal) ? ecmascript_notation(decimal) : plain_notation(decimal);
    return {.text = std::move(text), .error = std::nullopt};
}

Canonical canonical_json(const Json& value, bool trim_strings) {
    Writer writer(trim_strings);
    writer.write(value);
    return writer.take();
}

}  // namespace outbox
