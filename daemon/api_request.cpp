#include "daemon/api_request.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "config/nearest.hpp"
#include "outbox/operation.hpp"
#include "outbox/utf8.hpp"

namespace outboxd {

namespace {

constexpr std::size_t kLongestText = 4096;  // of a reason, in bytes
constexpr std::int64_t kLargestPage = 1000;

bool is_hex(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

// Whole text that Postgres takes: UTF-8 without NUL.
bool is_storable(std::string_view text) {
    for (std::size_t at = 0; at < text.size();) {
        const auto length = outbox::utf8_sequence(text, at);
        if (length == 0 || text[at] == '\0') return false;
        at += length;
    }
    return true;
}

std::string decoded(std::string_view text, bool plus_is_space, std::string_view what) {
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') continue;
        if (i + 2 < text.size() && is_hex(text[i + 1]) && is_hex(text[i + 2])) continue;
        throw ApiProblem(
            400,
            "Bad request",
            fmt::format("{} holds a % that no two hexadecimal digits follow; write %25", what)
        );
    }
    auto value = percent_decode(text, plus_is_space);
    if (is_storable(value)) return value;
    throw ApiProblem(400, "Bad request", fmt::format("{} is no UTF-8 text, or holds a NUL", what));
}

[[noreturn]] void bad_parameter(std::string_view name, const std::string& detail) {
    throw ApiProblem(400, "Bad request", detail, {{"parameter", name}});
}

[[noreturn]] void bad_member(std::string_view name, const std::string& detail) {
    std::string pointer = "/";
    for (const char c : name) {
        if (c == '~' || c == '/') {
            pointer += c == '~' ? "~0" : "~1";
        } else {
            pointer += c;
        }
    }
    throw ApiProblem(400, "Bad request", detail, {{"pointer", std::move(pointer)}});
}

std::int64_t read_number(
    std::string_view name, const std::string& text, std::int64_t least, std::int64_t most
) {
    std::int64_t number = 0;
    const auto* end = text.data() + text.size();
    const auto [last, error] = std::from_chars(text.data(), end, number);
    if (error == std::errc() && last == end && number >= least && number <= most) return number;
    bad_parameter(name, fmt::format("{} is a whole number from {} to {}", name, least, most));
}

void read_statuses(const std::string& text, outbox::pg::ListFilter& filter) {
    std::string_view rest = text;
    for (;;) {
        const auto one = rest.substr(0, rest.find(','));
        if (!outbox::parse_status(one)) {
            bad_parameter(
                "status",
                "status is one of pending, scheduled, attempting, unknown, succeeded, failed, "
                "cancelled; several are separated by commas"
            );
        }
        filter.statuses.emplace_back(one);
        if (one.size() == rest.size()) return;
        rest.remove_prefix(one.size() + 1);
    }
}

using Pairs = std::vector<std::pair<std::string, std::string>>;

Pairs query_of(const ServerRequest& request) {
    Pairs pairs;
    std::string_view rest = request.query;
    while (!rest.empty()) {
        const auto pair = rest.substr(0, rest.find('&'));
        rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
        if (pair.empty()) continue;
        const auto mark = std::min(pair.find('='), pair.size());
        pairs.emplace_back(
            decoded(pair.substr(0, mark), true, "the query"),
            decoded(pair.substr(std::min(mark + 1, pair.size())), true, "the query")
        );
    }
    return pairs;
}

std::string unknown_hint(const std::string& name, const std::vector<std::string>& known) {
    const auto hint = config::nearest_hint(name, known);
    return hint.empty() ? std::string() : "; " + hint;
}

}  // namespace

ApiProblem::ApiProblem(int status, std::string title, const std::string& detail, Members members)
    : std::runtime_error(detail),
      status_(status),
      title_(std::move(title)),
      members_(std::move(members)) {}

ServerResponse ApiProblem::response() const {
    auto response = problem(status_, title_, what());
    if (!members_.empty()) {
        auto body = outbox::parse_json(response.body).value.value_or(outbox::Json());
        for (const auto& [name, value] : members_) body.set(name, value);
        response.body = outbox::to_text(body);
    }
    if (status_ == 503) response.headers.emplace_back("Retry-After", "2");
    return response;
}

std::vector<std::string> api_path(std::string_view path) {
    constexpr std::string_view kPrefix = "/api/v1/";
    path.remove_prefix(std::min(kPrefix.size(), path.size()));
    std::vector<std::string> segments;
    for (;;) {
        const auto one = path.substr(0, path.find('/'));
        segments.push_back(decoded(one, false, "the path"));
        if (one.size() == path.size()) return segments;
        path.remove_prefix(one.size() + 1);
    }
}

void refuse_query(const ServerRequest& request) {
    for (const auto& [name, value] : query_of(request)) {
        bad_parameter(name, fmt::format("{} is no parameter of this path, which has none", name));
    }
}

outbox::pg::ListFilter read_list_query(const ServerRequest& request) {
    static const std::vector<std::string> kKnown{"status", "tool", "attention", "after", "limit"};
    constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
    outbox::pg::ListFilter filter;
    for (const auto& [name, value] : query_of(request)) {
        if (name == "status") {
            read_statuses(value, filter);
        } else if (name == "tool") {
            filter.tool = value;
        } else if (name == "attention") {
            if (value != "true" && value != "false") {
                bad_parameter(name, "attention is true or false");
            }
            filter.attention = value == "true";
        } else if (name == "after") {
            filter.after = read_number(name, value, 1, kMost);
        } else if (name == "limit") {
            filter.limit = read_number(name, value, 1, kLargestPage);
        } else {
            bad_parameter(
                name,
                fmt::format("{} is no parameter of the list{}", name, unknown_hint(name, kKnown))
            );
        }
    }
    return filter;
}

ApiBody::ApiBody(const std::string& text) {
    auto parsed = outbox::parse_json(text.empty() ? "{}" : text);
    if (!parsed.value) {
        throw ApiProblem(
            400,
            "Bad request",
            fmt::format("the body is no JSON: {} (at byte {})", parsed.error, parsed.offset),
            {{"pointer", ""}}
        );
    }
    if (parsed.value->as_object() == nullptr) {
        throw ApiProblem(400, "Bad request", "the body is a JSON object", {{"pointer", ""}});
    }
    body_ = std::move(*parsed.value);
}

const outbox::Json* ApiBody::take(std::string_view name) {
    known_.emplace_back(name);
    const auto* value = body_.find(name);
    return value != nullptr && value->is_null() ? nullptr : value;
}

std::optional<std::string> ApiBody::optional_text(std::string_view name) {
    const auto* value = take(name);
    if (value == nullptr) return std::nullopt;
    const auto* text = value->as_string();
    if (text == nullptr) bad_member(name, fmt::format("{} is a text", name));
    if (text->size() > kLongestText) {
        bad_member(name, fmt::format("{} has more than {} bytes", name, kLongestText));
    }
    if (!is_storable(*text)) bad_member(name, fmt::format("{} holds a NUL", name));
    return *text;
}

std::string ApiBody::text(std::string_view name) {
    auto given = optional_text(name);
    if (!given) bad_member(name, fmt::format("{} is missing", name));
    return std::move(*given);
}

int ApiBody::integer(std::string_view name) {
    const auto* value = take(name);
    if (value == nullptr) bad_member(name, fmt::format("{} is missing", name));
    const auto* number = value->as_number();
    int result = 0;
    if (number != nullptr) {
        const auto* end = number->text.data() + number->text.size();
        const auto [last, error] = std::from_chars(number->text.data(), end, result);
        if (error == std::errc() && last == end) return result;
    }
    bad_member(name, fmt::format("{} is a whole number", name));
}

std::optional<std::string> ApiBody::json(std::string_view name) {
    const auto* value = take(name);
    return value == nullptr ? std::nullopt : std::optional(outbox::to_text(*value));
}

std::optional<std::string> ApiBody::object(std::string_view name) {
    const auto* value = take(name);
    if (value == nullptr) return std::nullopt;
    if (value->as_object() == nullptr) bad_member(name, fmt::format("{} is an object", name));
    return outbox::to_text(*value);
}

void ApiBody::finish() const {
    for (const auto& [name, value] : *body_.as_object()) {
        if (std::find(known_.begin(), known_.end(), name) != known_.end()) continue;
        bad_member(
            name, fmt::format("{} is no member of this request{}", name, unknown_hint(name, known_))
        );
    }
}

}  // namespace outboxd
