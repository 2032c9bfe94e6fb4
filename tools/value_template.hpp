#pragma once

#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "config/value.hpp"
#include "outbox/json.hpp"
#include "tools/template.hpp"

namespace tools {

// A JSON value of the configuration whose strings may be templates. JSON is built as values, so
// nothing needs escaping: an argument can fill a value, never add a member.
class ValueTemplate {
 public:
    static ValueTemplate compile(const config::Value& value, CompileContext& context);

    // Nothing: the whole value was one optional template without a value.
    [[nodiscard]] Rendered<std::optional<outbox::Json>> render(const Scope& scope) const;
    [[nodiscard]] bool optional() const;

 private:
    using Items = std::vector<ValueTemplate>;
    using Members = std::vector<std::pair<std::string, ValueTemplate>>;
    std::variant<outbox::Json, Template, Items, Members> node_{outbox::Json{}};
};

// A scalar of the configuration as JSON; a string stays a string. A number that is no JSON number
// (0x1F, .5) is reported and null.
[[nodiscard]] outbox::Json scalar_json(
    const config::Value& value, config::Diagnostics& diagnostics
);

// The whole value as JSON text, without templates: for JSON Schema and hashes.
[[nodiscard]] std::string plain_json_text(const config::Value& value);

}  // namespace tools
