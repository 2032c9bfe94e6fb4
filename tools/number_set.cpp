#include "tools/number_set.hpp"

#include <algorithm>
#include <charconv>

namespace tools {
namespace {

using Range = std::pair<int, int>;

std::optional<int> whole(const std::string& text) {
    int number = 0;
    const auto* end = text.data() + text.size();
    const auto parsed = std::from_chars(text.data(), end, number);
    if (parsed.ec != std::errc{} || parsed.ptr != end) return std::nullopt;
    return number;
}

// "201", "5xx", "42x".
std::optional<Range> status_range(const std::string& text) {
    if (text.size() != 3 || text[0] < '1' || text[0] > '5') return std::nullopt;
    std::string low = text;
    std::string high = text;
    bool open = false;
    for (std::size_t i = 1; i < text.size(); ++i) {
        const bool x = text[i] == 'x' || text[i] == 'X';
        if (!x && (open || text[i] < '0' || text[i] > '9')) return std::nullopt;
        if (!x) continue;
        open = true;
        low[i] = '0';
        high[i] = '9';
    }
    return Range{*whole(low), *whole(high)};
}

std::optional<Range> exit_code_range(const std::string& text) {
    const auto number = whole(text);
    if (!number || *number < 0 || *number > 255) return std::nullopt;
    return Range{*number, *number};
}

std::optional<Range> row_range(const std::string& text) {
    const auto number = whole(text);
    if (!number || *number < 0) return std::nullopt;
    return Range{*number, *number};
}

std::optional<Range> error_code_range(const std::string& text) {
    const auto number = whole(text);
    return number ? std::optional<Range>({*number, *number}) : std::nullopt;
}

using Parse = std::optional<Range> (*)(const std::string&);

std::vector<Range> ranges_of(
    const config::Value& value, config::Diagnostics& diagnostics, Parse parse, const char* hint
) {
    using Kind = config::Value::Kind;
    std::vector<Range> ranges;
    const auto add = [&](const config::Value& item) {
        const bool scalar = item.is(Kind::number) || item.is(Kind::string);
        const auto range = scalar ? parse(item.text) : std::nullopt;
        if (range) {
            ranges.push_back(*range);
        } else {
            diagnostics.error(item.mark, "\"" + item.text + "\" is no code", hint);
        }
    };
    if (!value.is(Kind::sequence)) {
        add(value);
        return ranges;
    }
    for (const auto& item : value.items) add(item);
    if (ranges.empty()) diagnostics.error(value.mark, "an empty list matches nothing", hint);
    return ranges;
}

}  // namespace

NumberSet NumberSet::statuses(const config::Value& value, config::Diagnostics& diagnostics) {
    NumberSet set;
    set.ranges_ =
        ranges_of(value, diagnostics, status_range, "for instance 201, 5xx or [400, 42x]");
    return set;
}

NumberSet NumberSet::exit_codes(const config::Value& value, config::Diagnostics& diagnostics) {
    NumberSet set;
    set.ranges_ = ranges_of(value, diagnostics, exit_code_range, "0 to 255, or a list of them");
    return set;
}

NumberSet NumberSet::rows(const config::Value& value, config::Diagnostics& diagnostics) {
    NumberSet set;
    set.ranges_ = ranges_of(value, diagnostics, row_range, "a number of rows: 0, 1 or [0, 1]");
    return set;
}

NumberSet NumberSet::rpc_errors(const config::Value& value, config::Diagnostics& diagnostics) {
    NumberSet set;
    set.ranges_ =
        ranges_of(value, diagnostics, error_code_range, "for instance -32602, or a list of them");
    return set;
}

bool NumberSet::contains(int number) const {
    return overlaps(number, number);
}

bool NumberSet::overlaps(int from, int to) const {
    return std::any_of(ranges_.begin(), ranges_.end(), [&](const Range& range) {
        return range.first <= to && from <= range.second;
    });
}

}  // namespace tools
