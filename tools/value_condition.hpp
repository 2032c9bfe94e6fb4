#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "config/value.hpp"
#include "outbox/json.hpp"
#include "tools/value_template.hpp"

namespace re2 {
class RE2;
}

namespace tools {

// One `cond`: a scalar (equal, JSON types kept), a list (any of), or a mapping of exists, contains,
// matches and not, of which all must hold.
class ValueCondition {
 public:
    ValueCondition();
    ~ValueCondition();
    ValueCondition(ValueCondition&&) noexcept;
    ValueCondition& operator=(ValueCondition&&) noexcept;

    static ValueCondition compile(const config::Value& value, CompileContext& context);

    // nullptr: there is no such value. A template that cannot be rendered makes it false; check()
    // finds that out before anything is sent.
    [[nodiscard]] bool holds(const outbox::Json* value, const Scope& scope) const;
    [[nodiscard]] std::optional<outbox::Error> check(const Scope& scope) const;
    // A template with | optional is in it.
    [[nodiscard]] bool optional() const;
    // It compares with an optional value that this operation does not have.
    [[nodiscard]] bool left_out(const Scope& scope) const;

 private:
    enum class Kind { equals, any_of, exists, contains, matches, not_, all_of };

    static ValueCondition compile_operator(
        const config::Value::Member& member, CompileContext& context
    );
    [[nodiscard]] bool matches_pattern(const outbox::Json* value) const;
    [[nodiscard]] bool contains_value(const outbox::Json* value, const outbox::Json& part) const;

    Kind kind_ = Kind::all_of;
    bool exists_ = true;
    ValueTemplate value_;                // equals, contains
    std::unique_ptr<re2::RE2> pattern_;  // matches
    std::vector<ValueCondition> inner_;  // any_of, all_of, not
};

// Conditions on members of a JSON value, by pointer: body:, match:, must_equal:, more:.
class PointerConditions {
 public:
    enum class Optional { forbidden, allowed };
    // `what` names the place in messages. Only must_equal may leave a comparison out: a match
    // with fewer conditions could find somebody else's effect.
    static PointerConditions compile(
        const config::Value& value,
        std::string_view what,
        Optional optional,
        CompileContext& context
    );

    [[nodiscard]] bool hold(const outbox::Json& root, const Scope& scope) const;
    // The pointer of the first condition that does not hold.
    [[nodiscard]] std::optional<std::string> first_broken(
        const outbox::Json& root, const Scope& scope
    ) const;
    [[nodiscard]] std::optional<outbox::Error> check(const Scope& scope) const;
    [[nodiscard]] bool empty() const { return conditions_.empty(); }

 private:
    std::vector<std::pair<std::string, ValueCondition>> conditions_;
};

}  // namespace tools
