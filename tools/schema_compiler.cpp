#include "tools/schema_compiler.hpp"

#include <fmt/format.h>

#include <map>
#include <set>
#include <utility>

#include "config/nearest.hpp"
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
    explicit Compiler(config::Diagnostics& diagnostics) : diagnostics_(diagnostics) {}

    std::optional<FlatSchema> run(const Value& schema) {
        (void)walk(schema, schema.mark, "", 0);
        resolve();
        find_loops();
        if (failed_) return std::nullopt;
        FlatSchema flat;
        Json definitions(Json::Object{});
        for (std::size_t i = 0; i < nodes_.size(); ++i) {
            auto& node = nodes_[i];
            if (!node.leaf.empty()) {
                node.flat.set(kLeafKeyword, static_cast<std::int64_t>(flat.leaves.size()));
                flat.leaves.push_back(std::move(node.leaf));
            }
            definitions.set(std::to_string(i), std::move(node.flat));
        }
        flat.document.set("$ref", "#/definitions/0");
        flat.document.set("definitions", std::move(definitions));
        return flat;
    }

 private:
    struct Node {
        Json flat{Json::Object{}};
        LeafCheck leaf;
        Mark mark;
        std::vector<std::size_t> in_place;  // sub-schemas for the very same value
    };
    struct Reference {
        std::size_t node;
        std::string pointer;
        Mark mark;
        std::string text;
    };

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

    static Json reference_to(std::size_t node) {
        Json out;
        out.set("$ref", fmt::format("#/definitions/{}", node));
        return out;
    }

    // One schema with all below it; its number.
    std::size_t walk(
        const Value& value, const Mark& fallback, const std::string& pointer, std::size_t depth
    ) {
        const auto mark = value.mark.line > 0 ? value.mark : fallback;
        const auto number = nodes_.size();
        if (number >= kMaxSchemas || depth > kMaxDepth) {
            if (!too_large_) {
                error(mark, "the schema is too large", "5000 sub-schemas, 100 inside each other");
            }
            too_large_ = true;
            return 0;
        }
        nodes_.emplace_back();
        nodes_[number].mark = mark;
        numbers_.emplace(pointer, number);
        if (value.is(Kind::boolean)) {
            nodes_[number].leaf.never = value.text == "false";
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
        auto problem = read_leaf(member, nodes_[number].leaf);
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
        nodes_[number].flat.set(member.key, Json(Json::Number{text}));
    }

    void one(
        std::size_t number, const Member& member, const std::string& below, std::size_t depth
    ) {
        const auto sub = walk(member.value, member.key_mark, below, depth + 1);
        if (applies_in_place(member.key)) nodes_[number].in_place.push_back(sub);
        nodes_[number].flat.set(member.key, reference_to(sub));
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
            nodes_[number].in_place.push_back(sub);
            add_to_list(number, member.key, sub);
        }
    }

    void add_to_list(std::size_t number, const std::string& key, std::size_t sub) {
        auto& flat = nodes_[number].flat;
        if (flat.find(key) == nullptr) flat.set(key, Json(Json::Array{}));
        for (auto& [name, value] : *flat.as_object()) {
            if (name == key) value.as_array()->push_back(reference_to(sub));
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
        const auto* known = nodes_[number].flat.find(target);
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
            if (dependency) nodes_[number].in_place.push_back(sub);
            out.set(entry.key, reference_to(sub));
        }
        if (!definition) nodes_[number].flat.set(target, std::move(out));
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
                if (listed) nodes_[number].flat.set("additionalItems", reference_to(sub));
            } else {
                nodes_[number].flat.set(
                    prefix == nullptr ? "items" : "additionalItems", reference_to(sub)
                );
            }
            return;
        }
        if (!member.value.is(Kind::sequence)) return wrong(member, "a list of schemas");
        Json::Array subs;
        for (std::size_t i = 0; i < member.value.items.size(); ++i) {
            subs.push_back(reference_to(walk(
                member.value.items[i], member.key_mark, fmt::format("{}/{}", below, i), depth + 1
            )));
        }
        nodes_[number].flat.set("items", Json(std::move(subs)));
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
        if (!names->as_array()->empty()) nodes_[number].flat.set("required", std::move(*names));
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
        references_.push_back(
            {number, percent_decoded(text.substr(1)), member.value.mark, text.substr(0, 100)}
        );
    }

    // A target may stand anywhere in the schema, also behind what refers to it.
    void resolve() {
        for (const auto& reference : references_) {
            const auto found = numbers_.find(reference.pointer);
            if (found == numbers_.end()) {
                if (too_large_) continue;
                error(
                    reference.mark,
                    fmt::format("there is no schema at {}", reference.text),
                    "name a sub-schema by its JSON Pointer, such as '#/$defs/name'"
                );
                continue;
            }
            nodes_[reference.node].in_place.push_back(found->second);
            add_to_list(reference.node, "allOf", found->second);
        }
    }

    // A schema that comes back to itself without having gone into the value would never end.
    void find_loops() {
        enum class State { fresh, open, done };
        std::vector<State> states(nodes_.size(), State::fresh);
        for (std::size_t start = 0; start < nodes_.size(); ++start) {
            if (states[start] != State::fresh) continue;
            std::vector<std::pair<std::size_t, std::size_t>> path{{start, 0}};
            states[start] = State::open;
            while (!path.empty()) {
                auto& [at, next] = path.back();
                if (next == nodes_[at].in_place.size()) {
                    states[at] = State::done;
                    path.pop_back();
                    continue;
                }
                const auto to = nodes_[at].in_place[next++];
                if (states[to] == State::open) {
                    error(
                        nodes_[at].mark,
                        "this schema leads back to itself for the same value",
                        "a recursive $ref belongs below properties or items"
                    );
                } else if (states[to] == State::fresh) {
                    states[to] = State::open;
                    path.emplace_back(to, 0);
                }
            }
        }
    }

    config::Diagnostics& diagnostics_;
    std::vector<Node> nodes_;
    std::map<std::string, std::size_t> numbers_;
    std::vector<Reference> references_;
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
