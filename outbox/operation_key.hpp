#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "outbox/json.hpp"

// The derived operation id (contract/sql.md), equal to outbox.operation_key() in SQL.
namespace outbox {

struct KeyError {
    std::string message;  // what is refused and the way out
};

struct OperationKey {
    std::string key;                // lower-case hex SHA-256; empty on error
    std::string canonical;          // the text that was hashed
    std::optional<KeyError> error;  // a number beyond 100 significant digits or exponent ±400, …
};

[[nodiscard]] OperationKey operation_key(
    std::string_view tool, const Json& arguments, std::string_view run_id, int occurrence = 1
);

// RFC 8785 with exact decimals where a double would lose digits; strings trimmed as ECMAScript
// trim() does when trim_strings is set (string values only, never object keys).
struct Canonical {
    std::string text;
    std::optional<KeyError> error;
};
[[nodiscard]] Canonical canonical_json(const Json& value, bool trim_strings);

// Canonical form of one JSON number text; the building block of both.
[[nodiscard]] Canonical canonical_number(std::string_view number);

}  // namespace outbox
