// type: sql: one statement, its parameters, and which database it is for.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "config/mask.hpp"
#include "config/nearest.hpp"
#include "config/sections.hpp"
#include "config/sql_text.hpp"

namespace config {
namespace {

void read_dsn(MapReader& in, Sql& out) {
    const auto* given = in.member("dsn");
    if (!given) return;
    Secret dsn;
    if (!in.string("dsn", dsn.value)) {
        out.dsn = Secret{};  // reported; another database was meant
        return;
    }
    dsn.source = given->value.source;
    dsn.mark = given->value.mark;
    if (dsn.value.empty() && !given->value.unresolved) {
        in.error(
            given->value,
            "dsn",
            "must not be empty",
            "leave dsn out for the outbox's own database, or name another one"
        );
    }
    const auto& written = dsn.source.empty() ? dsn.value : dsn.source;
    if (holds_literal_password(written)) {
        in.diagnostics().warning(
            dsn.mark,
            fmt::format("{}.dsn: a password in the file itself", in.path()),
            "use ${cred:name}, ${file:/path} or ${env:VAR}"
        );
    }
    out.dsn = std::move(dsn);
}

// Nothing that ends a transaction or changes its rules: the statement runs inside of one.
bool may_begin(const std::string& keyword, Phase phase) {
    constexpr std::array<std::string_view, 4> kAsks{"SELECT", "WITH", "VALUES", "TABLE"};
    constexpr std::array<std::string_view, 4> kWrites{"INSERT", "UPDATE", "DELETE", "MERGE"};
    if (std::find(kAsks.begin(), kAsks.end(), keyword) != kAsks.end()) return true;
    return phase == Phase::execute &&
           std::find(kWrites.begin(), kWrites.end(), keyword) != kWrites.end();
}

void check_statement(
    MapReader& in, const Value& at, const SqlText& text, Phase phase, const Sql& out
) {
    for (const auto& problem : text.problems) {
        in.error(at, "statement", problem.what, problem.hint);
    }
    if (out.statement.value.find("{{") != std::string::npos) {
        in.error(
            at,
            "statement",
            "a template in a statement",
            "write :name and parameters: { name: \"{{ arguments.name }}\" }; values are never part "
            "of a statement"
        );
    }
    if (text.keyword.empty() || may_begin(text.keyword, phase)) return;
    in.error(
        at,
        "statement",
        fmt::format("must not begin with {}", text.keyword),
        phase == Phase::execute
            ? "SELECT, INSERT, UPDATE, DELETE, MERGE or WITH: it runs inside of a transaction"
            : "SELECT, WITH, VALUES or TABLE: a look-up changes nothing, its transaction is READ "
              "ONLY"
    );
}

// In the order of $1, $2, …
void read_parameters(MapReader& in, const Value* statement, const SqlText& text, Sql& out) {
    std::optional<Value> given;
    in.free_mapping("parameters", given);
    std::vector<std::string> known;
    if (given) {
        for (const auto& member : given->members) known.push_back(member.key);
    }
    for (const auto& name : text.names) {
        const auto* member = given ? given->member(name) : nullptr;
        if (member) {
            out.parameters.emplace_back(Text{name, member->key_mark}, member->value);
            continue;
        }
        if (in.has("parameters") && !given) continue;  // unreadable, and reported
        in.error(
            *statement,
            "statement",
            fmt::format("there is no parameter {}", name),
            known.empty()
                ? fmt::format("parameters: {{ {}: \"{{{{ arguments.{} }}}}\" }}", name, name)
                : nearest_hint(name, known)
        );
    }
    if (!given || !statement) return;
    for (const auto& member : given->members) {
        if (std::find(text.names.begin(), text.names.end(), member.key) != text.names.end())
            continue;
        in.diagnostics().error(
            member.key_mark,
            fmt::format("{}.parameters.{} is not used by the statement", in.path(), member.key),
            text.names.empty() ? fmt::format("write :{} in the statement, or remove it", member.key)
                               : nearest_hint(member.key, text.names)
        );
    }
}

// The transaction is what knows: there is nothing in doubt that a rule could leave open.
void check_own_ends(const std::vector<Rule>& rules, MapReader& in) {
    for (const auto& rule : rules) {
        const auto& then = rule.then.value;
        if (then != "accepted" && then != "unknown" && then != "attention") continue;
        in.diagnostics().error(
            rule.then.mark,
            fmt::format("{}: {} cannot happen on the outbox's own database", in.path(), then),
            "effect and record are one transaction: succeeded, or rejected and retry, which roll "
            "the statement back"
        );
    }
}

}  // namespace

Sql read_sql(MapReader& in, Phase phase) {
    Sql out;
    out.mark = in.key_mark();
    read_dsn(in, out);
    const Value* statement = nullptr;
    SqlText text;
    const auto* given =
        in.require("statement", "one SQL statement; its values come from parameters:");
    if (given && in.text("statement", out.statement) && !given->value.unresolved) {
        statement = &given->value;
        text = parse_sql(out.statement.value);
        check_statement(in, *statement, text, phase, out);
        out.numbered = text.numbered;
    }
    read_parameters(in, statement, text, out);
    Duration timeout{};
    if (in.duration("statement_timeout", timeout, kTimeouts)) out.statement_timeout = timeout;
    in.free("result", out.result);
    read_rules(in, phase, out.rules, out.has_rules);
    if (phase == Phase::execute && !out.dsn) check_own_ends(out.rules, in);
    if (phase == Phase::reconcile && in.is_mapping() && !out.has_rules) {
        in.diagnostics().error(
            in.key_mark(),
            fmt::format("{}.verdicts is missing", in.path()),
            "verdicts: [ { when: { rows: 1 }, then: found }, { when: { rows: 0 }, then: absent } ]"
        );
    }
    return out;
}

}  // namespace config
