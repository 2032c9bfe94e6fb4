#include <boost/json/basic_parser_impl.hpp>
#include <boost/json/system_error.hpp>
#include <unordered_set>

#include "outbox/json.hpp"
#include "outbox/utf8.hpp"

namespace outbox {
namespace {

namespace json = boost::json;
using json::error_code;
using json::string_view;

// Builds a Json from the tokens of Boost.JSON's strict parser and keeps the text of numbers.
struct Handler {
    static constexpr auto kNoLimit = std::size_t(-1);
    static constexpr std::size_t max_object_size = kNoLimit;
    static constexpr std::size_t max_array_size = kNoLimit;
    static constexpr std::size_t max_key_size = kNoLimit;
    static constexpr std::size_t max_string_size = kNoLimit;

    std::vector<Json> stack;        // open arrays and objects
    std::vector<std::string> keys;  // key waiting for its value, one per open object
    std::string text;               // parts of the string or number under way
    Json root;

    void put(Json value) {
        if (stack.empty()) {
            root = std::move(value);
        } else if (auto* array = stack.back().as_array()) {
            array->push_back(std::move(value));
        } else {
            stack.back().as_object()->emplace_back(std::move(keys.back()), std::move(value));
            keys.pop_back();
        }
    }
    Json take() {
        auto value = std::move(stack.back());
        stack.pop_back();
        return value;
    }
    bool part(string_view s) {
        text.append(s.data(), s.size());
        return true;
    }
    bool number(string_view rest) {
        part(rest);
        put(Json::Number{std::exchange(text, {})});
        return true;
    }

    bool on_document_begin(error_code&) { return true; }
    bool on_document_end(error_code&) { return true; }
    bool on_object_begin(error_code&) {
        stack.emplace_back(Json::Object{});
        return true;
    }
    bool on_object_end(std::size_t, error_code&) {
        auto value = take();
        keep_last(*value.as_object());
        put(std::move(value));
        return true;
    }
    bool on_array_begin(error_code&) {
        stack.emplace_back(Json::Array{});
        return true;
    }
    bool on_array_end(std::size_t, error_code&) {
        put(take());
        return true;
    }
    bool on_key_part(string_view s, std::size_t, error_code&) { return part(s); }
    bool on_key(string_view s, std::size_t, error_code&) {
        part(s);
        keys.push_back(std::exchange(text, {}));
        return true;
    }
    bool on_string_part(string_view s, std::size_t, error_code&) { return part(s); }
    bool on_string(string_view s, std::size_t, error_code&) {
        part(s);
        put(std::exchange(text, {}));
        return true;
    }
    bool on_number_part(string_view s, error_code&) { return part(s); }
    bool on_int64(std::int64_t, string_view s, error_code&) { return number(s); }
    bool on_uint64(std::uint64_t, string_view s, error_code&) { return number(s); }
    bool on_double(double, string_view s, error_code&) { return number(s); }
    bool on_bool(bool b, error_code&) {
        put(b);
        return true;
    }
    bool on_null(error_code&) {
        put(nullptr);
        return true;
    }
    bool on_comment_part(string_view, error_code&) { return true; }
    bool on_comment(string_view, error_code&) { return true; }

    // A repeated key keeps its last value, as jsonb does; linear, for hostile answers.
    static void keep_last(Json::Object& object) {
        std::unordered_set<std::string_view> seen;
        std::vector<bool> keep(object.size(), true);
        bool repeated = false;
        for (auto i = object.size(); i-- > 0;) {
            keep[i] = seen.insert(object[i].first).second;
            repeated = repeated || !keep[i];
        }
        if (!repeated) return;
        Json::Object unique;
        for (std::size_t i = 0; i < object.size(); ++i) {
            if (keep[i]) unique.push_back(std::move(object[i]));
        }
        object = std::move(unique);
    }
};

// Value of the four hex digits of \uXXXX at `at`, or −1.
int escape_unit(std::string_view text, std::size_t at) {
    if (text.size() - at < 6 || text[at] != '\\' || text[at + 1] != 'u') return -1;
    int unit = 0;
    for (std::size_t i = at + 2; i < at + 6; ++i) {
        const char c = text[i];
        const int digit = c >= '0' && c <= '9'   ? c - '0'
                          : c >= 'a' && c <= 'f' ? c - 'a' + 10
                          : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                                 : -1;
        if (digit < 0) return -1;
        unit = unit * 16 + digit;
    }
    return unit;
}

bool is_high(int unit) {
    return unit >= 0xD800 && unit <= 0xDBFF;
}
bool is_low(int unit) {
    return unit >= 0xDC00 && unit <= 0xDFFF;
}

// A backslash is valid only inside strings, so the escapes can be walked without a tokenizer.
std::string replace_lone_surrogates(std::string_view text) {
    std::string out;
    out.reserve(text.size());
    for (std::size_t at = 0; at < text.size();) {
        if (text[at] != '\\' || at + 1 == text.size()) {
            out += text[at++];
            continue;
        }
        const int unit = escape_unit(text, at);
        if (is_high(unit) && at + 6 < text.size() && is_low(escape_unit(text, at + 6))) {
            out += text.substr(at, 12);
            at += 12;
        } else if (is_high(unit) || is_low(unit)) {
            out += "\\ufffd";
            at += 6;
        } else {
            out += text.substr(at, 2);
            at += 2;
        }
    }
    return out;
}

}  // namespace

ParsedJson parse_json(std::string_view text, ParseLimits limits) {
    json::parse_options options;
    options.max_depth = limits.max_depth;
    json::basic_parser<Handler> parser(options);
    error_code error;
    const auto read = parser.write_some(false, text.data(), text.size(), error);
    ParsedJson parsed;
    parsed.offset = read;
    if (error) {
        parsed.error = error.message();
    } else if (read < text.size()) {
        parsed.error = "something follows the JSON value";
    } else {
        parsed.value = std::move(parser.handler().root);
    }
    return parsed;
}

ParsedJson parse_foreign_json(std::string_view text, ParseLimits limits) {
    if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);  // a byte order mark
    return parse_json(replace_lone_surrogates(repair_utf8(text)), limits);
}

}  // namespace outbox
