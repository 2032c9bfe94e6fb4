#include "tests/support/random_json.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <utility>

namespace tests {

namespace {

// What trim() takes off.
constexpr std::u32string_view kBlank =
    U"\u0009\u000A\u000B\u000C\u000D\u0020\u00A0\u1680\u2000\u2005\u200A\u2028\u2029\u202F\u205F"
    U"\u3000\uFEFF";
// Characters on the borders: escapes, lookalikes of white space, both sides of the surrogates, the
// supplementary planes, whose order in UTF-16 is not that in UTF-8.
constexpr std::u32string_view kOdd =
    U"\u0001\u0008\u001c\u001f\"\\/\u007f\u0080\u0085\u180e\u200b\u2060\u00e9\u0301\u20ac\ud7ff"
    U"\ue000\ufb33\ufffd\ufffe\uffff\U00010000\U0001F600\U0001F468\U000E0001\U0010FFFF";

void append_utf8(std::string& out, char32_t c) {
    auto tail = [&](int shift) { out += static_cast<char>(0x80U | ((c >> shift) & 0x3FU)); };
    if (c < 0x80) {
        out += static_cast<char>(c);
    } else if (c < 0x800) {
        out += static_cast<char>(0xC0U | (c >> 6U));
        tail(0);
    } else if (c < 0x10000) {
        out += static_cast<char>(0xE0U | (c >> 12U));
        tail(6);
        tail(0);
    } else {
        out += static_cast<char>(0xF0U | (c >> 18U));
        tail(12);
        tail(6);
        tail(0);
    }
}

void append_unit(std::string& out, char32_t unit, bool upper) {
    const char* digits = upper ? "0123456789ABCDEF" : "0123456789abcdef";
    out += "\\u";
    for (int shift = 12; shift >= 0; shift -= 4) out += digits[(unit >> shift) & 0xFU];
}

bool is_surrogate(char32_t c) {
    return c >= 0xD800 && c <= 0xDFFF;
}

}  // namespace

RandomJson::RandomJson(std::uint64_t value_seed, std::uint64_t spelling_seed, Numbers numbers)
    : value_(value_seed), spelling_(spelling_seed), numbers_(numbers) {
    hostile_ = value_below(40) == 0 && numbers == Numbers::any;
}

std::string RandomJson::name() {
    std::string text;
    for (auto n = 1 + value_below(12); n > 0; --n) {
        const auto pick = value_below(4);
        append_utf8(
            text,
            pick == 0   ? kOdd[value_below(kOdd.size())]
            : pick == 1 ? kBlank[value_below(kBlank.size())]
                        : U'a' + static_cast<char32_t>(value_below(26))
        );
    }
    return text;
}

std::string RandomJson::object() {
    if (numbers_ == Numbers::any && value_below(400) == 0) return chain();
    return object(1);
}

// As deep as the daemon and the key allow, a level less and more.
std::string RandomJson::chain() {
    const auto levels = 510 + value_below(4);
    std::string text = "{\"deep\":";
    for (std::uint64_t i = 1; i < levels; ++i) text += i % 2 == 0 ? "{\"k\":" : "[";
    text += levels % 2 == 0 ? "1" : "{}";
    for (auto i = levels; --i > 0;) text += i % 2 == 0 ? "}" : "]";
    return text + "}";
}

std::string RandomJson::value(int depth) {
    switch (value_below(depth > 5 ? 8 : 11)) {
        case 0:
            return "null";
        case 1:
            return value_below(2) == 0 ? "true" : "false";
        case 2:
        case 3:
        case 4: {
            auto text = characters(8);
            // Padding that the key does not see.
            for (auto n = spelling_below(8); n > 5; --n) {
                const auto space = kBlank[spelling_below(kBlank.size())];
                if (spelling_below(2) == 0) {
                    text.insert(text.begin(), space);
                } else {
                    text += space;
                }
            }
            return spell(text);
        }
        case 5:
        case 6:
        case 7:
            return number();
        case 8:
            return array(depth + 1);
        default:
            return object(depth + 1);
    }
}

std::string RandomJson::object(int depth) {
    std::vector<std::pair<std::u32string, std::string>> members;
    const auto count = value_below(depth == 1 ? 8 : 5);
    while (members.size() < count) {
        auto key = characters(3);
        // Its own later twin would win: only distinct keys say something.
        bool known = false;
        for (const auto& member : members) known = known || member.first == key;
        auto text = value(depth);
        if (!known) members.emplace_back(std::move(key), std::move(text));
    }
    for (auto i = members.size(); i > 1; --i) {
        std::swap(members[i - 1], members[spelling_below(i)]);
    }
    std::string text = "{" + blank();
    for (std::size_t i = 0; i < members.size(); ++i) {
        if (i > 0) text += "," + blank();
        if (spelling_below(12) == 0) {  // an earlier twin, which counts for nothing
            text += spell(members[i].first) + blank() + ":" + blank() + "[\"loses\"]" + blank() +
                    "," + blank();
        }
        text += spell(members[i].first) + blank() + ":" + blank() + members[i].second + blank();
    }
    return text + "}";
}

std::string RandomJson::array(int depth) {
    std::string text = "[" + blank();
    for (auto n = value_below(5); n > 0; --n) {
        text += value(depth) + blank() + (n > 1 ? "," + blank() : "");
    }
    return text + "]";
}

std::u32string RandomJson::characters(std::uint64_t at_most) {
    std::u32string text;
    for (auto n = value_below(at_most + 1); n > 0; --n) {
        switch (value_below(8)) {
            case 0:
                text += kBlank[value_below(kBlank.size())];
                break;
            case 1:
            case 2:
            case 3:
                text += kOdd[value_below(kOdd.size())];
                break;
            case 4: {
                auto c = static_cast<char32_t>(1 + value_below(0x10FFFF));
                text += is_surrogate(c) ? U'?' : c;
                break;
            }
            default:
                text += U'a' + static_cast<char32_t>(value_below(3));
        }
    }
    if (hostile_ && value_below(20) == 0) text += value_below(2) == 0 ? U'\0' : char32_t{0xD800};
    return text;
}

std::string RandomJson::spell(const std::u32string& text) {
    constexpr std::u32string_view kShort = U"\b\f\n\r\t\"\\/";
    std::string out = "\"";
    for (const char32_t c : text) {
        const bool must = c < 0x20 || c == U'"' || c == U'\\' || is_surrogate(c);
        const auto place = kShort.find(c);
        if (!must && spelling_below(4) != 0) {
            append_utf8(out, c);
        } else if (place != kShort.npos && spelling_below(2) == 0) {
            out += '\\';
            out += "bfnrt\"\\/"[place];
        } else if (c >= 0x10000) {
            append_unit(out, 0xD800 + ((c - 0x10000) >> 10U), spelling_below(2) == 0);
            append_unit(out, 0xDC00 + ((c - 0x10000) & 0x3FFU), spelling_below(2) == 0);
        } else {
            append_unit(out, c, spelling_below(2) == 0);
        }
    }
    return out + "\"";
}

std::string RandomJson::blank() {
    std::string text;
    while (spelling_below(6) == 0) text += " \t\n\r"[spelling_below(4)];
    return text;
}

std::string RandomJson::number() {
    auto number =
        numbers_ == Numbers::doubles || value_below(2) == 0 ? double_number() : exact_number();
    number.negative = value_below(2) == 0;
    return spell(number);
}

std::string RandomJson::random_digits(std::uint64_t count) {
    std::string digits;
    while (digits.size() < count) digits += static_cast<char>('0' + value_below(10));
    return digits;
}

// The shortest digits of a double: any bits, denormals, whole numbers, few digits, edges.
RandomJson::Digits RandomJson::double_number() {
    double value = 0;
    switch (value_below(6)) {
        case 0:
            value = static_cast<double>(value_below(2000)) / 4;
            break;
        case 1: {
            auto bits = value_below(4) == 0 ? value_() >> 12U : value_() & 0x7FFFFFFFFFFFFFFFU;
            std::memcpy(&value, &bits, sizeof value);
            if (!std::isfinite(value)) value = 1.7976931348623157e308;
            break;
        }
        case 2:
            value = std::ldexp(1.0, static_cast<int>(value_below(2098)) - 1074);
            break;
        case 3:
            value = 9007199254740992.0 - 4 + static_cast<double>(value_below(9));
            break;
        case 4: {
            constexpr std::array kEdges{
                0.0,
                1e21,
                1e20,
                999999999999999900000.0,
                1e-6,
                1e-7,
                9.999999999999997e-7,
                1e23,
                9.999999999999999e22,
                5e-324,
                2.2250738585072014e-308,
                2.225073858507201e-308,
                1.7976931348623157e308,
                1e300,
                0.1,
                0.30000000000000004,
                295147905179352830000.0
            };
            value = kEdges[value_below(kEdges.size())];
            break;
        }
        default: {
            auto text = random_digits(1 + value_below(17)) + "e" +
                        std::to_string(static_cast<int>(value_below(60)) - 40);
            std::from_chars(text.data(), text.data() + text.size(), value);
        }
    }
    std::array<char, 32> text{};
    const auto end = std::to_chars(text.begin(), text.end(), value, std::chars_format::scientific);
    std::string_view shortest(text.data(), end.ptr);
    const auto e = shortest.find('e');
    Digits number{
        false,
        std::string(shortest.substr(0, 1)),
        std::stol(std::string(shortest.substr(e + 1))) + 1
    };
    if (e > 2) number.digits += shortest.substr(2, e - 2);
    return number;
}

// What a double would lose: a neighbour of one, many digits, exponents up to the limit. A hostile
// document goes beyond.
RandomJson::Digits RandomJson::exact_number() {
    switch (value_below(4)) {
        case 0: {
            auto number = double_number();
            number.digits.resize(17, '0');
            number.digits.back() = static_cast<char>('0' + value_below(10));
            return number;
        }
        case 1: {
            const auto count = 1 + value_below(hostile_ ? 103 : 100);
            return {false, "7" + random_digits(count - 1), static_cast<long>(value_below(60)) - 30};
        }
        case 2: {
            const auto count = 1 + value_below(20);
            const auto limit = hostile_ ? 403 : 400;
            const auto exponent = limit - static_cast<long>(value_below(8));
            return {
                false,
                "3" + random_digits(count - 1),
                (value_below(2) == 0 ? exponent : -exponent) + 1
            };
        }
        default:
            return {
                false, "9" + random_digits(value_below(22)), static_cast<long>(value_below(40)) - 15
            };
    }
}

// The same value in one of its many spellings.
std::string RandomJson::spell(const Digits& number) {
    auto digits = number.digits;
    auto exponent = number.exponent;
    if (spelling_below(3) == 0) digits += std::string(spelling_below(4), '0');
    // How many digits stand before the point; the exponent makes up for it.
    auto whole = static_cast<long>(spelling_below(digits.size() + 3)) - 1;
    const bool plain = exponent >= -30 && exponent <= 30 && spelling_below(3) != 0;
    if (plain) whole = exponent;
    std::string text = number.negative ? "-" : "";
    if (whole <= 0) {
        text += "0." + std::string(static_cast<std::size_t>(-whole), '0') + digits;
    } else {
        if (static_cast<std::size_t>(whole) > digits.size()) {
            digits.resize(static_cast<std::size_t>(whole), '0');
        }
        auto head = digits.substr(0, static_cast<std::size_t>(whole));
        head.erase(0, std::min(head.find_first_not_of('0'), head.size() - 1));
        text += head;
        if (head.size() < digits.size() && static_cast<std::size_t>(whole) < digits.size()) {
            text += "." + digits.substr(static_cast<std::size_t>(whole));
        } else if (spelling_below(3) == 0) {
            text += ".0";
        }
    }
    exponent -= whole;
    if (exponent == 0 && spelling_below(4) != 0) return text;
    text += spelling_below(2) == 0 ? "e" : "E";
    if (exponent >= 0 && spelling_below(2) == 0) text += "+";
    return text + std::to_string(exponent);
}

}  // namespace tests
