#include <fmt/format.h>

#include "config/nearest.hpp"
#include "config/scalar.hpp"
#include "config/sections.hpp"

namespace config {
namespace {

using Kind = Value::Kind;

// {tool}:{compensation} must fit the 100 bytes of the outbox's column.
constexpr std::size_t kMaxToolName = 60;
constexpr std::size_t kMaxCompensationName = 39;

void check_pointers(MapReader& in, std::string_view key, const std::vector<Text>& pointers) {
    for (const auto& pointer : pointers) {
        if (!pointer.value.empty() && pointer.value[0] == '/') continue;
        in.diagnostics().error(
            pointer.mark,
            fmt::format("{}.{}: \"{}\" is no JSON Pointer", in.path(), key, pointer.value),
            "write /member"
        );
    }
}

// The catalogue keeps the schema as jsonb, whose numbers are numeric.
void check_numbers(const Value& value, MapReader& in) {
    for (const auto& item : value.items) check_numbers(item, in);
    for (const auto& member : value.members) check_numbers(member.value, in);
    if (!value.is(Kind::number) || is_jsonb_number(value.text)) return;
    in.error(
        value,
        "arguments",
        fmt::format("{} is no number that jsonb can hold", shown(value)),
        "at most 131072 digits before the point and 16383 behind it; quote it to keep it as text"
    );
}

void read_dedup(MapReader& in, Tool& tool) {
    if (!in.has("dedup")) return;
    auto dedup = in.section("dedup");
    const auto* fields = dedup.require(
        "fields", "which members of the arguments make the derived id: fields: [title]"
    );
    tool.dedup_fields.clear();
    dedup.texts("fields", tool.dedup_fields);
    dedup.finish();
    if (fields && fields->value.is(Kind::sequence) && fields->value.items.empty()) {
        dedup.error(
            fields->value, "fields", "must not be empty", "leave dedup out: then all members count"
        );
    }
    const auto* properties = tool.arguments ? tool.arguments->find("properties") : nullptr;
    if (!properties || !properties->is(Kind::mapping)) return;
    std::vector<std::string> known;
    for (const auto& m : properties->members) known.push_back(m.key);
    for (const auto& field : tool.dedup_fields) {
        if (properties->member(field.value)) continue;
        in.diagnostics().warning(
            field.mark,
            fmt::format("{}.dedup.fields: arguments has no property {}", in.path(), field.value),
            nearest_hint(field.value, known)
        );
    }
}

// What a tool and a compensation have in common, but for execute and reconcile.
void read_settings(MapReader& in, Tool& tool) {
    in.string("title", tool.title);
    in.string("description", tool.description);
    in.free_mapping("arguments", tool.arguments);
    if (tool.arguments) check_numbers(*tool.arguments, in);
    read_dedup(in, tool);
    in.integer("concurrency", tool.concurrency, {1, 100'000});
    in.rate("rate", tool.rate_per_second);
    if (in.has("key")) {
        auto key = in.section("key");
        read_key(key, tool.key);
    }
    read_timeouts(in, tool.timeout, tool.connect_timeout);
    auto retry = in.section("retry");
    read_retry(retry, tool.retry);
    retry.finish();
    auto http = in.section("http");
    read_http_settings(http, tool.http);
    http.finish();
    if (in.texts("redact", tool.redact)) check_pointers(in, "redact", tool.redact);
    in.boolean("expose", tool.expose);
    in.boolean("destructive", tool.destructive);
}

// Of a compensation, which inherits it, only what it says itself.
void check_http_timeout(MapReader& in, const Tool& tool) {
    if (!std::holds_alternative<HttpRequest>(tool.execute) || tool.timeout <= 10min) return;
    const auto* at = in.value("timeout");
    if (at == nullptr && tool.compensates_tool) return;
    in.diagnostics().warning(
        at != nullptr ? at->mark : tool.mark,
        fmt::format("{}.timeout is above 10m for http", in.path()),
        "an API that takes so long is better accepted (then: accepted) and looked up"
    );
}

// `judged`: the type is known, so that a missing reconcile is a mistake.
void read_own_reconcile(MapReader& in, Tool& tool, const ToolContext& context, bool judged) {
    if (const auto* given = in.member("reconcile")) {
        auto reconcile = in.section("reconcile");
        read_reconcile(reconcile, tool, context);
        if (!tool.write) {
            in.diagnostics().warning(
                given->key_mark,
                fmt::format("{}.reconcile is never used", in.path()),
                "an effect: read tool is simply tried again"
            );
        }
        if (tool.own_transaction()) {
            in.diagnostics().error(
                given->key_mark,
                fmt::format("{}.reconcile: there is nothing to look for", in.path()),
                "on the outbox's own database effect and record are one transaction: remove it, or "
                "name another database with execute.dsn"
            );
        }
    } else if (tool.write && judged && !tool.own_transaction()) {
        in.diagnostics().error(
            in.key_mark(),
            fmt::format(
                "{}.reconcile is missing: a write tool must be able to tell whether it happened",
                in.path()
            ),
            "reconcile: { type: http, … } or { type: command, … } asks the other side; "
            "{ type: manual, reason: \"…\" } leaves it to a person; effect: read if there is no "
            "effect"
        );
    }
}

Tool read_compensation(
    const Value::Member& member,
    const Tool& parent,
    const std::string& path,
    const ToolContext& context,
    Diagnostics& diagnostics
) {
    // Concurrency, rate, time-outs, retry, key and http settings: the same provider, the same
    // bounds.
    Tool tool = parent;
    tool.name = fmt::format("{}:{}", parent.name, member.key);
    tool.mark = member.key_mark;
    tool.description = fmt::format("Compensates {}: {}.", parent.name, member.key);
    tool.title.clear();
    tool.write = true;
    tool.arguments.reset();
    tool.dedup_fields.clear();
    tool.reconcile = context.defaults.reconcile;
    tool.reconcile_by.reset();
    tool.consistency = "strong";
    tool.compensations.clear();
    tool.compensates_tool = parent.name;
    tool.redact.clear();
    tool.expose = tool.destructive = false;
    tool.execute = LogAction{member.key_mark};
    tool.unreadable = false;
    tool.source = member.value;

    MapReader in(&member.value, member.key_mark, path, diagnostics);
    read_settings(in, tool);
    std::string effect = "write";
    in.choice("effect", effect, {"write"});
    const bool judged = read_execute(in, tool, context);
    // Its arguments: are what the MCP tool is sent, which stands in the same mapping.
    if (std::holds_alternative<Mcp>(tool.execute)) tool.arguments.reset();
    read_own_reconcile(in, tool, context, judged);
    if (judged) in.finish();
    check_http_timeout(in, tool);
    return tool;
}

std::vector<Tool> read_compensations(MapReader& in, Tool& tool, const ToolContext& context) {
    std::vector<Tool> out;
    const auto* section = in.member("compensate");
    if (!section) return out;
    if (!section->value.is(Kind::mapping)) {
        in.error(
            section->value,
            "compensate",
            fmt::format("must be a mapping, not {}", shown(section->value)),
            "write { name: { type: http, … } }"
        );
        return out;
    }
    if (!tool.write) {
        in.diagnostics().error(
            section->key_mark,
            fmt::format("{}.compensate: an effect: read tool has nothing to compensate", in.path()),
            "remove it"
        );
    }
    for (const auto& member : section->value.members) {
        if (!check_name(member, "compensation", kMaxCompensationName, in.diagnostics())) continue;
        tool.compensations.push_back(member.key);
        const auto path = fmt::format("{}.compensate.{}", in.path(), member.key);
        out.push_back(read_compensation(member, tool, path, context, in.diagnostics()));
    }
    for (auto& compensation : out) compensation.compensations.clear();
    return out;
}

void read_tool(
    const Value::Member& member,
    Config& config,
    const ToolContext& context,
    Diagnostics& diagnostics
) {
    Tool tool;
    tool.name = member.key;
    tool.mark = tool.key.mark = member.key_mark;
    tool.source = member.value;
    tool.unreadable = true;  // until execute was read
    tool.timeout = context.defaults.timeout;
    tool.connect_timeout = context.defaults.connect_timeout;
    tool.retry = context.defaults.retry;
    tool.reconcile = context.defaults.reconcile;
    tool.http = context.defaults.http;

    MapReader in(&member.value, member.key_mark, fmt::format("tools.{}", member.key), diagnostics);
    read_settings(in, tool);
    bool judged = false;
    if (in.require("execute", "what the tool does, for example execute: { type: http, … }")) {
        tool.unreadable = false;
        auto execute = in.section("execute");
        judged = read_execute(execute, tool, context);
        if (judged) execute.finish();
    }
    std::string effect = std::holds_alternative<LogAction>(tool.execute) ? "read" : "write";
    const bool known = in.choice("effect", effect, {"write", "read"}) || !in.has("effect");
    // Where it was mistyped, what stands beside it tells what was meant.
    tool.write = known ? effect == "write" : in.has("reconcile");
    read_own_reconcile(in, tool, context, judged);
    auto compensations = read_compensations(in, tool, context);
    if (tool.expose && (tool.name == "outbox_status" || tool.name == "outbox_compensate")) {
        in.error(
            *in.value("expose"),
            "expose",
            "agents know this name as a tool of outboxd's own",
            "rename the tool"
        );
    }
    in.finish();
    check_http_timeout(in, tool);
    config.tools.push_back(std::move(tool));
    for (auto& compensation : compensations) config.tools.push_back(std::move(compensation));
}

}  // namespace

bool check_name(
    const Value::Member& member, std::string_view what, std::size_t max, Diagnostics& diagnostics
) {
    const auto& name = member.key;
    const auto allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";
    const bool fine = !name.empty() && name.size() <= max &&
                      name.find_first_not_of(allowed) == std::string::npos &&
                      ((name[0] >= 'a' && name[0] <= 'z') || (name[0] >= 'A' && name[0] <= 'Z'));
    if (fine) return true;
    diagnostics.error(
        member.key_mark,
        fmt::format("\"{}\" is no name for a {}", name, what),
        fmt::format("a letter, then letters, digits, _, - and .; at most {} characters", max)
    );
    return false;
}

void read_tools(MapReader& root, Config& out, const ToolContext& context) {
    const auto* section = root.member("tools");
    if (!section) return;
    const MapReader all(&section->value, section->key_mark, "tools", root.diagnostics());
    for (const auto& member : section->value.members) {
        if (!check_name(member, "tool", kMaxToolName, root.diagnostics())) continue;
        read_tool(member, out, context, root.diagnostics());
    }
}

}  // namespace config
