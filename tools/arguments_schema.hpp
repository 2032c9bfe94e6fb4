#pragma once

#include <memory>
#include <optional>
#include <string>

#include "config/diagnostics.hpp"
#include "config/value.hpp"
#include "outbox/json.hpp"

namespace tools {

// The JSON Schema of a tool's arguments. Immutable; used on one thread at a time.
class ArgumentsSchema {
 public:
    // Reports every mistake of the schema at its place; null when there was one.
    [[nodiscard]] static std::unique_ptr<ArgumentsSchema> compile(
        const config::Value& schema, config::Diagnostics& diagnostics
    );
    ~ArgumentsSchema();
    ArgumentsSchema(const ArgumentsSchema&) = delete;
    ArgumentsSchema& operator=(const ArgumentsSchema&) = delete;

    // What does not fit, one sentence with the JSON Pointers of the first places and what was
    // expected there, at most kMaxMessage bytes; empty when all is well. The values themselves are
    // not quoted: they may be what redact: hides. Bounded in time and stack (SchemaWork); what
    // cannot be checked within the bounds does not fit.
    [[nodiscard]] std::optional<std::string> violation(const outbox::Json& arguments) const;
    static constexpr std::size_t kMaxMessage = 600;

 private:
    struct Compiled;
    explicit ArgumentsSchema(std::unique_ptr<Compiled> compiled);
    std::unique_ptr<Compiled> compiled_;
};

}  // namespace tools
