#include <fmt/format.h>

#include <algorithm>

#include "config/nearest.hpp"
#include "config/sections.hpp"

namespace config {
namespace {

const std::vector<std::string>& then_names(Phase phase) {
    static const std::vector<std::string> outcomes{
        "succeeded", "accepted", "rejected", "retry", "unknown", "attention"
    };
    static const std::vector<std::string> verdicts{
        "found", "absent", "pending", "conflict", "inconclusive"
    };
    return phase == Phase::execute ? outcomes : verdicts;
}

// What only one kind of rule can have.
void check_members(MapReader& in, const Rule& rule) {
    const auto& then = rule.then.value;
    if (rule.proves_absence && then != "rejected") {
        in.error(
            *in.value("proves_absence"), "proves_absence", "belongs to then: rejected", "remove it"
        );
    }
    if (rule.retry_after && then != "retry") {
        in.error(*in.value("retry_after"), "retry_after", "belongs to then: retry", "remove it");
    }
}

Rule read_rule(const Value& item, const std::string& path, Phase phase, Diagnostics& diagnostics) {
    MapReader in(&item, item.mark, path, diagnostics);
    Rule rule;
    rule.mark = item.mark;
    std::optional<Value> when;
    if (in.require("when", "which answers the rule is for, for example when: { status: 201 }")) {
        in.free_mapping("when", when);
    }
    if (when) rule.when = std::move(*when);
    if (in.require("then", fmt::format("one of: {}", fmt::join(then_names(phase), ", ")))) {
        if (in.text("then", rule.then)) {
            const auto* then = in.value("then");
            if (!then->unresolved) check_then(rule.then, path + ".then", phase, diagnostics);
        }
    }
    in.free("result", rule.result);
    if (phase == Phase::execute) {
        in.text("code", rule.code);
        in.text("message", rule.message);
        in.text("retry_after", rule.retry_after);
        in.boolean("proves_absence", rule.proves_absence);
        check_members(in, rule);
    }
    in.finish();
    return rule;
}

}  // namespace

std::string_view rules_key(Phase phase) {
    return phase == Phase::execute ? "outcomes" : "verdicts";
}

void check_then(const Text& then, std::string_view path, Phase phase, Diagnostics& diagnostics) {
    const auto& known = then_names(phase);
    if (std::find(known.begin(), known.end(), then.value) != known.end()) return;
    auto hint = fmt::format("one of: {}", fmt::join(known, ", "));
    if (auto meant = nearest(then.value, known))
        hint = fmt::format("did you mean {}? {}", *meant, hint);
    const auto& text = then.source.empty() ? then.value : then.source;
    diagnostics.error(
        then.mark,
        fmt::format("{}: {} is no {}", path, text, phase == Phase::execute ? "outcome" : "verdict"),
        std::move(hint)
    );
}

void read_rules(MapReader& in, Phase phase, std::vector<Rule>& out, bool& has_rules) {
    const auto key = rules_key(phase);
    const auto* list = in.value(key);
    if (!list || list->unresolved) return;
    has_rules = true;
    if (!list->is(Value::Kind::sequence)) {
        in.error(
            *list,
            key,
            fmt::format("must be a list of rules, not {}", shown(*list)),
            fmt::format("- {{ when: {{ status: 200 }}, then: {} }}", then_names(phase).front())
        );
        return;
    }
    for (std::size_t i = 0; i < list->items.size(); ++i) {
        const auto path = fmt::format("{}.{}[{}]", in.path(), key, i);
        out.push_back(read_rule(list->items[i], path, phase, in.diagnostics()));
    }
}

}  // namespace config
