#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "config/diagnostics.hpp"

namespace config {

// A YAML value with its place: what the free parts of the configuration (json bodies, conditions,
// JSON Schema) are handed on as. Scalars keep their text; numbers are never converted.
struct Value {
    enum class Kind { null, boolean, number, string, sequence, mapping };
    struct Member;

    Kind kind = Kind::null;
    std::string text;    // scalar text after ${…} was resolved; "true"/"false" for booleans;
                         // of a number: a valid JSON number with the digits of the file
    std::string source;  // the text as the file has it, when ${…} was in it; printed instead
    std::vector<Value> items;
    std::vector<Member> members;  // in the order of the file
    Mark mark;
    bool plain = false;        // unquoted text that held ${…}: may be read as a number or a bool
    bool from_secret = false;  // ${file:} or ${cred:} was in it: never printed, never quoted
    bool unresolved = false;   // what is wrong with it was reported: nothing more to say

    [[nodiscard]] bool is(Kind k) const { return kind == k; }
    [[nodiscard]] const Value* find(std::string_view key) const;
    [[nodiscard]] const Member* member(std::string_view key) const;
};

struct Value::Member {
    std::string key;
    Mark key_mark;
    Value value;
};

// A string of the file with its place; may hold templates.
struct Text {
    std::string value;
    Mark mark;
    bool from_secret = false;  // ${file:}, ${cred:}: never printed
    std::string source = {};   // as the file has it, when ${…} was in it; printed instead
};

}  // namespace config
