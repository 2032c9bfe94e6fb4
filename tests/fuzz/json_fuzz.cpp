// JSON in, the same JSON out: strict and tolerant parsing, canonical form, derived ids, and what
// is stored. Parts: one JSON text, another one, a JSON pointer.
#include <algorithm>

#include "outbox/operation_key.hpp"
#include "tests/fuzz/harness.hpp"

namespace {

using fuzz::must;
using outbox::Json;

Json reversed(const Json& value) {
    if (const auto* array = value.as_array()) {
        Json::Array items;
        for (const auto& item : *array) items.push_back(reversed(item));
        return items;
    }
    if (const auto* object = value.as_object()) {
        Json::Object members;
        for (const auto& [key, item] : *object) members.emplace_back(key, reversed(item));
        std::reverse(members.begin(), members.end());
        return members;
    }
    return value;
}

Json parsed(const std::string& text, std::string_view what) {
    auto result = outbox::parse_json(text);
    must(result.value.has_value(), what, text);
    return std::move(*result.value);
}

void check_text(const Json& value) {
    const auto text = outbox::to_text(value);
    must(fuzz::is_utf8(text), "JSON is written as UTF-8", text);
    const auto again = parsed(text, "what is written can be read");
    must(again.equals(value) && value.equals(again), "what is read is what was written", text);
    must(outbox::to_text(again) == text, "written twice the same", text);
    const auto foreign = outbox::parse_foreign_json(text);
    must(foreign.value && foreign.value->equals(value), "the tolerant parser agrees", text);
}

void check_canonical(const Json& value) {
    for (const bool trim : {false, true}) {
        const auto canonical = outbox::canonical_json(value, trim);
        if (canonical.error) {
            must(canonical.text.empty() && !canonical.error->message.empty(), "a refusal speaks");
            continue;
        }
        const auto again = parsed(canonical.text, "the canonical form is JSON");
        must(trim || again.equals(value), "the canonical form is the same value", canonical.text);
        must(
            outbox::canonical_json(again, trim).text == canonical.text,
            "canonical twice the same",
            canonical.text
        );
        must(
            outbox::canonical_json(reversed(value), trim).text == canonical.text,
            "the order of members does not matter",
            canonical.text
        );
    }
}

void check_key(const Json& value) {
    const auto key = outbox::operation_key("tool", value, "run-1");
    const auto canonical = outbox::canonical_json(value, true);
    must(key.error.has_value() == canonical.error.has_value(), "one rule for both");
    if (key.error) {
        must(key.key.empty(), "no key beside an error");
        return;
    }
    must(key.key.size() == 64, "a key is a SHA-256", key.key);
    const auto whole = parsed(key.canonical, "what is hashed is JSON");
    must(
        outbox::canonical_json(whole, false).text == key.canonical,
        "what is hashed is canonical",
        key.canonical
    );
    const auto again = parsed(canonical.text, "the canonical form is JSON");
    must(
        outbox::operation_key("tool", again, "run-1").key == key.key,
        "canonical arguments give the same key",
        canonical.text
    );
    must(
        outbox::operation_key("tool", value, "run-1", 2).key != key.key &&
            outbox::operation_key("tool", value, "run-2").key != key.key &&
            outbox::operation_key("other", value, "run-1").key != key.key,
        "tool, run and occurrence make another key",
        canonical.text
    );
}

// Equal values and equal canonical texts are the same thing.
void check_pair(const Json& a, const Json& b) {
    must(a.equals(b) == b.equals(a), "equality goes both ways", outbox::to_text(a));
    const auto left = outbox::canonical_json(a, false);
    const auto right = outbox::canonical_json(b, false);
    if (left.error || right.error) return;
    must(a.equals(b) == (left.text == right.text), "equal means equally written", left.text);
}

}  // namespace

void fuzz::run_input(std::string_view input) {
    const auto parts = parts_of(input, 3);
    const auto foreign = outbox::parse_foreign_json(parts[0]);
    if (foreign.value) {
        check_text(*foreign.value);
        check_storable(*foreign.value);
    }
    const auto strict = outbox::parse_json(parts[0]);
    must(strict.value || !strict.error.empty(), "a refusal says why");
    must(strict.offset <= parts[0].size(), "the place is in the text");
    if (!strict.value) return;
    must(foreign.value && foreign.value->equals(*strict.value), "the tolerant parser takes more");
    check_text(*strict.value);
    check_canonical(*strict.value);
    check_key(*strict.value);
    if (const auto* there = strict.value->at_pointer(parts[2])) check_text(*there);
    const auto other = outbox::parse_json(parts[1]);
    if (other.value) check_pair(*strict.value, *other.value);
}
