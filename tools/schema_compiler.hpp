#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "config/diagnostics.hpp"
#include "config/value.hpp"
#include "outbox/json.hpp"
#include "tools/leaf_check.hpp"

namespace tools {

// A JSON Schema as the validator gets it: every sub-schema is an entry of `definitions`, flat, and
// refers to others by {"$ref": "#/definitions/N"}; 0 is the schema itself. What a value alone
// decides is a LeafCheck, named by its index under kLeafKeyword.
struct FlatSchema {
    outbox::Json document;
    std::vector<LeafCheck> leaves;
};
inline constexpr const char* kLeafKeyword = "outboxdLeaf";

// Checks the whole schema and reports every mistake at its place; empty when there was one.
// The vocabulary is draft 7's, and what later drafts renamed; $ref stays inside the schema.
[[nodiscard]] std::optional<FlatSchema> compile_schema(
    const config::Value& schema, config::Diagnostics& diagnostics
);

}  // namespace tools
