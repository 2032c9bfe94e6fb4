#include "tools/nearest.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace tools {
namespace {

// Levenshtein distance; names are short, so the plain algorithm is enough.
std::size_t distance(std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
        std::size_t diagonal = row[0];
        row[0] = i;
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
            diagonal = row[j];
            row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
        }
    }
    return row[b.size()];
}

}  // namespace

std::string nearest_hint(std::string_view word, std::span<const std::string_view> candidates) {
    constexpr std::size_t kLongestWord = 64;
    constexpr std::size_t kLongestList = 12;
    std::string_view best;
    std::size_t best_distance = std::max<std::size_t>(2, word.size() / 3) + 1;
    if (word.size() <= kLongestWord) {
        for (const auto candidate : candidates) {
            const auto d = distance(word, candidate);
            if (d < best_distance) {
                best_distance = d;
                best = candidate;
            }
        }
    }
    if (!best.empty()) return "did you mean " + std::string(best) + "?";
    if (candidates.empty() || candidates.size() > kLongestList) return {};
    std::string list = "known: ";
    for (const auto candidate : candidates) {
        if (candidate.data() != candidates.front().data()) list += ", ";
        list += candidate;
    }
    return list;
}

}  // namespace tools
