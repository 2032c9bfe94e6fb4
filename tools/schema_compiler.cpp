#include "tools/schema_compiler.hpp"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "config/nearest.hpp"
#include "tools/schema_graph.hpp"
#include "tools/schema_keywords.hpp"
#include "tools/schema_pointer.hpp"

namespace tools {
namespace {

using config::Mark;
using config::Value;
using outbox::Json;
using Kind = Value::Kind;
using Member = Value::Member;

constexpr std::size_t kMaxSchemas = 5'000;
constexpr std::size_t kMaxDepth = 100;

class Compiler {
 public:
    explicit Compiler(config::Diagnostics& diagnostics)
        : diagnostics_(diagnostics),
          graph_([this](const Mark& mark, std::string message, std::string hint) {
              error(mark, std::move(message), std::move(hint));
          }) {}

    std::optional<FlatSchema> run(const Value& schema) {
        (void)walk(schema, schema.mark, "", 0);
        graph_.resolve(too_large_);
        graph_.find_loops();
        if (failed_) return std::nullopt;
        return std::move(graph_).flat();
    }

 private:
    void error(const Mark& mark, std::string message, std::string hint = {}) {
        failed_ = true;
        diagnostics_.error(mark, "arguments: " + std::move(message), std::move(hint));
    }
    void wrong(const Member& member, const std::string& expected, std::string hint = {}) {
        if (member.value.unresolved) {
            failed_ = true;
            return;
        }
        error(
            member.value.mark.line > 0 ? member.value.mark : member.key_mark,
            fmt::format("{} takes {}", member.key, expected),
            std::move(hint)
        );
    }

    // One schema with all below it; its number.
    std::size_t walk(
        const Value& value, const Mark& fallback, const std::string& pointer, std::size_t depth
    ) {
        const auto mark = value.mark.line > 0 ? value.mark : fallback;
        if (graph_.size() >= kMaxSchemas || depth > kMaxDepth) {
            if (!too_large_) {
                error(mark, "the schema is too large", "5000 sub-schemas, 100 inside each other");
            }
            too_large_ = true;
            return 0;
        }
        const auto number = graph_.add(pointer, mark);
        if (value.is(Kind::boolean)) {
            graph_[number].leaf.never = value.text == "false";
        } else if (value.is(Kind::mapping)) {
            for (const auto& member : value.members) keyword(number, value, member, pointer, depth);
        } else if (!value.unresolved) {
            error(mark, "a schema is a mapping, or true or false", "for instance { type: string }");
        } else {
            failed_ = true;
        }
        return number;
    }

    void keyword(
        std::size_t number,
        const Value& schema,
        const Member& member,
        const std::string& pointer,
        std::size_t depth
    ) {
        const auto below = pointer + "/" + pointer_token(member.key);
        switch (keyword_kind(member.key)) {
            case KeywordKind::annotation:
                return;
            case KeywordKind::dialect:
                return check_dialect(member);
            case KeywordKind::leaf:
                return leaf(number, member);
            case KeywordKind::count:
                return count(number, member);
            case KeywordKind::schema:
                return one(number, member, below, depth);
            case KeywordKind::schemas:
                return list(number, member, below, depth);
            case KeywordKind::named:
                return named(number, member, below, depth);
            case KeywordKind::items:
                return items(number, schema, member, below, depth);
            case KeywordKind::required:
                return required(number, member);
            case KeywordKind::reference:
                return reference(number, member);
            case KeywordKind::unsupported:
                return error(
                    member.key_mark, member.key + " is not supported", unsupported_hint(member.key)
                );
            case KeywordKind::unknown:
                break;
        }
        diagnostics_.warning(
            member.key_mark,
            fmt::format("arguments: unknown keyword {}", member.key),
            config::nearest_hint(member.key, known_keywords())
        );
    }

    void check_dialect(const Member& member) {
        if (!member.value.is(Kind::string)) return wrong(member, "a URI");
        if (member.value.text.find("draft-03") == std::string::npos &&
            member.value.text.find("draft-04") == std::string::npos) {
            return;
        }
        error(
            member.value.mark,
            "schemas of draft 3 and 4 are not supported",
            "leave $schema out; draft 7 writes exclusiveMaximum: 5 for maximum: 5 with "
            "exclusiveMaximum: true"
        );
    }

    void leaf(std::size_t number, const Member& member) {
        if (member.value.unresolved) {
            failed_ = true;
            return;
        }
        auto problem = read_leaf(member, graph_[number].leaf);
        if (!problem) return;
        if (problem->warning) {
            diagnostics_.warning(
                member.value.mark, "arguments: " + problem->message, problem->hint
            );
        } else {
            error(
                member.value.mark.line > 0 ? member.value.mark : member.key_mark,
                problem->message,
                problem->hint
            );
        }
    }

    void count(std::size_t number, const Member& member) {
        const auto& text = member.value.text;
        const bool whole = member.value.is(Kind::number) && !text.empty() && text.size() <= 9 &&
                           text.find_first_not_of("0123456789") == std::string::npos;
        if (!whole) return wrong(member, "a whole number from 0 to 999999999");
        graph_[number].flat.set(member.key, Json(Json::Number{text}));
    }

    void one(
        std::size_t number, const Member& member, const std::string& below, std::size_t depth
    ) {
        const auto sub = walk(member.value, member.key_mark, below, depth + 1);
        if (applies_in_place(member.key)) graph_[number].in_place.push_back(sub);
        graph_[number].flat.set(member.key, SchemaGraph::reference_to(sub));
    }

    void list(
        std::size_t number, const Member& member, const std::string& below, std::size_t depth
    ) {
        if (!member.value.is(Kind::sequence) || member.value.items.empty()) {
            return wrong(member, "a list of schemas that is not empty");
        }
        for (std::size_t i = 0; i < member.value.items.size(); ++i) {
            const auto sub = walk(
                member.value.items[i], member.key_mark, fmt::format("{}/{}", below, i), depth + 1
            );
            graph_[number].in_place.push_back(sub);
            graph_.add_to_list(number, member.key, sub);
        }
    }

    // properties, dependentSchemas, dependencies, $defs, definitions: schemas by name.
    void named(
        std::size_t number, const Member& member, const std::string& below, std::size_t depth
    ) {
        if (!member.value.is(Kind::mapping)) return wrong(member, "a mapping");
        const bool dependency = member.key.starts_with("depend");
        const bool definition = member.key == "$defs" || member.key == "definitions";
        const std::string target = dependency ? "dependencies" : "properties";
        const auto* known = graph_[number].flat.find(target);
        auto out = known == nullptr ? Json(Json::Object{}) : *known;
        for (const auto& entry : member.value.members) {
            if (dependency && member.key != "dependentSchemas" &&
                (entry.value.is(Kind::sequence) || member.key == "dependentRequired")) {
                if (auto names = read_names(entry.value)) {
                    out.set(entry.key, std::move(*names));
                } else {
                    wrong(entry, "a list of names");
                }
                continue;
            }
            const auto sub = walk(
                entry.value, entry.key_mark, below + "/" + pointer_token(entry.key), depth + 1
            );
            if (dependency) graph_[number].in_place.push_back(sub);
            out.set(entry.key, SchemaGraph::reference_to(sub));
        }
        if (!definition) graph_[number].flat.set(target, std::move(out));
    }

    // items is one schema for all, or (draft 7) one each; prefixItems is the later name of the
    // latter, and items the rest then.
    void items(
        std::size_t number,
        const Value& schema,
        const Member& member,
        const std::string& below,
        std::size_t depth
    ) {
        const bool tuple = member.key == "prefixItems" ||
                           (member.key == "items" && member.value.is(Kind::sequence));
        if (!tuple) {
            const auto* prefix = schema.find("prefixItems");
            const auto* first = schema.find("items");
            const bool listed = first != nullptr && first->is(Kind::sequence);
            const auto sub = walk(member.value, member.key_mark, below, depth + 1);
            if (member.key == "additionalItems") {
                if (listed)
                    graph_[number].flat.set("additionalItems", SchemaGraph::reference_to(sub));
            } else {
                graph_[number].flat.set(
                    prefix == nullptr ? "items" : "additionalItems", SchemaGraph::reference_to(sub)
                );
            }
            return;
        }
        if (!member.value.is(Kind::sequence)) return wrong(member, "a list of schemas");
        Json::Array subs;
        for (std::size_t i = 0; i < member.value.items.size(); ++i) {
            subs.push_back(SchemaGraph::reference_to(walk(
                member.value.items[i], member.key_mark, fmt::format("{}/{}", below, i), depth + 1
            )));
        }
        graph_[number].flat.set("items", Json(std::move(subs)));
    }

    static std::optional<Json> read_names(const Value& value) {
        if (!value.is(Kind::sequence)) return std::nullopt;
        Json::Array names;
        std::set<std::string> seen;
        for (const auto& item : value.items) {
            if (item.is(Kind::mapping) || item.is(Kind::sequence) || item.is(Kind::null) ||
                !seen.insert(item.text).second) {
                return std::nullopt;
            }
            names.emplace_back(item.text);
        }
        return Json(std::move(names));
    }

    void required(std::size_t number, const Member& member) {
        auto names = read_names(member.value);
        if (!names) {
            return wrong(
                member,
                "a list of different names",
                member.value.is(Kind::boolean)
                    ? "draft 4 and later: required: [title] beside properties"
                    : ""
            );
        }
        if (!names->as_array()->empty()) graph_[number].flat.set("required", std::move(*names));
    }

    void reference(std::size_t number, const Member& member) {
        const auto& text = member.value.text;
        if (!member.value.is(Kind::string)) return wrong(member, "a text such as '#/$defs/name'");
        if (!text.starts_with('#')) {
            return error(
                member.value.mark,
                fmt::format("$ref leads out of this schema: {}", text.substr(0, 100)),
                "copy what it names into $defs and write $ref: '#/$defs/name'"
            );
        }
        graph_.refer(
            {number, percent_decoded(text.substr(1)), member.value.mark, text.substr(0, 100)}
        );
    }

    config::Diagnostics& diagnostics_;
    SchemaGraph graph_;
    bool failed_ = false;
    bool too_large_ = false;
};

}  // namespace

std::optional<FlatSchema> compile_schema(
    const config::Value& schema, config::Diagnostics& diagnostics
) {
    return Compiler(diagnostics).run(schema);
}

}  // namespace tools
