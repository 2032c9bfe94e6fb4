#include "daemon/duration.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <utility>

namespace outboxd {

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
    static constexpr std::array<std::pair<std::string_view, std::int64_t>, 5> units = {
        {{"ms", 1}, {"s", 1'000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}}};
    std::int64_t number = 0;
    const auto* end = text.data() + text.size();
    auto [rest, error] = std::from_chars(text.data(), end, number);
    if (error != std::errc{} || number < 0) return std::nullopt;
    const std::string_view unit(rest, static_cast<std::size_t>(end - rest));
    for (const auto& [name, milliseconds] : units) {
        if (unit != name) continue;
        // A hundred years is beyond anything sensible and far from overflow.
        if (number > 36'500LL * 86'400'000 / milliseconds) return std::nullopt;
        return std::chrono::milliseconds{number * milliseconds};
    }
    return std::nullopt;
}

}  // namespace outboxd
