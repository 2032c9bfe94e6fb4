// config/outboxd.schema.json says what the loader reads: every key, both ways, with type, range,
// choices and default. What the loader learns has to be added there, and to schema/kinds.yaml.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "config/inventory.hpp"
#include "config/yaml.hpp"
#include "tests/support/catch.hpp"
#include "tests/unit/config/files.hpp"

namespace {

using config::Value;
using Kind = Value::Kind;

Value parse(const std::string& name, const std::string& text) {
    config::Diagnostics diagnostics;
    auto value = config::parse_yaml(std::make_shared<const std::string>(name), text, diagnostics);
    INFO(config_test::text_of(diagnostics));
    REQUIRE(value);
    return *value;
}

// The schema, walked along a value.
class Schema {
 public:
    Schema() : root_(parse("schema", config_test::read(SCHEMA_FILE))) {}
    [[nodiscard]] const Value& root() const { return root_; }

    // What a $ref stands for; siblings of it are annotations.
    [[nodiscard]] const Value* resolved(const Value* node) const {
        while (node != nullptr) {
            const auto* ref = node->find("$ref");
            if (ref == nullptr) return node;
            node = &root_;
            std::size_t at = 1;
            while (at < ref->text.size()) {
                const auto slash = ref->text.find('/', at + 1);
                const auto end = slash == std::string::npos ? ref->text.size() : slash;
                node = node->find(ref->text.substr(at + 1, end - at - 1));
                INFO(ref->text);
                REQUIRE(node != nullptr);
                at = end;
            }
        }
        return node;
    }

    // Of oneOf, the branch whose type: or kind: is the value's.
    [[nodiscard]] const Value* branch(const Value* node, const Value* value) const {
        node = resolved(node);
        const auto* all = node == nullptr ? nullptr : node->find("oneOf");
        if (all == nullptr) return node;
        for (const auto& one : all->items) {
            const auto* candidate = branch(&one, value);
            for (const auto* word : {"type", "kind"}) {
                const auto* given = value == nullptr ? nullptr : value->find(word);
                const auto* properties = candidate->find("properties");
                const auto* property = properties->find(word);
                const auto* constant = property == nullptr ? nullptr : property->find("const");
                if (given && constant && given->text == constant->text) return candidate;
            }
        }
        return nullptr;
    }

    // The node of a member, annotations included (not resolved).
    [[nodiscard]] const Value* member(const Value* mapping, const std::string& key) const {
        const auto* properties = mapping->find("properties");
        if (properties != nullptr && properties->find(key) != nullptr) return properties->find(key);
        const auto* others = mapping->find("additionalProperties");
        return others != nullptr && others->is(Kind::mapping) ? others : nullptr;
    }

 private:
    Value root_;
};

// tools.http.execute.outcomes[0] → tools, http, execute, outcomes, 0
std::vector<std::string> segments(const std::string& path) {
    std::vector<std::string> out;
    std::string word;
    for (const char c : path + ".") {
        if (c == '.' || c == '[') {
            if (!word.empty()) out.push_back(word);
            word.clear();
        } else if (c != ']') {
            word += c;
        }
    }
    return out;
}

struct Place {
    const Value* schema = nullptr;  // of the mapping, resolved to its branch
    const Value* value = nullptr;   // what the file has there; null: nothing
};

Place find(const Schema& schema, const Value& file, const std::string& path) {
    Place place{schema.branch(&schema.root(), &file), &file};
    for (const auto& word : segments(path)) {
        if (place.schema == nullptr) return place;
        const bool index = word.find_first_not_of("0123456789") == std::string::npos;
        if (index) {
            place.schema = place.schema->find("items");
            place.value = place.value ? &place.value->items.at(std::stoul(word)) : nullptr;
        } else {
            place.schema = schema.member(place.schema, word);
            place.value = place.value ? place.value->find(word) : nullptr;
        }
        place.schema = schema.branch(place.schema, place.value);
    }
    return place;
}

std::set<std::string> words(const Value* list) {
    std::set<std::string> out;
    if (list != nullptr) {
        for (const auto& item : list->items) out.insert(item.text);
    }
    return out;
}

// An enum, also one within anyOf.
std::set<std::string> choices(const Value* node) {
    if (const auto* constant = node->find("const")) return {constant->text};
    if (const auto* names = node->find("enum")) return words(names);
    if (const auto* any = node->find("anyOf")) {
        for (const auto& one : any->items) {
            if (one.find("enum") != nullptr) return words(one.find("enum"));
        }
    }
    return {};
}

std::string text_at(const Value* node, const char* key) {
    const auto* found = node->find(key);
    return found == nullptr ? "" : found->text;
}

struct Read {
    Schema schema;
    config::Inventory inventory;
    Value file = parse("kinds.yaml", config_test::read(TEST_FILES "/schema/kinds.yaml"));

    Read() {
        const auto before = std::filesystem::current_path();
        std::filesystem::current_path(TEST_FILES);  // for schema/some.pem
        const config_test::Variable secret("OUTBOX_TEST_SECRET", "s3cret");
        const config::Inventory::Recording recording(inventory);
        const auto loaded = config::load("schema/kinds.yaml");
        std::filesystem::current_path(before);
        INFO(config_test::text_of(loaded.diagnostics));
        REQUIRE(loaded.config);
        REQUIRE(inventory.mappings.size() > 50);
    }
};

void check_type(const config::Inventory::Key& key, const Value* node, const Value* resolved) {
    const auto ref = text_at(node, "$ref");
    if (key.type == "duration" || key.type == "size") {
        CHECK(ref == "#/$defs/" + key.type);
        CHECK(text_at(node, "x-range") == key.min + " to " + key.max);
    } else if (key.type == "duration_or_forever") {
        CHECK(text_at(node, "x-range") == key.min + " to " + key.max);
        REQUIRE(node->find("anyOf") != nullptr);
    } else if (key.type == "integer" || key.type == "number") {
        CHECK(words(resolved->find("type")).count(key.type) == 1);
        CHECK(text_at(resolved, "minimum") == key.min);
        CHECK(text_at(resolved, "maximum") == key.max);
    } else if (key.type == "boolean") {
        CHECK(words(resolved->find("type")).count("boolean") == 1);
    } else if (key.type == "rate") {
        CHECK(ref == "#/$defs/rate");
    }
}

}  // namespace

TEST_CASE("the schema has every key that the loader knows, and no other", "[config][schema]") {
    const Read read;
    for (const auto& mapping : read.inventory.mappings) {
        const auto place = find(read.schema, read.file, mapping.path);
        INFO("mapping \"" << mapping.path << "\"");
        REQUIRE(place.schema != nullptr);
        const auto* properties = place.schema->find("properties");
        REQUIRE(properties != nullptr);
        CHECK(text_at(place.schema, "additionalProperties") == "false");
        std::set<std::string> said;
        for (const auto& property : properties->members) said.insert(property.key);
        const std::set<std::string> known(mapping.known.begin(), mapping.known.end());
        CHECK(said == known);
    }
}

TEST_CASE("the schema has the loader's types, ranges and choices", "[config][schema]") {
    const Read read;
    // The kinds of every mapping that has kinds, and those that kinds.yaml shows.
    std::map<std::string, std::set<std::string>> kinds;
    std::map<std::string, std::set<std::string>> shown;
    for (const auto& key : read.inventory.keys) {
        const auto place = find(read.schema, read.file, key.mapping);
        INFO("key \"" << key.mapping << "." << key.key << "\", " << key.type);
        REQUIRE(place.schema != nullptr);
        const auto* node = read.schema.member(place.schema, key.key);
        REQUIRE(node != nullptr);
        // A compensation's settings refer to the tool's: annotations stand there.
        while (text_at(node, "$ref").find("/properties/") != std::string::npos) {
            Value alone;
            alone.kind = Kind::mapping;
            const auto ref = text_at(node, "$ref");
            const Value* target = &read.schema.root();
            for (const auto& word : segments([&] {
                     auto dotted = ref.substr(2);
                     std::replace(dotted.begin(), dotted.end(), '/', '.');
                     return dotted;
                 }())) {
                target = target->find(word);
                REQUIRE(target != nullptr);
            }
            node = target;
        }
        const auto* resolved = read.schema.resolved(node);
        check_type(key, node, resolved);
        if (key.type != "choice") continue;
        const std::set<std::string> names(key.names.begin(), key.names.end());
        if (key.key != "type" && key.key != "kind") {
            CHECK(choices(resolved) == names);
            continue;
        }
        auto path = segments(key.mapping);
        for (std::size_t i = 1; i < path.size(); i += 2) path[i].assign(1, '*');
        std::string general;
        for (const auto& word : path) general += word + ".";
        kinds[general] = names;
        shown[general].insert(place.value->find(key.key)->text);
    }
    CHECK(kinds.size() >= 5);
    for (const auto& [mapping, names] : kinds) {
        INFO(mapping);
        CHECK(shown[mapping] == names);
    }
}

namespace {

// Every default: of the schema below a mapping that print-config spells out.
int check_defaults(
    const Schema& schema, const Value* node, const Value& printed, const std::string& path
) {
    int checked = 0;
    const auto* properties = node->find("properties");
    if (properties == nullptr) return 0;
    for (const auto& property : properties->members) {
        const auto* actual = printed.find(property.key);
        if (actual == nullptr) continue;
        const auto here = path + "." + property.key;
        INFO(here);
        const auto* resolved = schema.resolved(&property.value);
        if (const auto* expected = property.value.find("default")) {
            CHECK(expected->text == actual->text);
            CHECK(expected->items.size() == actual->items.size());
            ++checked;
        } else if (resolved->find("properties") == nullptr) {
            // A scalar that print-config spells out without a default in the schema.
            const bool none = actual->is(Kind::null) || actual->is(Kind::mapping);
            CHECK(none);
        }
        checked += check_defaults(schema, resolved, *actual, here);
    }
    return checked;
}

}  // namespace

TEST_CASE("the schema has the loader's defaults", "[config][schema]") {
    const Schema schema;
    const auto bare = config_test::must_load("version: 1\ndatabase: { embedded: {} }\n");
    auto printed = parse("printed", print(bare));
    std::erase_if(printed.members, [](const auto& member) { return member.key == "version"; });
    CHECK(check_defaults(schema, &schema.root(), printed, "") >= 35);

    const auto one =
        config_test::must_load("version: 1\ntools: { t: { execute: { type: log } } }\n");
    const auto tool = *parse("printed", print(one)).find("tools")->find("t");
    const auto* properties =
        schema
            .resolved(schema.root().find("properties")->find("tools")->find("additionalProperties"))
            ->find("properties");
    for (const auto* key : {"expose", "destructive"}) {
        INFO(key);
        CHECK(properties->find(key)->find("default")->text == tool.find(key)->text);
    }
    CHECK(
        check_defaults(
            schema, schema.resolved(properties->find("key")), *tool.find("key"), "key"
        ) == 4
    );
}
