#include "tools/retry_after.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>

#include "config/units.hpp"
#include "tools/filter.hpp"
#include "tools/scope.hpp"

namespace tools {
namespace {

using std::chrono::milliseconds;

// Longer waits are cut: whatever is meant, give_up_after comes first.
constexpr milliseconds kLongest = std::chrono::hours{24 * 30};
// A number of seconds beyond this is a point in time: epoch seconds of X-RateLimit-Reset.
constexpr double kEpochSeconds = 1e9;
// … and beyond this, in milliseconds.
constexpr double kEpochMilliseconds = 1e12;

std::optional<double> seconds_of(const std::string& text) {
    auto parsed = outbox::parse_json(text);
    if (!parsed.value || parsed.value->as_number() == nullptr) return std::nullopt;
    // What no double holds is longer than any wait (an infinity), or none (zero).
    return std::strtod(text.c_str(), nullptr);
}

milliseconds bounded(milliseconds wait) {
    return std::clamp(wait, milliseconds{0}, kLongest);
}

int two_digits(std::string_view text, std::size_t at) {
    const char a = text[at];
    const char b = text[at + 1];
    if (a < '0' || a > '9' || b < '0' || b > '9') return -1;
    return (a - '0') * 10 + (b - '0');
}

}  // namespace

std::optional<std::chrono::sys_seconds> parse_http_date(std::string_view text) {
    constexpr std::array<std::string_view, 12> kMonths = {
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"
    };
    if (text.size() != 29 || text.substr(3, 2) != ", " || text.substr(25) != " GMT" ||
        text[19] != ':' || text[22] != ':') {
        return std::nullopt;
    }
    const auto month = std::find(kMonths.begin(), kMonths.end(), text.substr(8, 3));
    const int day = two_digits(text, 5), century = two_digits(text, 12),
              year = two_digits(text, 14);
    const int hour = two_digits(text, 17), minute = two_digits(text, 20),
              second = two_digits(text, 23);
    if (month == kMonths.end() || day < 1 || century < 0 || year < 0 || hour < 0 || hour > 23 ||
        minute < 0 || minute > 59 || second < 0 || second > 60) {
        return std::nullopt;
    }
    const std::chrono::year_month_day date{
        std::chrono::year{century * 100 + year},
        std::chrono::month{static_cast<unsigned>(month - kMonths.begin()) + 1},
        std::chrono::day{static_cast<unsigned>(day)}
    };
    if (!date.ok()) return std::nullopt;
    return std::chrono::sys_seconds{std::chrono::sys_days{date}} + std::chrono::hours{hour} +
           std::chrono::minutes{minute} + std::chrono::seconds{second};
}

RetryAfter RetryAfter::header(std::string name) {
    RetryAfter result;
    result.from_ = Source{Source::Kind::header, std::move(name)};
    return result;
}

std::optional<RetryAfter> RetryAfter::compile(
    const config::Text& text, config::Diagnostics& diagnostics
) {
    if (text.value == "header") return header("Retry-After");
    RetryAfter result;
    if (const auto duration = config::parse_duration(text.value)) {
        result.from_ = *duration;
        return result;
    }
    if (text.value.empty() || (text.value.front() != '/' && text.value.rfind("header:", 0) != 0)) {
        diagnostics.error(
            text.mark,
            "\"" + text.value + "\" is no retry_after",
            "header, header:X-Reset, a duration such as 2s, or a pointer such as /retry_in"
        );
        return std::nullopt;
    }
    auto source = compile_source(text, diagnostics);
    if (!source) return std::nullopt;
    result.from_ = std::move(*source);
    return result;
}

std::optional<milliseconds> RetryAfter::read(
    const Answer& answer, std::chrono::system_clock::time_point now
) const {
    if (const auto* fixed = std::get_if<milliseconds>(&from_)) return *fixed;
    const auto& source = std::get<Source>(from_);
    std::optional<std::string> text;
    if (source.kind == Source::Kind::header) {
        if (const auto* value = answer.header(source.name)) text = *value;
    } else if (answer.body) {
        if (const auto* value = answer.body->at_pointer(source.name)) text = scalar_text(*value);
    }
    if (!text) return std::nullopt;
    // In milliseconds: the year 9999 does not fit the nanoseconds of the system's clock.
    auto from = std::chrono::floor<milliseconds>(now);
    if (const auto* date = answer.header("Date")) {
        if (const auto theirs = parse_http_date(*date)) from = *theirs;
    }
    const auto until = [&](auto point) {
        return bounded(std::chrono::ceil<milliseconds>(point) - from);
    };
    if (const auto seconds = seconds_of(*text)) {
        if (!(*seconds >= 0)) return std::nullopt;
        if (*seconds < kEpochSeconds) {
            const auto longest = std::chrono::duration<double>(kLongest).count();
            const auto wait = std::chrono::duration<double>(std::min(*seconds, longest));
            return bounded(std::chrono::ceil<milliseconds>(wait));
        }
        const double point = *seconds < kEpochMilliseconds ? *seconds : *seconds / 1000;
        if (point > kEpochMilliseconds) return kLongest;
        return until(std::chrono::sys_seconds{std::chrono::seconds{static_cast<std::int64_t>(point)}
        });
    }
    if (const auto date = parse_http_date(*text)) return until(*date);
    if (const auto time = parse_iso8601(*text)) return until(*time);
    return std::nullopt;
}

}  // namespace tools
