#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/value.hpp"
#include "tools/leaf_check.hpp"

namespace tools {

// What a keyword of JSON Schema holds, which is how it is compiled.
enum class KeywordKind {
    annotation,  // says nothing about the value: title, default, …
    dialect,     // $schema
    leaf,        // decided by the value alone: type, maximum, pattern, …
    count,       // a whole number: maxLength, minItems, …
    schema,      // one sub-schema: not, additionalProperties, …
    schemas,     // a list of them: allOf, …
    named,       // a mapping of them: properties, $defs, …
    items,       // items, prefixItems, additionalItems
    required,
    reference,    // $ref
    unsupported,  // it would change what fits, and nothing here can tell: refused, never ignored
    unknown,
};
[[nodiscard]] KeywordKind keyword_kind(std::string_view keyword);
[[nodiscard]] std::string unsupported_hint(std::string_view keyword);
[[nodiscard]] const std::vector<std::string>& known_keywords();

// Whether the sub-schema is for the same value, not for a part of it.
[[nodiscard]] bool applies_in_place(std::string_view keyword);

struct LeafProblem {
    std::string message;
    std::string hint;
    bool warning = false;
};
// Reads a keyword of the kind `leaf` into the check.
[[nodiscard]] std::optional<LeafProblem> read_leaf(
    const config::Value::Member& member, LeafCheck& into
);

}  // namespace tools
