#include "config/reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "config/inventory.hpp"
#include "config/nearest.hpp"
#include "config/scalar.hpp"
#include "config/units.hpp"

namespace config {
namespace {

using Kind = Value::Kind;

// A lone ${…} without quotes may stand for a number or a bool.
bool may_be(const Value& value, Kind kind) {
    return value.is(kind) || (value.is(Kind::string) && value.plain);
}

}  // namespace

std::string shown(const Value& value) {
    if (value.is(Kind::sequence)) return "a list";
    if (value.is(Kind::mapping)) return "a mapping";
    if (value.is(Kind::null)) return "nothing";
    std::string text = value.source.empty() ? value.text : value.source;
    if (text.size() > 60) text = text.substr(0, 57) + "...";
    if (value.is(Kind::number) || value.is(Kind::boolean)) return text;
    return fmt::format("\"{}\"", text);
}

Text to_text_value(const Value& value) {
    return {value.text, value.mark, value.from_secret, value.source};
}

MapReader::MapReader(const Value* value, Mark key_mark, std::string path, Diagnostics& diagnostics)
    : key_mark_(std::move(key_mark)), path_(std::move(path)), diagnostics_(diagnostics) {
    if (!value || value->is(Kind::null)) return;
    if (value->is(Kind::mapping)) {
        mapping_ = value;
        return;
    }
    broken_ = true;
    if (value->unresolved) return;
    diagnostics_.error(
        value->mark,
        fmt::format("{} must be a mapping, not {}", path_, shown(*value)),
        "write its members as key: value"
    );
}

std::string MapReader::name(std::string_view key) const {
    return path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key);
}

void MapReader::note(
    std::string_view key,
    std::string_view type,
    std::string min,
    std::string max,
    std::vector<std::string> names
) const {
    auto* inventory = Inventory::current();
    if (inventory == nullptr) return;
    inventory->keys.push_back(
        {path_,
         std::string(key),
         std::string(type),
         std::move(min),
         std::move(max),
         std::move(names)}
    );
}

void MapReader::know(std::initializer_list<std::string_view> keys) {
    for (const auto key : keys) {
        if (std::find(known_.begin(), known_.end(), key) == known_.end()) known_.emplace_back(key);
    }
}

const Value::Member* MapReader::member(std::string_view key) {
    know({key});
    const auto* found = mapping_ ? mapping_->member(key) : nullptr;
    return found && !found->value.is(Kind::null) ? found : nullptr;
}

const Value* MapReader::value(std::string_view key) {
    const auto* found = member(key);
    return found ? &found->value : nullptr;
}

const Value::Member* MapReader::require(std::string_view key, std::string hint) {
    const auto* found = member(key);
    if (!found && !broken_) {
        diagnostics_.error(key_mark_, fmt::format("{} is missing", name(key)), std::move(hint));
    }
    return found;
}

MapReader MapReader::section(std::string_view key) {
    const auto* found = member(key);
    return {
        found ? &found->value : nullptr,
        found ? found->key_mark : key_mark_,
        name(key),
        diagnostics_
    };
}

void MapReader::error(
    const Value& at, std::string_view key, std::string_view what, std::string hint
) {
    if (at.unresolved) return;
    diagnostics_.error(at.mark, fmt::format("{}: {}", name(key), what), std::move(hint));
}

// The value when it is a scalar; lists and mappings are reported.
const Value* MapReader::scalar(std::string_view key) {
    const auto* found = value(key);
    if (!found || found->unresolved) return nullptr;
    if (found->is(Kind::sequence) || found->is(Kind::mapping)) {
        error(*found, key, fmt::format("must be one value, not {}", shown(*found)), {});
        return nullptr;
    }
    return found;
}

bool MapReader::duration(std::string_view key, Duration& out, Range<Duration> range) {
    note(key, "duration", duration_text(range.min), duration_text(range.max));
    return read_duration(key, out, range);
}

bool MapReader::read_duration(std::string_view key, Duration& out, Range<Duration> range) {
    const auto* found = scalar(key);
    if (!found) return false;
    const auto parsed = parse_duration(found->text);
    if (!parsed) {
        const bool bare = found->source.empty() && is_json_number(found->text);
        error(
            *found,
            key,
            fmt::format("{} is no duration", shown(*found)),
            bare ? fmt::format("it needs a unit: {0}ms, {0}s, {0}m, {0}h or {0}d", found->text)
                 : "write a whole number with a unit: 250ms, 30s, 5m, 24h, 30d"
        );
        return false;
    }
    if (*parsed < range.min || *parsed > range.max) {
        error(
            *found,
            key,
            fmt::format("{} is out of range", shown(*found)),
            fmt::format("from {} to {}", duration_text(range.min), duration_text(range.max))
        );
        return false;
    }
    out = *parsed;
    return true;
}

bool MapReader::duration_or_forever(
    std::string_view key, std::optional<Duration>& out, Range<Duration> range
) {
    note(key, "duration_or_forever", duration_text(range.min), duration_text(range.max));
    const auto* found = value(key);
    if (found && found->is(Kind::string) && found->text == "forever") {
        out.reset();
        return true;
    }
    Duration length{};
    if (!found || !read_duration(key, length, range)) return false;
    out = length;
    return true;
}

bool MapReader::size(std::string_view key, std::size_t& out, Range<std::size_t> range) {
    note(key, "size", size_text(range.min), size_text(range.max));
    const auto* found = scalar(key);
    if (!found) return false;
    const auto parsed = parse_size(found->text);
    if (!parsed) {
        error(
            *found,
            key,
            fmt::format("{} is no size", shown(*found)),
            "write a whole number with a unit: 512B, 256KiB, 1MiB"
        );
        return false;
    }
    if (*parsed < range.min || *parsed > range.max) {
        error(
            *found,
            key,
            fmt::format("{} is out of range", shown(*found)),
            fmt::format("from {} to {}", size_text(range.min), size_text(range.max))
        );
        return false;
    }
    out = *parsed;
    return true;
}

bool MapReader::integer(std::string_view key, int& out, Range<int> range) {
    note(key, "integer", fmt::format("{}", range.min), fmt::format("{}", range.max));
    const auto* found = scalar(key);
    if (!found) return false;
    long long parsed = 0;
    const auto* last = found->text.data() + found->text.size();
    const auto [end, wrong] = std::from_chars(found->text.data(), last, parsed);
    const bool whole = wrong == std::errc() && end == last;
    if (!may_be(*found, Kind::number) || (!whole && wrong != std::errc::result_out_of_range)) {
        error(*found, key, fmt::format("must be a whole number, not {}", shown(*found)), {});
        return false;
    }
    if (!whole || parsed < range.min || parsed > range.max) {
        error(
            *found,
            key,
            fmt::format("{} is out of range", shown(*found)),
            fmt::format("from {} to {}", range.min, range.max)
        );
        return false;
    }
    out = static_cast<int>(parsed);
    return true;
}

bool MapReader::number(std::string_view key, double& out, Range<double> range) {
    note(key, "number", fmt::format("{}", range.min), fmt::format("{}", range.max));
    const auto* found = scalar(key);
    if (!found) return false;
    double parsed = 0;
    const auto* last = found->text.data() + found->text.size();
    const auto [end, wrong] = std::from_chars(found->text.data(), last, parsed);
    if (!may_be(*found, Kind::number) || wrong != std::errc() || end != last) {
        error(*found, key, fmt::format("must be a number, not {}", shown(*found)), {});
        return false;
    }
    if (!(parsed >= range.min && parsed <= range.max)) {
        error(
            *found,
            key,
            fmt::format("{} is out of range", shown(*found)),
            fmt::format("from {} to {}", range.min, range.max)
        );
        return false;
    }
    out = parsed;
    return true;
}

bool MapReader::boolean(std::string_view key, bool& out) {
    note(key, "boolean");
    const auto* found = scalar(key);
    if (!found) return false;
    const bool known = found->text == "true" || found->text == "false";
    if (!may_be(*found, Kind::boolean) || !known) {
        error(
            *found,
            key,
            fmt::format("must be true or false, not {}", shown(*found)),
            "without quotes; yes and on are texts"
        );
        return false;
    }
    out = found->text == "true";
    return true;
}

bool MapReader::rate(std::string_view key, std::optional<double>& out) {
    note(key, "rate");
    const auto* found = scalar(key);
    if (!found) return false;
    const auto parsed = parse_rate(found->text);
    if (!parsed) {
        error(*found, key, fmt::format("{} is no rate", shown(*found)), "write 20/s, 100/m or 5/h");
        return false;
    }
    out = parsed;
    return true;
}

bool MapReader::choice(
    std::string_view key, std::string& out, std::initializer_list<std::string_view> names
) {
    note(key, "choice", {}, {}, {names.begin(), names.end()});
    const auto* found = scalar(key);
    if (!found) return false;
    if (std::find(names.begin(), names.end(), found->text) == names.end()) {
        const std::vector<std::string> known(names.begin(), names.end());
        auto hint = fmt::format("one of: {}", fmt::join(known, ", "));
        if (auto meant = nearest(found->text, known))
            hint = fmt::format("did you mean {}? {}", *meant, hint);
        error(*found, key, fmt::format("{} is not known here", shown(*found)), std::move(hint));
        return false;
    }
    out = found->text;
    return true;
}

void MapReader::refuse(std::string_view key, std::string_view why, std::string_view instead) {
    refused_.emplace_back(key);
    const auto* found = member(key);
    if (!found) return;
    diagnostics_.error(found->key_mark, fmt::format("{} {}", name(key), why), std::string(instead));
}

void MapReader::finish() {
    std::vector<std::string> useful;
    for (const auto& key : known_) {
        const bool refused = std::find(refused_.begin(), refused_.end(), key) != refused_.end();
        if (!refused) useful.push_back(key);
    }
    if (auto* inventory = Inventory::current()) inventory->mappings.push_back({path_, useful});
    if (!mapping_) return;
    for (const auto& m : mapping_->members) {
        if (std::find(known_.begin(), known_.end(), m.key) != known_.end()) continue;
        diagnostics_.error(
            m.key_mark, fmt::format("unknown key {}", name(m.key)), nearest_hint(m.key, useful)
        );
    }
}

}  // namespace config
