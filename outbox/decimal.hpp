#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace outbox {

// The exact value of a JSON number: ±0.digits × 10^exponent, without expanding anything.
struct Decimal {
    bool negative = false;
    std::string digits;         // neither leading nor trailing zeros; empty: zero
    std::int64_t exponent = 0;  // 0 for zero
    bool huge = false;          // the written exponent is beyond any use (more than 10^15)

    // Zero has no sign. Not for huge ones: their exponent is not known.
    friend bool operator==(const Decimal&, const Decimal&) = default;
};

// `number` must be a valid JSON number.
[[nodiscard]] Decimal parse_decimal(std::string_view number);

// The value in plain notation, without exponent and without superfluous zeros.
[[nodiscard]] std::string plain_notation(const Decimal& decimal);

}  // namespace outbox
