#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "outbox/decimal.hpp"
#include "outbox/json.hpp"

namespace re2 {
class RE2;
}

namespace tools {

// The keywords of JSON Schema that look at one value alone and must be exact or linear, which the
// library's are not: numbers are compared as decimals of any length, regular expressions are RE2's,
// and whether items are unique is not found out by comparing each with each.
struct LeafCheck {
    // How a keyword says no: what was expected, without the value (it may be a secret).
    using Complaint = std::optional<std::string>;

    struct Pattern {
        std::shared_ptr<const re2::RE2> regex;
        std::string expected;  // to match "^[a-z]+$"; a date (2026-11-30)
    };
    struct Bound {
        outbox::Decimal limit;
        std::string text;
    };

    bool never = false;                         // the schema false
    std::vector<std::string> types;             // any of them
    std::optional<outbox::Json::Array> one_of;  // enum, const
    std::string one_of_text;                    // how the message shows them
    std::optional<Bound> minimum;
    std::optional<Bound> maximum;
    std::optional<Bound> above;  // exclusiveMinimum
    std::optional<Bound> below;  // exclusiveMaximum
    std::optional<Bound> multiple_of;
    std::vector<Pattern> patterns;
    bool unique = false;

    [[nodiscard]] bool empty() const;
    [[nodiscard]] Complaint check(const outbox::Json& value) const;

 private:
    [[nodiscard]] Complaint check_number(std::string_view text) const;
};

// Digits that multipleOf may have: the remainder is taken in 64 bits, whatever the value's length.
inline constexpr std::size_t kMultipleDigits = 18;

// -1, 0, 1 as a is less than, equal to, greater than b.
[[nodiscard]] int compare(const outbox::Decimal& a, const outbox::Decimal& b);
[[nodiscard]] bool is_multiple(const outbox::Decimal& value, const outbox::Decimal& of);
[[nodiscard]] bool is_integer(const outbox::Decimal& value);

// The regular expression of a format; empty: not one of those that are checked.
[[nodiscard]] std::optional<LeafCheck::Pattern> format_pattern(std::string_view format);
[[nodiscard]] const std::vector<std::string>& checked_formats();

// Compiles an expression as RE2 does; on failure `error` says why.
[[nodiscard]] std::shared_ptr<const re2::RE2> compile_regex(
    const std::string& text, std::string& error
);

}  // namespace tools
