#include "tools/schema_keywords.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>

#include "config/nearest.hpp"
#include "outbox/utf8.hpp"
#include "tools/value_template.hpp"

namespace tools {
namespace {

using config::Value;
using outbox::Json;
using Kind = Value::Kind;
using Member = Value::Member;
using Problem = std::optional<LeafProblem>;

const std::map<std::string, KeywordKind, std::less<>>& keywords() {
    using enum KeywordKind;
    static const std::map<std::string, KeywordKind, std::less<>> all = {
        {"$comment", annotation},
        {"$id", annotation},
        {"title", annotation},
        {"description", annotation},
        {"default", annotation},
        {"examples", annotation},
        {"deprecated", annotation},
        {"readOnly", annotation},
        {"writeOnly", annotation},
        {"contentEncoding", annotation},
        {"contentMediaType", annotation},
        {"contentSchema", annotation},
        {"$schema", dialect},
        {"type", leaf},
        {"enum", leaf},
        {"const", leaf},
        {"minimum", leaf},
        {"maximum", leaf},
        {"exclusiveMinimum", leaf},
        {"exclusiveMaximum", leaf},
        {"multipleOf", leaf},
        {"pattern", leaf},
        {"format", leaf},
        {"uniqueItems", leaf},
        {"minLength", count},
        {"maxLength", count},
        {"minItems", count},
        {"maxItems", count},
        {"minProperties", count},
        {"maxProperties", count},
        {"not", schema},
        {"if", schema},
        {"then", schema},
        {"else", schema},
        {"additionalProperties", schema},
        {"propertyNames", schema},
        {"contains", schema},
        {"allOf", schemas},
        {"anyOf", schemas},
        {"oneOf", schemas},
        {"properties", named},
        {"$defs", named},
        {"definitions", named},
        {"dependencies", named},
        {"dependentSchemas", named},
        {"dependentRequired", named},
        {"items", items},
        {"prefixItems", items},
        {"additionalItems", items},
        {"required", required},
        {"$ref", reference},
        {"patternProperties", unsupported},
        {"unevaluatedProperties", unsupported},
        {"unevaluatedItems", unsupported},
        {"minContains", unsupported},
        {"maxContains", unsupported},
        {"$anchor", unsupported},
        {"$dynamicRef", unsupported},
        {"$dynamicAnchor", unsupported},
        {"$recursiveRef", unsupported},
        {"$recursiveAnchor", unsupported},
        {"$vocabulary", unsupported},
        {"extends", unsupported},
        {"disallow", unsupported},
        {"divisibleBy", unsupported},
    };
    return all;
}

LeafProblem takes(const Member& member, const std::string& what, std::string hint = {}) {
    return {fmt::format("{} takes {}", member.key, what), std::move(hint)};
}

Problem read_types(const Member& member, LeafCheck& into) {
    constexpr std::array<std::string_view, 7> kTypes = {
        "null", "boolean", "object", "array", "number", "integer", "string"
    };
    const auto add = [&](const Value& value) {
        // Unquoted, YAML reads null as nothing.
        const auto name = value.is(Kind::null) ? std::string("null") : value.text;
        if (std::find(kTypes.begin(), kTypes.end(), name) == kTypes.end()) return false;
        into.types.push_back(name);
        return true;
    };
    const auto problem = [&] {
        return takes(
            member,
            "one of null, boolean, object, array, number, integer, string, or a list of them",
            config::nearest_hint(
                member.value.text, std::vector<std::string>(kTypes.begin(), kTypes.end())
            )
        );
    };
    if (!member.value.is(Kind::sequence)) return add(member.value) ? Problem{} : problem();
    if (member.value.items.empty()) return problem();
    for (const auto& item : member.value.items) {
        if (!add(item)) return problem();
    }
    return std::nullopt;
}

bool holds_secret(const Value& value) {
    const auto secret = [](const auto& part) { return holds_secret(part); };
    return value.from_secret || std::any_of(value.items.begin(), value.items.end(), secret) ||
           std::any_of(value.members.begin(), value.members.end(), [](const auto& member) {
               return holds_secret(member.value);
           });
}

Problem read_choices(const Member& member, LeafCheck& into) {
    constexpr std::size_t kShown = 200;
    const bool single = member.key == "const";
    if (!single && (!member.value.is(Kind::sequence) || member.value.items.empty())) {
        return takes(member, "a list of values that is not empty");
    }
    auto parsed = outbox::parse_json(plain_json_text(member.value));
    if (!parsed.value) return takes(member, "values that JSON can hold");
    auto choices = single ? Json::Array{*parsed.value} : *parsed.value->as_array();
    auto shown = outbox::to_text(*parsed.value);
    if (holds_secret(member.value)) shown = "…";
    if (shown.size() > kShown) shown = std::string(outbox::utf8_head(shown, kShown)) + "…";
    if (into.one_of) {  // both enum and const
        std::erase_if(*into.one_of, [&](const Json& one) {
            return std::none_of(choices.begin(), choices.end(), [&](const Json& other) {
                return one.equals(other);
            });
        });
    } else {
        into.one_of = std::move(choices);
    }
    into.one_of_text = (single ? "" : "one of ") + shown;
    return std::nullopt;
}

Problem read_bound(const Member& member, LeafCheck& into) {
    if (!member.value.is(Kind::number)) {
        return takes(
            member,
            "a number",
            member.value.is(Kind::boolean)
                ? "since draft 6 the limit itself stands here: exclusiveMaximum: 5"
                : ""
        );
    }
    LeafCheck::Bound bound{outbox::parse_decimal(member.value.text), member.value.text};
    if (member.key == "multipleOf") {
        if (bound.limit.negative || bound.limit.digits.empty()) {
            return takes(member, "a number greater than 0");
        }
        if (bound.limit.digits.size() > kMultipleDigits) {
            return takes(member, fmt::format("a number of at most {} digits", kMultipleDigits));
        }
    }
    auto& place = member.key == "minimum"            ? into.minimum
                  : member.key == "maximum"          ? into.maximum
                  : member.key == "exclusiveMinimum" ? into.above
                  : member.key == "exclusiveMaximum" ? into.below
                                                     : into.multiple_of;
    place = std::move(bound);
    return std::nullopt;
}

Problem read_pattern(const Member& member, LeafCheck& into) {
    constexpr std::size_t kShown = 100;
    if (!member.value.is(Kind::string)) return takes(member, "a regular expression in quotes");
    std::string error;
    auto regex = compile_regex(member.value.text, error);
    if (!regex) {
        return LeafProblem{
            "pattern is no regular expression: " + error,
            "the syntax is RE2's: no look-ahead, no back-references; \\x{263a} instead of \\u263a"
        };
    }
    const auto shown = member.value.from_secret
                           ? std::string("…")
                           : std::string(outbox::utf8_head(member.value.text, kShown));
    into.patterns.push_back({std::move(regex), "a text that matches " + shown});
    return std::nullopt;
}

Problem read_format(const Member& member, LeafCheck& into) {
    if (!member.value.is(Kind::string)) return takes(member, "the name of a format");
    if (auto pattern = format_pattern(member.value.text)) {
        into.patterns.push_back(std::move(*pattern));
        return std::nullopt;
    }
    return LeafProblem{
        fmt::format("format {} is not checked", member.value.text.substr(0, 100)),
        fmt::format("checked are {}; pattern: checks the rest", fmt::join(checked_formats(), ", ")),
        true
    };
}

}  // namespace

KeywordKind keyword_kind(std::string_view keyword) {
    if (keyword.starts_with("x-")) return KeywordKind::annotation;
    const auto found = keywords().find(keyword);
    return found == keywords().end() ? KeywordKind::unknown : found->second;
}

std::string unsupported_hint(std::string_view keyword) {
    if (keyword == "patternProperties") {
        return "additionalProperties: gives a schema to all members that properties does not name, "
               "propertyNames: { pattern: … } one to their names";
    }
    if (keyword.starts_with("unevaluated")) return "write additionalProperties or items";
    if (keyword.ends_with("Contains")) return "contains: asks for at least one";
    if (keyword == "divisibleBy") return "write multipleOf";
    return "write $ref: '#/$defs/name', or the sub-schema itself";
}

const std::vector<std::string>& known_keywords() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> all;
        for (const auto& [name, kind] : keywords()) {
            if (kind != KeywordKind::unsupported) all.push_back(name);
        }
        return all;
    }();
    return names;
}

bool applies_in_place(std::string_view keyword) {
    return keyword == "not" || keyword == "if" || keyword == "then" || keyword == "else";
}

std::optional<LeafProblem> read_leaf(const Member& member, LeafCheck& into) {
    if (member.key == "type") return read_types(member, into);
    if (member.key == "enum" || member.key == "const") return read_choices(member, into);
    if (member.key == "pattern") return read_pattern(member, into);
    if (member.key == "format") return read_format(member, into);
    if (member.key == "uniqueItems") {
        if (!member.value.is(Kind::boolean)) return takes(member, "true or false");
        into.unique = member.value.text == "true";
        return std::nullopt;
    }
    return read_bound(member, into);
}

}  // namespace tools
