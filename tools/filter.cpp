#include "tools/filter.hpp"

#include <algorithm>
#include <charconv>
#include <chrono>

#include "outbox/sha256.hpp"
#include "outbox/utf8.hpp"
#include "tools/encoding.hpp"
#include "tools/scope.hpp"

namespace tools {
namespace {

using outbox::Json;

std::string ascii_lower(std::string text) {
    for (char& c : text) {
        if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
    }
    return text;
}

std::string ascii_upper(std::string text) {
    for (char& c : text) {
        if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
    }
    return text;
}

bool is_space(char32_t c) {
    return (c >= 0x09 && c <= 0x0d) || c == 0x20 || c == 0xa0 || c == 0x1680 ||
           (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
           c == 0x205f || c == 0x3000 || c == 0xfeff;
}

std::size_t sequence(std::string_view text, std::size_t at) {
    return std::max<std::size_t>(outbox::utf8_sequence(text, at), 1);
}

bool space_at(std::string_view text, std::size_t at) {
    return outbox::utf8_sequence(text, at) > 0 && is_space(outbox::code_point(text, at));
}

std::string trim(std::string_view text) {
    std::size_t begin = 0;
    while (begin < text.size() && space_at(text, begin)) begin += sequence(text, begin);
    std::size_t end = begin;
    for (std::size_t at = begin; at < text.size();) {
        const bool space = space_at(text, at);
        at += sequence(text, at);
        if (!space) end = at;
    }
    return std::string(text.substr(begin, end - begin));
}

std::string truncate(std::string_view text, std::int64_t characters) {
    std::size_t at = 0;
    for (; characters > 0 && at < text.size(); --characters) at += sequence(text, at);
    return std::string(text.substr(0, at));
}

std::optional<std::int64_t> whole_number(const Json& value) {
    const auto* number = value.as_number();
    const auto* string = value.as_string();
    if (number == nullptr && string == nullptr) return std::nullopt;
    const std::string& text = number != nullptr ? number->text : *string;
    std::int64_t result = 0;
    const auto* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, result);
    if (parsed.ec != std::errc{} || parsed.ptr != end) return std::nullopt;
    return result;
}

// Seconds in the years 0001 to 9999: beyond them no calendar text exists.
constexpr std::int64_t kFirstSecond = -62'135'596'800;
constexpr std::int64_t kLastSecond = 253'402'300'799;

std::optional<outbox::DbTime> time_of(const Json& value) {
    if (const auto seconds = whole_number(value)) {
        if (*seconds < kFirstSecond || *seconds > kLastSecond) return std::nullopt;
        return outbox::DbTime{std::chrono::seconds{*seconds}};
    }
    const auto* text = value.as_string();
    return text == nullptr ? std::nullopt : parse_iso8601(*text);
}

Rendered<Json> apply_time_filter(const Filter& filter, const Json& value) {
    const auto time = time_of(value);
    if (!time) return invalid_argument("a value is neither an RFC 3339 time nor whole seconds");
    const auto seconds = std::chrono::floor<std::chrono::seconds>(time->time_since_epoch()).count();
    if (filter.id == FilterId::epoch) return Json(static_cast<std::int64_t>(seconds));
    if (filter.id == FilterId::iso8601) return Json(to_iso8601(*time));
    if (seconds + filter.integer < kFirstSecond || seconds + filter.integer > kLastSecond) {
        return invalid_argument("a time lies beyond the year 9999");
    }
    if (value.as_number() != nullptr) {
        return Json(static_cast<std::int64_t>(seconds + filter.integer));
    }
    return Json(to_iso8601(*time + std::chrono::seconds{filter.integer}));
}

Rendered<Json> join(const Json& value, const std::string& separator) {
    const auto* array = value.as_array();
    if (array == nullptr) return invalid_argument("join needs an array");
    std::string out;
    for (const auto& item : *array) {
        const auto text = scalar_text(item);
        if (!text) return invalid_argument("join needs an array of texts, numbers and booleans");
        if (&item != array->data()) out += separator;
        out += *text;
    }
    return Json(std::move(out));
}

Rendered<Json> escaped(std::optional<std::string> text, const char* where) {
    if (text) return Json(std::move(*text));
    return invalid_argument(
        std::string("a value holds a control character that ") + where + " cannot hold"
    );
}

}  // namespace

const std::vector<FilterKind>& filter_kinds() {
    using A = FilterArgument;
    static const std::vector<FilterKind> kKinds = {
        {FilterId::default_, "default", A::literal},
        {FilterId::optional, "optional", A::none},
        {FilterId::json, "json", A::none, true},
        {FilterId::lower, "lower", A::none},
        {FilterId::upper, "upper", A::none},
        {FilterId::trim, "trim", A::none},
        {FilterId::truncate, "truncate", A::integer},
        {FilterId::urlencode, "urlencode", A::none},
        {FilterId::base64, "base64", A::none},
        {FilterId::base64url, "base64url", A::none},
        {FilterId::hex, "hex", A::none},
        {FilterId::uuid, "uuid", A::none},
        {FilterId::base32hex, "base32hex", A::none},
        {FilterId::sha256, "sha256", A::none},
        {FilterId::short_, "short", A::none},
        {FilterId::iso8601, "iso8601", A::none},
        {FilterId::epoch, "epoch", A::none},
        {FilterId::add_seconds, "add_seconds", A::integer},
        {FilterId::join, "join", A::text},
        {FilterId::jql, "jql", A::none},
        {FilterId::ical_text, "ical_text", A::none, true},
        {FilterId::xml, "xml", A::none, true},
        {FilterId::raw, "raw", A::none, true},
    };
    return kKinds;
}

std::optional<std::string> scalar_text(const Json& value) {
    if (const auto* string = value.as_string()) return *string;
    if (const auto* number = value.as_number()) return number->text;
    if (const auto* boolean = value.as_bool()) return std::string(*boolean ? "true" : "false");
    return std::nullopt;
}

Rendered<Json> apply_filter(const Filter& filter, const Json& value) {
    switch (filter.id) {
        case FilterId::default_:
        case FilterId::optional:
        case FilterId::raw:
            return value;
        case FilterId::json:
            return Json(outbox::to_text(value));
        case FilterId::join:
            return join(value, filter.text);
        case FilterId::iso8601:
        case FilterId::epoch:
        case FilterId::add_seconds:
            return apply_time_filter(filter, value);
        default:
            break;
    }
    const auto text = scalar_text(value);
    if (!text) return invalid_argument("a filter for text got an array or an object; use | json");
    switch (filter.id) {
        case FilterId::lower:
            return Json(ascii_lower(*text));
        case FilterId::upper:
            return Json(ascii_upper(*text));
        case FilterId::trim:
            return Json(trim(*text));
        case FilterId::truncate:
            return Json(truncate(*text, filter.integer));
        case FilterId::urlencode:
            return Json(percent_encode(*text));
        case FilterId::base64:
            return Json(base64(*text));
        case FilterId::base64url:
            return Json(base64url(*text));
        case FilterId::hex:
            return Json(hex(*text));
        case FilterId::uuid:
            return Json(digest_uuid(*text));
        case FilterId::base32hex:
            return Json(base32hex(*text));
        case FilterId::sha256:
            return Json(outbox::sha256_hex(*text));
        case FilterId::short_:
            return Json(digest_short(*text));
        case FilterId::jql:
            return Json(jql_literal(*text));
        case FilterId::ical_text:
            return escaped(ical_escape(*text), "iCalendar");
        case FilterId::xml:
            return escaped(xml_escape(*text), "XML");
        default:
            return value;
    }
}

}  // namespace tools
