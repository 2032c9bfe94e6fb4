#include "tools/scope.hpp"

#include <fmt/core.h>

#include <charconv>
#include <utility>

namespace tools {
namespace {

using outbox::Json;

const Json* child(const Json& value, const std::string& name) {
    if (const auto* array = value.as_array()) {
        std::size_t index = 0;
        const auto* end = name.data() + name.size();
        const auto parsed = std::from_chars(name.data(), end, index);
        const bool whole = parsed.ec == std::errc{} && parsed.ptr == end;
        return whole && index < array->size() ? &(*array)[index] : nullptr;
    }
    return value.find(name);
}

std::optional<Json> descend(
    const Json& start, const std::vector<std::string>& path, std::size_t from
) {
    const Json* value = &start;
    for (std::size_t i = from; i < path.size(); ++i) {
        value = child(*value, path[i]);
        if (value == nullptr) return std::nullopt;
    }
    return *value;
}

template <class T>
std::optional<Json> maybe(const std::optional<T>& value) {
    if (!value) return std::nullopt;
    return Json(*value);
}

std::optional<Json> of_operation(const outbox::ToolCall& call, const std::string& member) {
    if (member == "id") return Json(call.intent.id.value);
    if (member == "key") return Json(call.provider_key);
    if (member == "run_id") return maybe(call.intent.run_id);
    if (member == "tool") return Json(call.intent.tool);
    if (member == "attempt") return Json(call.attempt);
    if (member == "created_at") return Json(to_iso8601(call.intent.created_at));
    if (member == "first_sent_at") return Json(to_iso8601(call.first_sent_at));
    if (member == "traceparent") return maybe(call.intent.traceparent);
    return std::nullopt;
}

std::optional<Json> of_original(
    const outbox::Intent& intent, const std::vector<std::string>& path
) {
    if (path[1] == "arguments") return descend(intent.original_arguments, path, 2);
    if (path[1] == "result") return descend(intent.original_result, path, 2);
    if (path[1] == "id" && intent.compensates) return Json(intent.compensates->value);
    return std::nullopt;
}

std::optional<Json> of_page(const Page* page, const std::string& member) {
    if (page == nullptr) return std::nullopt;
    if (member == "number") return Json(page->number);
    if (member == "cursor" && !page->cursor.empty()) return Json(page->cursor);
    return std::nullopt;
}

// A fixed number of digits at `at`; −1 when they are not there.
int digits(std::string_view text, std::size_t at, std::size_t count) {
    if (at + count > text.size()) return -1;
    int value = 0;
    for (std::size_t i = at; i < at + count; ++i) {
        if (text[i] < '0' || text[i] > '9') return -1;
        value = value * 10 + (text[i] - '0');
    }
    return value;
}

// "Z", "+02:00", "-0530" and nothing behind; empty when it is none of them.
std::optional<std::chrono::minutes> parse_zone(std::string_view zone) {
    if (zone == "Z" || zone == "z") return std::chrono::minutes{0};
    if (zone.size() < 5 || (zone[0] != '+' && zone[0] != '-')) return std::nullopt;
    const std::size_t minutes_at = zone[3] == ':' ? 4 : 3;
    const int hours = digits(zone, 1, 2);
    const int minutes = digits(zone, minutes_at, 2);
    if (hours < 0 || hours > 23 || minutes < 0 || minutes > 59) return std::nullopt;
    if (zone.size() != minutes_at + 2) return std::nullopt;
    const auto offset = std::chrono::hours{hours} + std::chrono::minutes{minutes};
    return zone[0] == '-' ? -offset : offset;
}

}  // namespace

std::optional<Json> lookup(const Scope& scope, const std::vector<std::string>& path) {
    const auto& root = path.front();
    if (root == "arguments") return descend(scope.call.intent.arguments, path, 1);
    if (path.size() < 2) return std::nullopt;
    if (root == "operation") return of_operation(scope.call, path[1]);
    if (root == "original") return of_original(scope.call.intent, path);
    if (root == "page") return of_page(scope.page, path[1]);
    return std::nullopt;
}

const std::vector<Root>& template_roots() {
    static const std::vector<Root> kRoots = {
        {"arguments", {}},
        {"operation",
         {"id", "key", "run_id", "tool", "attempt", "created_at", "first_sent_at", "traceparent"}},
        {"original", {"arguments", "result", "id"}},
        {"page", {"number", "cursor"}},
    };
    return kRoots;
}

std::string to_iso8601(outbox::DbTime time) {
    const auto day = std::chrono::floor<std::chrono::days>(time);
    const std::chrono::year_month_day date{day};
    const std::chrono::hh_mm_ss clock{time - day};
    auto text = fmt::format(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
        static_cast<int>(date.year()),
        static_cast<unsigned>(date.month()),
        static_cast<unsigned>(date.day()),
        clock.hours().count(),
        clock.minutes().count(),
        clock.seconds().count()
    );
    if (clock.subseconds().count() != 0) text += fmt::format(".{:06}", clock.subseconds().count());
    return text += 'Z';
}

std::optional<outbox::DbTime> parse_iso8601(std::string_view text) {
    constexpr std::size_t kSecondsEnd = 19;  // 2026-01-02T03:04:05
    if (text.size() <= kSecondsEnd || text[4] != '-' || text[7] != '-' || text[13] != ':' ||
        text[16] != ':' || (text[10] != 'T' && text[10] != 't' && text[10] != ' ')) {
        return std::nullopt;
    }
    const int year = digits(text, 0, 4), month = digits(text, 5, 2), day = digits(text, 8, 2);
    const int hour = digits(text, 11, 2), minute = digits(text, 14, 2),
              second = digits(text, 17, 2);
    if (year < 0 || month < 0 || day < 0) return std::nullopt;
    if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 60) {
        return std::nullopt;
    }
    const std::chrono::year_month_day date{
        std::chrono::year{year},
        std::chrono::month{static_cast<unsigned>(month)},
        std::chrono::day{static_cast<unsigned>(day)}
    };
    if (!date.ok()) return std::nullopt;
    std::size_t at = kSecondsEnd;
    int micros = 0;
    if (text[at] == '.') {
        int unit = 100'000;
        for (++at; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at, unit /= 10) {
            micros += unit * (text[at] - '0');
        }
    }
    const auto zone = parse_zone(text.substr(at));
    if (!zone) return std::nullopt;
    return outbox::DbTime{std::chrono::sys_days{date}} + std::chrono::hours{hour} +
           std::chrono::minutes{minute} + std::chrono::seconds{second} +
           std::chrono::microseconds{micros} - *zone;
}

}  // namespace tools
