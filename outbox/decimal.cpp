#include "outbox/decimal.hpp"

#include <charconv>
#include <cstddef>

namespace outbox {
namespace {

constexpr std::int64_t kHugeExponent = 1'000'000'000'000'000;

// What stands behind the e; a value that does not fit counts as huge.
std::int64_t parse_exponent(std::string_view text) {
    if (text.starts_with('+')) text.remove_prefix(1);
    std::int64_t exponent = 0;
    const auto parsed = std::from_chars(text.data(), text.data() + text.size(), exponent);
    if (parsed.ec == std::errc::result_out_of_range) {
        return text.starts_with('-') ? -kHugeExponent - 1 : kHugeExponent + 1;
    }
    return exponent;
}

}  // namespace

Decimal parse_decimal(std::string_view number) {
    Decimal decimal;
    if (number.starts_with('-')) {
        decimal.negative = true;
        number.remove_prefix(1);
    }
    std::int64_t exponent = 0;
    if (const auto e = number.find_first_of("eE"); e != std::string_view::npos) {
        exponent = parse_exponent(number.substr(e + 1));
        number = number.substr(0, e);
    }
    auto point = number.find('.');
    if (point == std::string_view::npos) point = number.size();
    decimal.digits.assign(number.substr(0, point));
    if (point < number.size()) decimal.digits += number.substr(point + 1);

    const auto first = decimal.digits.find_first_not_of('0');
    if (first == std::string::npos) return {};  // zero, whatever its sign and exponent say
    decimal.huge = exponent > kHugeExponent || exponent < -kHugeExponent;
    decimal.exponent =
        exponent + static_cast<std::int64_t>(point) - static_cast<std::int64_t>(first);
    const auto last = decimal.digits.find_last_not_of('0');
    decimal.digits = decimal.digits.substr(first, last - first + 1);
    return decimal;
}

std::string plain_notation(const Decimal& decimal) {
    if (decimal.digits.empty()) return "0";
    std::string text = decimal.negative ? "-" : "";
    const auto length = static_cast<std::int64_t>(decimal.digits.size());
    if (decimal.exponent <= 0) {
        text += "0.";
        text.append(static_cast<std::size_t>(-decimal.exponent), '0');
        text += decimal.digits;
    } else if (decimal.exponent >= length) {
        text += decimal.digits;
        text.append(static_cast<std::size_t>(decimal.exponent - length), '0');
    } else {
        const auto whole = static_cast<std::size_t>(decimal.exponent);
        text += decimal.digits.substr(0, whole);
        text += '.';
        text += decimal.digits.substr(whole);
    }
    return text;
}

}  // namespace outbox
