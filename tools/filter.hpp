#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "outbox/json.hpp"
#include "tools/rendered.hpp"

namespace tools {

enum class FilterId {
    default_,  // the value when there is none, or null
    optional,  // no value: the member, item or parameter is left out
    json,      // as JSON text
    lower,     // ASCII letters only
    upper,
    trim,      // white space of ECMAScript's trim()
    truncate,  // to n characters
    urlencode,
    base64,
    base64url,
    hex,
    uuid,  // of the digest, see encoding.hpp
    base32hex,
    sha256,  // lower-case hex
    short_,  // of the digest
    iso8601,
    epoch,        // seconds since 1970
    add_seconds,  // to a time, or to a number
    join,         // an array of scalars
    jql,
    ical_text,
    xml,
    raw,  // as it is, said aloud
};

enum class FilterArgument { none, literal, integer, text };

struct FilterKind {
    FilterId id;
    std::string_view name;
    FilterArgument argument;
    bool escapes = false;  // may stand last in text: and stdin:
};
[[nodiscard]] const std::vector<FilterKind>& filter_kinds();

struct Filter {
    FilterId id = FilterId::raw;
    outbox::Json literal;      // default
    std::int64_t integer = 0;  // truncate, add_seconds
    std::string text;          // join
};

// Applies any filter but default and optional, which the expression itself handles.
[[nodiscard]] Rendered<outbox::Json> apply_filter(const Filter& filter, const outbox::Json& value);

// A scalar as text; empty for null, arrays and objects.
[[nodiscard]] std::optional<std::string> scalar_text(const outbox::Json& value);

}  // namespace tools
