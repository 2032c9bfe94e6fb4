#include "config/units.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <utility>

namespace config {
namespace {

using std::chrono::milliseconds;

constexpr std::array<std::pair<std::string_view, std::int64_t>, 5> kDurationUnits{{
    {"ms", 1},
    {"s", 1'000},
    {"m", 60'000},
    {"h", 3'600'000},
    {"d", 86'400'000},
}};
constexpr std::array<std::pair<std::string_view, std::int64_t>, 4> kSizeUnits{{
    {"B", 1},
    {"KiB", 1024},
    {"MiB", 1024 * 1024},
    {"GiB", 1024 * 1024 * 1024},
}};
constexpr std::array<std::pair<std::string_view, std::int64_t>, 3> kRateUnits{{
    {"s", 1},
    {"m", 60},
    {"h", 3'600},
}};
// Nothing here is meant to be longer or larger: twelve digits keep every product within 64 bits…
constexpr std::size_t kMaxDigits = 12;
// … and every time far from the ends of the clocks.
constexpr milliseconds kLongest{std::int64_t{100} * 366 * 86'400'000};

template <std::size_t N>
std::optional<std::int64_t> parse_unit(
    std::string_view text, const std::array<std::pair<std::string_view, std::int64_t>, N>& units
) {
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const auto length = static_cast<std::size_t>(end - text.data());
    if (error != std::errc() || text[0] == '-' || length > kMaxDigits) return std::nullopt;
    for (const auto& [name, factor] : units) {
        if (text.substr(length) != name) continue;
        if (number > INT64_MAX / factor) return std::nullopt;
        return number * factor;
    }
    return std::nullopt;
}

}  // namespace

std::optional<milliseconds> parse_duration(std::string_view text) {
    const auto found = parse_unit(text, kDurationUnits);
    if (!found || milliseconds(*found) > kLongest) return std::nullopt;
    return milliseconds(*found);
}

std::string duration_text(milliseconds duration) {
    const auto count = duration.count();
    if (count == 0) return "0s";
    for (auto unit = kDurationUnits.rbegin(); unit != kDurationUnits.rend(); ++unit) {
        if (unit->first == "d" && count < 2 * unit->second) continue;
        if (count % unit->second == 0)
            return fmt::format("{}{}", count / unit->second, unit->first);
    }
    return fmt::format("{}ms", count);
}

std::optional<std::size_t> parse_size(std::string_view text) {
    const auto found = parse_unit(text, kSizeUnits);
    return found ? std::optional(static_cast<std::size_t>(*found)) : std::nullopt;
}

std::string size_text(std::size_t bytes) {
    for (auto unit = kSizeUnits.rbegin(); unit != kSizeUnits.rend(); ++unit) {
        const auto factor = static_cast<std::size_t>(unit->second);
        if (bytes != 0 && bytes % factor == 0)
            return fmt::format("{}{}", bytes / factor, unit->first);
    }
    return fmt::format("{}B", bytes);
}

std::optional<double> parse_rate(std::string_view text) {
    const auto slash = text.find('/');
    if (slash == std::string_view::npos) return std::nullopt;
    double number = 0;
    const auto* last = text.data() + slash;
    const auto [end, error] = std::from_chars(text.data(), last, number, std::chars_format::fixed);
    if (error != std::errc() || end != last || !(number > 0) || number > 1e6) return std::nullopt;
    for (const auto& [name, seconds] : kRateUnits) {
        if (text.substr(slash + 1) == name) return number / static_cast<double>(seconds);
    }
    return std::nullopt;
}

std::string rate_text(double per_second) {
    // The unit that gives a short number: 0.5/s, but 5/h rather than 0.00138888…/s.
    for (const auto& [name, seconds] : kRateUnits) {
        const auto number = per_second * static_cast<double>(seconds);
        const auto text = fmt::format("{:.3f}", number);
        double again = 0;
        std::from_chars(text.data(), text.data() + text.size(), again);
        if (again > 0 && std::abs(again - number) <= number * 1e-9) {
            auto shorter = text;
            while (shorter.back() == '0') shorter.pop_back();
            if (shorter.back() == '.') shorter.pop_back();
            return fmt::format("{}/{}", shorter, name);
        }
    }
    return fmt::format("{:.17f}/s", per_second);
}

}  // namespace config
