#include "tools/leaf_check.hpp"

#include <fmt/format.h>
#include <re2/re2.h>

#include <algorithm>
#include <unordered_set>

#include "outbox/utf8.hpp"
#include "tools/schema_limits.hpp"

namespace tools {
namespace {

using outbox::Decimal;
using outbox::Json;

// What a step is worth, in bytes of text that are read.
constexpr std::size_t kBytesPerStep = 64;

std::string_view type_of(const Json& value) {
    if (value.is_null()) return "null";
    if (value.as_bool() != nullptr) return "boolean";
    if (value.as_string() != nullptr) return "string";
    if (value.as_array() != nullptr) return "array";
    if (value.as_object() != nullptr) return "object";
    return "number";
}

bool is_of_type(const Json& value, std::string_view type) {
    if (type != "integer") return type_of(value) == type;
    const auto* number = value.as_number();
    return number != nullptr && is_integer(outbox::parse_decimal(number->text));
}

// Equal values have equal texts: numbers by value, members sorted.
void append_canonical(std::string& out, const Json& value) {
    SchemaWork::spend();
    if (const auto* number = value.as_number()) {
        const auto decimal = outbox::parse_decimal(number->text);
        out +=
            fmt::format("{}{}e{},", decimal.negative ? "-" : "", decimal.digits, decimal.exponent);
    } else if (const auto* items = value.as_array()) {
        out += '[';
        for (const auto& item : *items) append_canonical(out, item);
        out += ']';
    } else if (const auto* members = value.as_object()) {
        std::vector<const Json::Member*> sorted;
        for (const auto& member : *members) sorted.push_back(&member);
        std::sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
            return a->first < b->first;
        });
        out += '{';
        for (const auto* member : sorted) {
            append_canonical(out, Json(member->first));
            append_canonical(out, member->second);
        }
        out += '}';
    } else {
        out += outbox::to_text(value);
        out += ',';
    }
}

bool all_different(const Json::Array& items) {
    std::unordered_set<std::string> seen;
    for (const auto& item : items) {
        std::string text;
        append_canonical(text, item);
        SchemaWork::spend(text.size() / kBytesPerStep);
        if (!seen.insert(std::move(text)).second) return false;
    }
    return true;
}

std::uint64_t to_integer(const std::string& digits) {
    std::uint64_t value = 0;
    for (const char digit : digits) value = value * 10 + static_cast<std::uint64_t>(digit - '0');
    return value;
}

__extension__ using Wide = unsigned __int128;

std::uint64_t multiply(std::uint64_t a, std::uint64_t b, std::uint64_t modulus) {
    return static_cast<std::uint64_t>(static_cast<Wide>(a) * b % modulus);
}

std::string joined(const std::vector<std::string>& words) {
    std::string text;
    for (std::size_t i = 0; i < words.size(); ++i) {
        text += i == 0 ? "" : i + 1 == words.size() ? " or " : ", ";
        text += words[i];
    }
    return text;
}

}  // namespace

bool LeafCheck::empty() const {
    return !never && types.empty() && !one_of && !minimum && !maximum && !above && !below &&
           !multiple_of && patterns.empty() && !unique;
}

LeafCheck::Complaint LeafCheck::check(const Json& value) const {
    if (never) return "nothing is allowed here";
    if (!types.empty() && std::none_of(types.begin(), types.end(), [&](const auto& type) {
            return is_of_type(value, type);
        })) {
        return fmt::format("expected {}, not {}", joined(types), type_of(value));
    }
    if (one_of) {
        SchemaWork::spend(one_of->size());
        const bool known = std::any_of(one_of->begin(), one_of->end(), [&](const Json& one) {
            return one.equals(value);
        });
        if (!known) return "expected " + one_of_text;
    }
    if (const auto* number = value.as_number()) return check_number(number->text);
    if (const auto* text = value.as_string()) {
        for (const auto& pattern : patterns) {
            SchemaWork::spend(text->size() / kBytesPerStep);
            if (!re2::RE2::PartialMatch(
                    re2::StringPiece(text->data(), text->size()), *pattern.regex
                )) {
                return "expected " + pattern.expected;
            }
        }
    }
    if (const auto* items = value.as_array();
        items != nullptr && unique && !all_different(*items)) {
        return "expected items that all differ";
    }
    return std::nullopt;
}

LeafCheck::Complaint LeafCheck::check_number(std::string_view text) const {
    if (!minimum && !maximum && !above && !below && !multiple_of) return std::nullopt;
    SchemaWork::spend(text.size() / kBytesPerStep);
    const auto value = outbox::parse_decimal(text);
    if (minimum && compare(value, minimum->limit) < 0) return "expected at least " + minimum->text;
    if (maximum && compare(value, maximum->limit) > 0) return "expected at most " + maximum->text;
    if (above && compare(value, above->limit) <= 0) return "expected more than " + above->text;
    if (below && compare(value, below->limit) >= 0) return "expected less than " + below->text;
    if (multiple_of && !is_multiple(value, multiple_of->limit)) {
        return "expected a multiple of " + multiple_of->text;
    }
    return std::nullopt;
}

int compare(const Decimal& a, const Decimal& b) {
    if (a == b) return 0;
    const auto sign = [](const Decimal& one) {
        return one.digits.empty() ? 0 : one.negative ? -1 : 1;
    };
    if (sign(a) != sign(b)) return sign(a) < sign(b) ? -1 : 1;
    const int larger = sign(a);  // what a larger magnitude means
    if (a.exponent != b.exponent) return a.exponent > b.exponent ? larger : -larger;
    return a.digits > b.digits ? larger : -larger;
}

// value = V × 10^v, of = M × 10^m with whole V and M without trailing zeros.
bool is_multiple(const Decimal& value, const Decimal& of) {
    if (value.digits.empty()) return true;
    if (value.huge || of.digits.empty()) return false;
    const auto power = (value.exponent - static_cast<std::int64_t>(value.digits.size())) -
                       (of.exponent - static_cast<std::int64_t>(of.digits.size()));
    if (power < 0) return false;  // V has no factor 10
    const auto modulus = to_integer(of.digits);
    std::uint64_t rest = 0;
    for (const char digit : value.digits) {
        rest = static_cast<std::uint64_t>(
            (static_cast<Wide>(rest) * 10 + static_cast<Wide>(digit - '0')) % modulus
        );
    }
    std::uint64_t ten = 10 % modulus;
    for (auto left = power; left > 0; left /= 2) {
        if (left % 2 == 1) rest = multiply(rest, ten, modulus);
        ten = multiply(ten, ten, modulus);
    }
    return rest % modulus == 0;
}

bool is_integer(const Decimal& value) {
    return value.digits.empty() ||
           (!value.huge && value.exponent >= static_cast<std::int64_t>(value.digits.size()));
}

std::shared_ptr<const re2::RE2> compile_regex(const std::string& text, std::string& error) {
    re2::RE2::Options options;
    options.set_log_errors(false);
    options.set_max_mem(1 << 20);
    auto regex = std::make_shared<const re2::RE2>(text, options);
    if (regex->ok()) return regex;
    error = regex->error();
    return nullptr;
}

namespace {

struct Format {
    std::string name;
    std::string expected;
    std::string regex;
};

const std::vector<Format>& formats() {
    static const std::string date = R"(\d{4}-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01]))";
    static const std::string time =
        R"(([01]\d|2[0-3]):[0-5]\d:([0-5]\d|60)(\.\d+)?([Zz]|[+-]([01]\d|2[0-3]):[0-5]\d))";
    static const std::string byte = R"((25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d))";
    static const std::vector<Format> all = {
        {"date", "a date (2026-11-30)", "^" + date + "$"},
        {"time", "a time with its zone (18:30:00Z)", "^" + time + "$"},
        {"date-time",
         "a date and time with its zone (2026-11-30T18:30:00Z)",
         "^" + date + "[Tt]" + time + "$"},
        {"uuid", "a UUID", "^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$"},
        {"email", "an e-mail address", R"(^[^@\s]+@[^@\s]+$)"},
        {"ipv4", "an IPv4 address", "^(" + byte + R"(\.){3})" + byte + "$"},
        {"uri", "a URI with its scheme", R"(^[A-Za-z][A-Za-z0-9+.-]*:[^\s\\<>"{}|^`]*$)"},
    };
    return all;
}

}  // namespace

std::optional<LeafCheck::Pattern> format_pattern(std::string_view format) {
    for (const auto& known : formats()) {
        if (known.name != format) continue;
        std::string error;
        return LeafCheck::Pattern{compile_regex(known.regex, error), known.expected};
    }
    return std::nullopt;
}

const std::vector<std::string>& checked_formats() {
    static const std::vector<std::string> names = [] {
        std::vector<std::string> all;
        for (const auto& known : formats()) all.emplace_back(known.name);
        return all;
    }();
    return names;
}

}  // namespace tools
