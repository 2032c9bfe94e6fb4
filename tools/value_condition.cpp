#include "tools/value_condition.hpp"

#include <re2/re2.h>

#include <algorithm>

#include "config/nearest.hpp"
#include "tools/pointer.hpp"

namespace tools {
namespace {

using outbox::Json;
using ValueKind = config::Value::Kind;

// RE2 is linear in its input; this bounds what one answer may cost all the same.
constexpr std::size_t kPatternInput = 64 * 1024;

std::unique_ptr<re2::RE2> compile_pattern(const config::Value& value, CompileContext& context) {
    if (!value.is(ValueKind::string) && !value.is(ValueKind::number)) {
        context.diagnostics.error(value.mark, "matches needs a regular expression");
        return nullptr;
    }
    if (value.text.find("{{") != std::string::npos) {
        context.diagnostics.error(
            value.mark, "a template cannot be a regular expression", "compare with contains instead"
        );
        return nullptr;
    }
    re2::RE2::Options options;
    options.set_log_errors(false);
    options.set_max_mem(1 << 20);
    auto pattern = std::make_unique<re2::RE2>(value.text, options);
    if (pattern->ok()) return pattern;
    context.diagnostics.error(value.mark, "not a regular expression: " + pattern->error());
    return nullptr;
}

}  // namespace

ValueCondition::ValueCondition() = default;
ValueCondition::~ValueCondition() = default;
ValueCondition::ValueCondition(ValueCondition&&) noexcept = default;
ValueCondition& ValueCondition::operator=(ValueCondition&&) noexcept = default;

ValueCondition ValueCondition::compile(const config::Value& value, CompileContext& context) {
    ValueCondition result;
    if (value.is(ValueKind::sequence)) {
        result.kind_ = Kind::any_of;
        for (const auto& item : value.items) result.inner_.push_back(compile(item, context));
        if (value.items.empty()) {
            context.diagnostics.error(value.mark, "an empty list matches nothing");
        }
    } else if (value.is(ValueKind::mapping)) {
        result.kind_ = Kind::all_of;
        for (const auto& member : value.members) {
            result.inner_.push_back(compile_operator(member, context));
        }
        if (value.members.empty()) {
            context.diagnostics.error(
                value.mark, "an empty condition", "exists, contains, matches or not"
            );
        }
    } else {
        result.kind_ = Kind::equals;
        result.value_ = ValueTemplate::compile(value, context);
    }
    return result;
}

ValueCondition ValueCondition::compile_operator(
    const config::Value::Member& member, CompileContext& context
) {
    ValueCondition result;
    if (member.key == "exists") {
        result.kind_ = Kind::exists;
        result.exists_ = member.value.text == "true";
        if (!member.value.is(ValueKind::boolean)) {
            context.diagnostics.error(member.value.mark, "exists is true or false");
        }
    } else if (member.key == "contains") {
        result.kind_ = Kind::contains;
        result.value_ = ValueTemplate::compile(member.value, context);
        if (member.value.is(ValueKind::mapping) || member.value.is(ValueKind::sequence)) {
            context.diagnostics.error(member.value.mark, "contains needs one plain value");
        }
    } else if (member.key == "matches") {
        result.kind_ = Kind::matches;
        result.pattern_ = compile_pattern(member.value, context);
    } else if (member.key == "not") {
        result.kind_ = Kind::not_;
        result.inner_.push_back(compile(member.value, context));
    } else {
        context.diagnostics.error(
            member.key_mark,
            "unknown condition " + member.key,
            config::nearest_hint(member.key, {"exists", "contains", "matches", "not"})
        );
    }
    return result;
}

bool ValueCondition::matches_pattern(const Json* value) const {
    const auto* text = value == nullptr ? nullptr : value->as_string();
    if (text == nullptr || pattern_ == nullptr) return false;
    const auto length = std::min(text->size(), kPatternInput);
    return re2::RE2::PartialMatch(re2::StringPiece(text->data(), length), *pattern_);
}

bool ValueCondition::contains_value(const Json* value, const Json& part) const {
    if (value == nullptr) return false;
    if (const auto* array = value->as_array()) {
        return std::any_of(array->begin(), array->end(), [&](const Json& item) {
            return item.equals(part);
        });
    }
    const auto* text = value->as_string();
    const auto* needle = part.as_string();
    return text != nullptr && needle != nullptr && text->find(*needle) != std::string::npos;
}

bool ValueCondition::holds(const Json* value, const Scope& scope) const {
    const auto inner_holds = [&](const ValueCondition& c) { return c.holds(value, scope); };
    switch (kind_) {
        case Kind::any_of:
            return std::any_of(inner_.begin(), inner_.end(), inner_holds);
        case Kind::all_of:
            return std::all_of(inner_.begin(), inner_.end(), inner_holds);
        case Kind::not_:
            return std::none_of(inner_.begin(), inner_.end(), inner_holds);
        case Kind::exists:
            return (value != nullptr) == exists_;
        case Kind::matches:
            return matches_pattern(value);
        case Kind::equals:
        case Kind::contains:
            break;
    }
    const auto rendered = value_.render(scope);
    if (!rendered.ok() || !rendered.value()) return false;
    const auto& expected = *rendered.value();
    if (kind_ == Kind::contains) return contains_value(value, expected);
    return value != nullptr && value->equals(expected);
}

std::optional<outbox::Error> ValueCondition::check(const Scope& scope) const {
    if (kind_ == Kind::equals || kind_ == Kind::contains) {
        const auto rendered = value_.render(scope);
        if (!rendered.ok()) return rendered.error();
    }
    for (const auto& condition : inner_) {
        if (auto error = condition.check(scope)) return error;
    }
    return std::nullopt;
}

bool ValueCondition::optional() const {
    return value_.optional() ||
           std::any_of(inner_.begin(), inner_.end(), [](const auto& c) { return c.optional(); });
}

bool ValueCondition::left_out(const Scope& scope) const {
    if (!optional()) return false;
    if (kind_ == Kind::equals || kind_ == Kind::contains) {
        const auto rendered = value_.render(scope);
        return rendered.ok() && !rendered.value();
    }
    return std::any_of(inner_.begin(), inner_.end(), [&](const auto& c) {
        return c.left_out(scope);
    });
}

PointerConditions PointerConditions::compile(
    const config::Value& value, std::string_view what, Optional optional, CompileContext& context
) {
    PointerConditions result;
    const std::string name(what);
    if (!value.is(ValueKind::mapping)) {
        context.diagnostics.error(
            value.mark, name + " must be a mapping", "for instance { /id: 7 }"
        );
        return result;
    }
    if (value.members.empty()) {
        context.diagnostics.error(
            value.mark, name + " is empty, so everything would match", "for instance { /id: 7 }"
        );
    }
    for (const auto& member : value.members) {
        check_pointer(member.key, member.key_mark, context.diagnostics);
        auto condition = ValueCondition::compile(member.value, context);
        if (optional == Optional::forbidden && condition.optional()) {
            context.diagnostics.error(
                member.value.mark,
                "a condition of " + name + " cannot be left out",
                "remove | optional: fewer conditions could match something else"
            );
        }
        result.conditions_.emplace_back(member.key, std::move(condition));
    }
    return result;
}

bool PointerConditions::hold(const Json& root, const Scope& scope) const {
    return !first_broken(root, scope).has_value();
}

std::optional<std::string> PointerConditions::first_broken(const Json& root, const Scope& scope)
    const {
    for (const auto& [pointer, condition] : conditions_) {
        if (condition.left_out(scope)) continue;
        if (!condition.holds(root.at_pointer(pointer), scope)) return pointer;
    }
    return std::nullopt;
}

std::optional<outbox::Error> PointerConditions::check(const Scope& scope) const {
    for (const auto& [pointer, condition] : conditions_) {
        if (auto error = condition.check(scope)) return error;
    }
    return std::nullopt;
}

}  // namespace tools
