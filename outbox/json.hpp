#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace outbox {

// A JSON value that keeps the text of its numbers: arguments must reach tools and keys with their
// exact digits, which no double can promise (9007199254740993, 20.0, 1e400).
// Objects keep the order of insertion; a repeated key replaces the earlier value, as jsonb does.
class Json {
 public:
    struct Number {
        std::string text;  // a valid JSON number, exactly as it was written
        friend bool operator==(const Number&, const Number&) = default;
    };
    using Array = std::vector<Json>;
    using Member = std::pair<std::string, Json>;
    using Object = std::vector<Member>;

    Json() = default;  // null
    Json(std::nullptr_t) {}
    Json(bool b) : value_(b) {}
    Json(Number n) : value_(std::move(n)) {}
    Json(std::int64_t n) : value_(Number{std::to_string(n)}) {}
    Json(int n) : value_(Number{std::to_string(n)}) {}
    Json(std::string s) : value_(std::move(s)) {}
    Json(std::string_view s) : value_(std::string(s)) {}
    Json(const char* s) : value_(std::string(s)) {}
    Json(Array a) : value_(std::move(a)) {}
    Json(Object o) : value_(std::move(o)) {}

    [[nodiscard]] bool is_null() const { return std::holds_alternative<std::nullptr_t>(value_); }
    [[nodiscard]] const bool* as_bool() const { return std::get_if<bool>(&value_); }
    [[nodiscard]] const Number* as_number() const { return std::get_if<Number>(&value_); }
    [[nodiscard]] const std::string* as_string() const { return std::get_if<std::string>(&value_); }
    [[nodiscard]] const Array* as_array() const { return std::get_if<Array>(&value_); }
    [[nodiscard]] const Object* as_object() const { return std::get_if<Object>(&value_); }
    [[nodiscard]] Array* as_array() { return std::get_if<Array>(&value_); }
    [[nodiscard]] Object* as_object() { return std::get_if<Object>(&value_); }

    // The member of that name; null when this is no object or has no such member.
    [[nodiscard]] const Json* find(std::string_view key) const;
    // Sets a member, replacing one of the same name. Turns null into an object first.
    void set(std::string key, Json value);
    // RFC 6901 pointer ("" is the value itself); null when nothing is there.
    [[nodiscard]] const Json* at_pointer(std::string_view pointer) const;

    // Equal JSON: numbers by exact value (1 = 1.0), objects regardless of order, types kept.
    [[nodiscard]] bool equals(const Json& other) const;

 private:
    std::variant<std::nullptr_t, bool, Number, std::string, Array, Object> value_{nullptr};
};

struct ParsedJson {
    std::optional<Json> value;  // empty: the text is no JSON
    std::string error;          // what is wrong, for a person
    std::size_t offset = 0;     // where, in bytes
};

struct ParseLimits {
    std::size_t max_depth = 512;
};

// Strict RFC 8259, one document, UTF-8 checked. Lone surrogates (\ud800) are an error here;
// parse_foreign_json is for what other people's servers say.
[[nodiscard]] ParsedJson parse_json(std::string_view text, ParseLimits limits = {});

// For answers of outside systems: as parse_json, but broken UTF-8 and lone surrogates become
// U+FFFD instead of an error: a known success must not be lost because of its wording.
[[nodiscard]] ParsedJson parse_foreign_json(std::string_view text, ParseLimits limits = {});

// Compact text; numbers as they were written.
[[nodiscard]] std::string to_text(const Json& value);

// What can be stored as jsonb, always: NUL becomes U+FFFD, numbers jsonb would expand or refuse
// become strings, and text over max_bytes is replaced by
// {"truncated": true, "sha256": …, "bytes": n, "head": first characters}.
[[nodiscard]] Json storable(Json value, std::size_t max_bytes);

}  // namespace outbox
