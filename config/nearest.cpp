#include "config/nearest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace config {
namespace {

char lower(char c) {
    return static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
}

bool starts_with(std::string_view text, std::string_view head) {
    return text.size() >= head.size() &&
           std::equal(head.begin(), head.end(), text.begin(), [](char a, char b) {
               return lower(a) == lower(b);
           });
}

}  // namespace

std::size_t edit_distance(std::string_view a, std::string_view b) {
    // Three rows of the usual table; the one before the last is for swaps.
    std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
    for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const bool same = lower(a[i - 1]) == lower(b[j - 1]);
            row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
            if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) &&
                lower(a[i - 2]) == lower(b[j - 1])) {
                row[j] = std::min(row[j], before[j - 2] + 1);
            }
        }
        std::swap(before, last);
        std::swap(last, row);
    }
    return last[b.size()];
}

std::optional<std::string> nearest(std::string_view name, const std::vector<std::string>& known) {
    if (name.size() > 100) return std::nullopt;  // a name nobody mistyped
    // A third of the letters may differ; more than three is another word.
    const auto allowed = std::clamp<std::size_t>(name.size() / 3, 1, 3);
    std::optional<std::string> best;
    auto best_distance = allowed + 1;
    for (const auto& candidate : known) {
        auto distance = edit_distance(name, candidate);
        const bool shortened = name.size() >= 3 && candidate.size() >= 3 &&
                               (starts_with(candidate, name) || starts_with(name, candidate));
        if (shortened) distance = std::min(distance, allowed);
        if (distance < best_distance) {
            best_distance = distance;
            best = candidate;
        }
    }
    return best;
}

std::string nearest_hint(std::string_view name, const std::vector<std::string>& known) {
    if (known.empty()) return {};
    if (auto meant = nearest(name, known)) return fmt::format("did you mean {}?", *meant);
    return fmt::format("known here: {}", fmt::join(known, ", "));
}

}  // namespace config
