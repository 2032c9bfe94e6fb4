// The JSON Schema Test Suite of the JSON Schema organisation (Debian: json-schema-test-suite), as
// far as our vocabulary goes. What compiles must judge every test as the suite does.
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>

#include "tests/unit/tools/tool_fixture.hpp"
#include "tools/arguments_schema.hpp"

namespace fs = std::filesystem;
using namespace test;

namespace {

const fs::path kSuite = "/usr/share/json-schema-test-suite/tests";

// The JSON as the configuration reader would hand it on.
config::Value value_of(const Json& json) {
    using Kind = config::Value::Kind;
    config::Value value;
    value.mark.line = 1;
    if (const auto* boolean = json.as_bool()) {
        value.kind = Kind::boolean;
        value.text = *boolean ? "true" : "false";
    } else if (const auto* number = json.as_number()) {
        value.kind = Kind::number;
        value.text = number->text;
    } else if (const auto* text = json.as_string()) {
        value.kind = Kind::string;
        value.text = *text;
    } else if (const auto* items = json.as_array()) {
        value.kind = Kind::sequence;
        for (const auto& item : *items) value.items.push_back(value_of(item));
    } else if (const auto* members = json.as_object()) {
        value.kind = Kind::mapping;
        for (const auto& [name, member] : *members) {
            value.members.push_back({name, value.mark, value_of(member)});
        }
    }
    return value;
}

struct Tally {
    int judged = 0;
    int groups = 0;
    std::map<std::string, int> refused;  // file: groups that did not compile
};

// Groups whose meaning we left on purpose, by description.
const std::set<std::string> kOtherwise = {
    // Siblings of $ref count here, as since draft 2019-09.
    "ref overrides any sibling keywords",
    "$ref prevents a sibling $id from changing the base uri",
};

void run(const fs::path& file, Tally& tally) {
    std::ifstream in(file);
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const auto groups = outbox::parse_json(text);
    REQUIRE(groups.value);
    for (const auto& group : *groups.value->as_array()) {
        const auto& name = *group.find("description")->as_string();
        if (kOtherwise.contains(name)) continue;
        config::Diagnostics diagnostics;
        const auto schema =
            tools::ArgumentsSchema::compile(value_of(*group.find("schema")), diagnostics);
        if (!schema) {
            ++tally.refused[file.stem().string()];
            continue;
        }
        ++tally.groups;
        for (const auto& one : *group.find("tests")->as_array()) {
            INFO(file.filename() << ": " << name << ": " << *one.find("description")->as_string());
            const auto violation = schema->violation(*one.find("data"));
            INFO(violation.value_or("fits"));
            CHECK(!violation == *one.find("valid")->as_bool());
            ++tally.judged;
        }
    }
}

}  // namespace

TEST_CASE("the JSON Schema Test Suite, draft 7") {
    INFO("install json-schema-test-suite");
    REQUIRE(fs::exists(kSuite / "draft7"));
    Tally tally;
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(kSuite / "draft7")) {
        if (entry.path().extension() == ".json") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const auto& file : files) {
        // Only local references, and $id changes nothing.
        if (file.stem() == "refRemote" || file.stem() == "id" || file.stem() == "definitions" ||
            file.stem() == "unknownKeyword") {
            continue;
        }
        run(file, tally);
    }
    for (const auto& [file, count] : tally.refused) {
        UNSCOPED_INFO(file << " refused: " << count);
    }
    CHECK(tally.judged >= 350);
    // What is refused is refused for a reason that stands in the documentation.
    const std::set<std::string> expected = {
        "additionalProperties", "patternProperties", "properties", "ref", "infinite-loop-detection"
    };
    for (const auto& [file, count] : tally.refused) {
        INFO(file);
        CHECK(expected.contains(file));
    }
}

TEST_CASE("the JSON Schema Test Suite, exact numbers") {
    Tally tally;
    run(kSuite / "draft7/optional/bignum.json", tally);
    run(kSuite / "draft7/optional/zeroTerminatedFloats.json", tally);
    CHECK(tally.judged >= 9);
    CHECK(tally.refused.empty());
}
