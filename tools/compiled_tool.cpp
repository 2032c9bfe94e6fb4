#include "tools/compiled_tool.hpp"

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include "tools/http_senders.hpp"
#include "tools/lint.hpp"
#include "tools/resend_rules.hpp"
#include "tools/tool_policy.hpp"

namespace tools {
namespace {

// False when the tool cannot be used.
bool compile_execute(
    const config::Tool& tool,
    const Credentials& credentials,
    CompileContext& context,
    CompiledTool& out
) {
    if (const auto* request = std::get_if<config::HttpRequest>(&tool.execute)) {
        auto compiled = HttpExecute::compile(*request, credentials, context);
        if (!compiled) return false;
        out.execute = std::move(*compiled);
    } else if (const auto* command = std::get_if<config::Command>(&tool.execute)) {
        out.execute = CommandExecute::compile(*command, context);
    } else if (const auto* sql = std::get_if<config::Sql>(&tool.execute)) {
        auto compiled = SqlExecute::compile(*sql, tool, context);
        compiled.sql.max_bytes = out.output_limit;
        out.execute = std::move(compiled);
    } else if (const auto* mcp = std::get_if<config::Mcp>(&tool.execute)) {
        auto compiled = McpExecute::compile(*mcp, credentials, context);
        if (!compiled) return false;
        compiled->call.output_limit = out.output_limit;
        out.execute = std::move(*compiled);
    } else {
        out.execute = LogExecute{};
    }
    return true;
}

bool compile_lookup(
    const config::Tool& tool,
    const Credentials& credentials,
    CompileContext& context,
    CompiledTool& out
) {
    if (!tool.reconcile_by) {
        if (!tool.write || tool.own_transaction()) return true;
        context.diagnostics.error(
            tool.mark,
            tool.name + ": reconcile is missing",
            "a write tool must be able to tell whether it happened"
        );
        return false;
    }
    if (const auto* request = std::get_if<config::HttpRequest>(&*tool.reconcile_by)) {
        auto compiled = HttpLookup::compile(*request, credentials, context);
        if (!compiled) return false;
        out.lookup.emplace(std::move(*compiled));
    } else if (const auto* command = std::get_if<config::Command>(&*tool.reconcile_by)) {
        out.lookup.emplace(CommandLookup::compile(*command, context));
    } else if (const auto* sql = std::get_if<config::Sql>(&*tool.reconcile_by)) {
        auto compiled = SqlLookup::compile(*sql, context);
        compiled.sql.max_bytes = out.output_limit;
        out.lookup.emplace(std::move(compiled));
    } else if (const auto* mcp = std::get_if<config::Mcp>(&*tool.reconcile_by)) {
        auto compiled = McpLookup::compile(*mcp, credentials, context);
        if (!compiled) return false;
        compiled->call.output_limit = out.output_limit;
        out.lookup.emplace(std::move(*compiled));
    }
    return true;
}

// What a compensation must find of its original when it is asked for (outbox.tool.needs_original).
void note_needs(const std::vector<Reference>& references, std::vector<std::string>& needs) {
    for (const std::string part : {"arguments", "result"}) {
        const auto path = "original." + part;
        const bool named = std::any_of(references.begin(), references.end(), [&](const auto& one) {
            return one.path == path || one.path.starts_with(path + ".");
        });
        if (named && std::find(needs.begin(), needs.end(), part) == needs.end()) {
            needs.push_back(part);
        }
    }
}

}  // namespace

std::optional<CompiledTool> compile_tool(
    const config::Tool& tool, const config::Config& config, config::Diagnostics& diagnostics
) {
    const bool compensation = tool.compensates_tool.has_value();
    CompileContext execute{.diagnostics = diagnostics, .compensation = compensation};
    CompileContext reconcile{.diagnostics = diagnostics, .compensation = compensation};
    CompiledTool compiled{
        .policy = make_policy(tool, diagnostics),
        .execute = LogExecute{},
        .lookup = std::nullopt,
        .http = http_options(tool.http, tool.connect_timeout, config.limits.response),
        .output_limit = config.limits.response,
        .target = target_text(tool),
        .lookup_target = lookup_target_text(tool)
    };
    bool fits = true;
    if (tool.arguments) {
        compiled.arguments = ArgumentsSchema::compile(*tool.arguments, diagnostics);
        fits = compiled.arguments != nullptr;
    }
    const bool performs = compile_execute(tool, config.credentials, execute, compiled);
    const bool asks = compile_lookup(tool, config.credentials, reconcile, compiled);
    note_needs(execute.references, compiled.policy.needs_original);
    note_needs(reconcile.references, compiled.policy.needs_original);
    check_resend(tool, execute.references, diagnostics);
    lint_tool(tool, execute.references, reconcile.references, diagnostics);
    if (!fits || !performs || !asks) return std::nullopt;
    return compiled;
}

}  // namespace tools
