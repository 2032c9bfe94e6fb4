// execute: and reconcile: the type, and what belongs to it.
#include <fmt/format.h>

#include "config/sections.hpp"

namespace config {
namespace {

// The type, or empty when it was reported.
std::string read_type(MapReader& in, std::initializer_list<std::string_view> names) {
    const auto listed = fmt::format("one of: {}", fmt::join(names, ", "));
    const auto* given = in.require("type", listed);
    if (!given || given->value.unresolved) return {};
    std::string type;
    in.choice("type", type, names);
    return type;
}

Manual read_manual(MapReader& in) {
    Manual manual;
    manual.mark = in.key_mark();
    if (in.require(
            "reason",
            "why nothing but a person can tell, for example reason: \"the fax has no log\""
        )) {
        in.string("reason", manual.reason);
    }
    in.diagnostics().warning(
        in.key_mark(),
        fmt::format("{}: manual: an attempt whose end nobody saw waits for a person", in.path()),
        "if the other side can be asked, use type: http or command"
    );
    return manual;
}

// Each resend may be the effect itself, so whatever makes a look-up patient has no meaning here.
Resend read_resend(MapReader& in, const Tool& tool) {
    Resend resend{in.key_mark()};
    if (std::holds_alternative<LogAction>(tool.execute)) {
        in.diagnostics().error(
            in.key_mark(),
            fmt::format(
                "{}: resend has nothing to send: execute only writes to the log", in.path()
            ),
            "leave reconcile out, with effect: read"
        );
    }
    in.refuse(
        "consistency",
        "says nothing about a resend",
        "leave it out: nothing is looked for, the provider answers for the key"
    );
    return resend;
}

void check_consistency(MapReader& in, const Tool& tool) {
    if (tool.consistency != "eventual" || tool.reconcile.settle > 0ms) return;
    const auto* settle = in.value("settle");
    in.error(
        settle ? *settle : *in.value("consistency"),
        settle ? "settle" : "consistency",
        "consistency: eventual needs settle above 0s",
        "settle: how long the other side may take until a look-up sees the effect"
    );
}

// The effect is looked for where it is: a table of the same name elsewhere would say "absent".
void check_database(MapReader& in, const Tool& tool, const Sql& look_up) {
    const auto* effect = std::get_if<Sql>(&tool.execute);
    if (effect == nullptr || !effect->dsn || look_up.dsn) return;
    in.diagnostics().error(
        in.key_mark(),
        fmt::format("{}.dsn is missing: execute names another database", in.path()),
        "the same dsn as in execute; without one it is the outbox's own database"
    );
}

}  // namespace

bool read_execute(MapReader& in, Tool& tool, const ToolContext& context) {
    const auto type = read_type(in, {"http", "command", "sql", "mcp", "log"});
    if (type == "http") tool.execute = read_http(in, Phase::execute, context);
    if (type == "command") tool.execute = read_command(in, Phase::execute);
    if (type == "sql") tool.execute = read_sql(in, Phase::execute);
    if (type == "mcp") tool.execute = read_mcp(in, Phase::execute, context);
    if (type == "log") tool.execute = LogAction{in.key_mark()};
    if (type.empty()) tool.unreadable = true;
    return !type.empty();
}

void read_reconcile(MapReader& in, Tool& tool, const ToolContext& context) {
    if (!in.is_mapping()) {
        tool.unreadable = true;
        if (in.value("type")) return;
    }
    read_reconcile_policy(in, tool.reconcile);
    const auto type = read_type(in, {"http", "command", "sql", "mcp", "resend", "manual"});
    if (type != "resend") {
        in.choice("consistency", tool.consistency, {"strong", "eventual"});
        check_consistency(in, tool);
    }
    if (type.empty()) {
        tool.unreadable = true;
        return;
    }
    if (type == "http") tool.reconcile_by = read_http(in, Phase::reconcile, context);
    if (type == "command") tool.reconcile_by = read_command(in, Phase::reconcile);
    if (type == "sql") {
        auto sql = read_sql(in, Phase::reconcile);
        check_database(in, tool, sql);
        tool.reconcile_by = std::move(sql);
    }
    if (type == "mcp") tool.reconcile_by = read_mcp(in, Phase::reconcile, context);
    if (type == "resend") tool.reconcile_by = read_resend(in, tool);
    if (type == "manual") tool.reconcile_by = read_manual(in);
    in.finish();
}

}  // namespace config
