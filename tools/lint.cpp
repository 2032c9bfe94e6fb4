#include "tools/lint.hpp"

#include <algorithm>
#include <string>

#include "config/nearest.hpp"

namespace tools {
namespace {

// One is the other or a part of it.
bool overlap(const std::string& a, const std::string& b) {
    const auto part_of = [](const std::string& part, const std::string& whole) {
        return part == whole || part.rfind(whole + ".", 0) == 0;
    };
    return part_of(a, b) || part_of(b, a);
}

bool names(const std::vector<Reference>& references, const std::string& path) {
    return std::any_of(references.begin(), references.end(), [&](const Reference& reference) {
        return overlap(reference.path, path);
    });
}

// A command finds key and id in its environment.
bool is_command(const config::Tool& tool) {
    return std::holds_alternative<config::Command>(tool.execute);
}

void lint_look_up(
    const config::Tool& tool,
    const std::vector<Reference>& planted,
    const std::vector<Reference>& sought,
    config::Diagnostics& diagnostics
) {
    if (!tool.reconcile_by) return;
    const auto* request = std::get_if<config::HttpRequest>(&*tool.reconcile_by);
    const auto* sql = std::get_if<config::Sql>(&*tool.reconcile_by);
    if (request == nullptr && sql == nullptr) return;
    const bool found = std::any_of(sought.begin(), sought.end(), [&](const Reference& reference) {
        const bool of_operation =
            reference.path == "operation.key" || reference.path == "operation.id";
        return names(planted, reference.path) || (is_command(tool) && of_operation);
    });
    if (found) return;
    diagnostics.warning(
        request != nullptr ? request->mark : sql->mark,
        tool.name + ": reconcile asks for nothing that execute sent",
        "plant {{ operation.key }} in the request and look for it: what was never written cannot "
        "be found"
    );
}

void lint_key(
    const config::Tool& tool,
    const std::vector<Reference>& planted,
    config::Diagnostics& diagnostics
) {
    const auto* request = std::get_if<config::HttpRequest>(&tool.execute);
    if (request == nullptr) return;
    if (names(planted, "operation.key") || names(planted, "operation.id")) return;
    diagnostics.warning(
        request->mark,
        tool.name + ": no idempotency key is sent to the provider",
        "for instance headers: { Idempotency-Key: \"{{ operation.key }}\" }"
    );
}

void lint_arguments(
    const config::Tool& tool,
    const std::vector<Reference>& references,
    config::Diagnostics& diagnostics
) {
    const auto* properties = tool.arguments ? tool.arguments->find("properties") : nullptr;
    if (properties == nullptr || !properties->is(config::Value::Kind::mapping)) return;
    std::vector<std::string> known;
    for (const auto& member : properties->members) known.push_back(member.key);
    for (const auto& reference : references) {
        constexpr std::string_view kRoot = "arguments.";
        if (reference.path.rfind(kRoot, 0) != 0) continue;
        const auto rest = reference.path.substr(kRoot.size());
        const auto name = rest.substr(0, rest.find('.'));
        if (std::find(known.begin(), known.end(), name) != known.end()) continue;
        diagnostics.warning(
            reference.mark,
            "{{ arguments." + name + " }}: the schema of arguments has no " + name,
            config::nearest_hint(name, known)
        );
    }
}

}  // namespace

void lint_tool(
    const config::Tool& tool,
    const std::vector<Reference>& planted,
    const std::vector<Reference>& sought,
    config::Diagnostics& diagnostics
) {
    lint_arguments(tool, planted, diagnostics);
    lint_arguments(tool, sought, diagnostics);
    if (!tool.write) return;
    lint_key(tool, planted, diagnostics);
    lint_look_up(tool, planted, sought, diagnostics);
}

}  // namespace tools
