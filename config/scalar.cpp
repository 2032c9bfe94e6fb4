#include "config/scalar.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>

namespace config {
namespace {

bool digit(char c) {
    return c >= '0' && c <= '9';
}

std::size_t digits(std::string_view text, std::size_t from) {
    while (from < text.size() && digit(text[from])) ++from;
    return from;
}

// [-+]? ( \. [0-9]+ | [0-9]+ ( \. [0-9]* )? ) ( [eE] [-+]? [0-9]+ )?, in parts.
struct Decimal {
    bool negative = false;
    std::string_view whole, fraction, exponent;
};

std::optional<Decimal> parse_decimal(std::string_view text) {
    Decimal d;
    if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
        d.negative = text[0] == '-';
        text.remove_prefix(1);
    }
    auto at = digits(text, 0);
    d.whole = text.substr(0, at);
    if (at < text.size() && text[at] == '.') {
        const auto end = digits(text, at + 1);
        d.fraction = text.substr(at + 1, end - at - 1);
        at = end;
    }
    if (d.whole.empty() && d.fraction.empty()) return std::nullopt;
    if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
        auto end = at + 1;
        if (end < text.size() && (text[end] == '-' || text[end] == '+')) ++end;
        const auto first = end;
        end = digits(text, end);
        if (end == first) return std::nullopt;
        d.exponent = text.substr(at, end - at);
        at = end;
    }
    if (at != text.size()) return std::nullopt;
    return d;
}

// 0o17 and 0x1f; empty when it is neither or does not fit.
std::optional<std::string> based_integer(std::string_view text) {
    if (text.size() < 3 || text[0] != '0' || (text[1] != 'o' && text[1] != 'x'))
        return std::nullopt;
    std::uint64_t number = 0;
    const auto [end, error] = std::from_chars(
        text.data() + 2, text.data() + text.size(), number, text[1] == 'o' ? 8 : 16
    );
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    return std::to_string(number);
}

bool is_infinity_or_nan(std::string_view text) {
    if (text == ".nan" || text == ".NaN" || text == ".NAN") return true;
    if (!text.empty() && (text[0] == '-' || text[0] == '+')) text.remove_prefix(1);
    return text == ".inf" || text == ".Inf" || text == ".INF";
}

void become_number(Value& value, std::string text) {
    value.kind = Value::Kind::number;
    value.text = std::move(text);
}

}  // namespace

void type_plain_scalar(Value& value, Diagnostics& diagnostics) {
    const std::string_view text = value.text;
    value.kind = Value::Kind::string;
    if (text == "true" || text == "True" || text == "TRUE") {
        value.kind = Value::Kind::boolean;
        value.text = "true";
    } else if (text == "false" || text == "False" || text == "FALSE") {
        value.kind = Value::Kind::boolean;
        value.text = "false";
    } else if (text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL") {
        value.kind = Value::Kind::null;
        value.text.clear();
    } else if (is_infinity_or_nan(text)) {
        diagnostics.error(
            value.mark,
            fmt::format("{} is no number that JSON can hold", text),
            "quote it if it is meant as text"
        );
    } else if (auto based = based_integer(text)) {
        become_number(value, *based);
    } else if (auto d = parse_decimal(text)) {
        if (d->whole.size() > 1 && d->whole[0] == '0') {
            diagnostics.error(
                value.mark,
                fmt::format("{}: a number with leading zeros", text),
                "quote it to keep it as text, or leave the zeros out"
            );
            return;
        }
        become_number(
            value,
            fmt::format(
                "{}{}{}{}{}",
                d->negative ? "-" : "",
                d->whole.empty() ? "0" : d->whole,
                d->fraction.empty() ? "" : ".",
                d->fraction,
                d->exponent
            )
        );
    }
}

bool is_jsonb_number(std::string_view text) {
    constexpr std::int64_t kMaxWhole = 131'072;
    constexpr std::int64_t kMaxScale = 16'383;
    const auto d = parse_decimal(text);
    if (!d) return false;
    std::int64_t exponent = 0;
    if (!d->exponent.empty()) {
        auto digits_of = d->exponent.substr(1);
        if (digits_of.front() == '+') digits_of.remove_prefix(1);
        const auto* last = digits_of.data() + digits_of.size();
        if (std::from_chars(digits_of.data(), last, exponent).ec != std::errc()) return false;
        if (exponent > kMaxWhole || exponent < -2 * kMaxWhole) return false;
    }
    const auto whole = static_cast<std::int64_t>(d->whole.size()) + exponent;
    const auto scale = static_cast<std::int64_t>(d->fraction.size()) - exponent;
    return whole <= kMaxWhole && scale <= kMaxScale;
}

bool is_json_number(std::string_view text) {
    const auto d = parse_decimal(text);
    if (!d || d->whole.empty() || text[0] == '+') return false;
    if (d->whole.size() > 1 && d->whole[0] == '0') return false;
    return text.find('.') == std::string_view::npos || !d->fraction.empty();
}

}  // namespace config
