#include "tools/lint.hpp"

#include <algorithm>
#include <string>

#include "config/mask.hpp"
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
    const auto* mcp = std::get_if<config::Mcp>(&*tool.reconcile_by);
    if (request == nullptr && sql == nullptr && mcp == nullptr) return;
    const bool found = std::any_of(sought.begin(), sought.end(), [&](const Reference& reference) {
        const bool of_operation =
            reference.path == "operation.key" || reference.path == "operation.id";
        return names(planted, reference.path) || (is_command(tool) && of_operation);
    });
    if (found) return;
    diagnostics.warning(
        request != nullptr ? request->mark
        : sql != nullptr   ? sql->mark
                           : mcp->mark,
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
    if (names(planted, "operation.key") || names(planted, "operation.id")) return;
    if (const auto* mcp = std::get_if<config::Mcp>(&tool.execute)) {
        diagnostics.warning(
            mcp->mark,
            tool.name + ": no argument of the MCP tool carries the idempotency key",
            "for instance arguments: { external_id: \"{{ operation.key }}\" }; it is in _meta as "
            "dev.outboxd/idempotency-key as well, which few servers read: one that does is named "
            "by "
            "meta: { com.example/key: \"{{ operation.key }}\" }"
        );
        return;
    }
    const auto* request = std::get_if<config::HttpRequest>(&tool.execute);
    if (request == nullptr) return;
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

// A literal under a name such as api_key: whoever can read the file can use it.
class InlineSecrets {
 public:
    InlineSecrets(const config::Tool& tool, config::Diagnostics& diagnostics)
        : tool_(tool), diagnostics_(diagnostics) {}

    // Headers are looked at when the file is read.
    void look(const config::HttpRequest& request) {
        const auto& url = request.url.value;
        for (auto at = url.find_first_of("?&"); at != std::string::npos;
             at = url.find_first_of("?&", at + 1)) {
            const auto part = url.substr(at + 1, url.find('&', at + 1) - at - 1);
            const auto equals = part.find('=');
            if (equals == std::string::npos || !request.url.source.empty()) continue;
            look(part.substr(0, equals), part.substr(equals + 1), request.url.mark);
        }
        for (const auto& [name, value] : request.query) look(name.value, value);
        look({}, request.body_value);
    }
    void look(const config::Command& command) {
        for (const auto& [name, value] : command.env) {
            if (value.source.empty()) look(name.value, value.value, value.mark);
        }
        for (const auto& item : command.argv) {
            const auto equals = item.value.find('=');
            if (equals == std::string::npos || !item.source.empty()) continue;
            look(item.value.substr(0, equals), item.value.substr(equals + 1), item.mark);
        }
    }
    void look(const config::Sql& sql) {
        for (const auto& [name, value] : sql.parameters) look(name.value, value);
    }
    void look(const config::Mcp& mcp) {
        if (mcp.server) look(*mcp.server);
        if (mcp.command) look(*mcp.command);
        look({}, mcp.arguments);
        look({}, mcp.meta);
    }
    void look(const config::LogAction&) {}
    void look(const config::Resend&) {}
    void look(const config::Manual&) {}

 private:
    void look(const std::string& name, const config::Value& value) {
        for (const auto& item : value.items) look(name, item);
        for (const auto& member : value.members) look(member.key, member.value);
        if (value.is(config::Value::Kind::string) && value.source.empty()) {
            look(name, value.text, value.mark);
        }
    }
    void look(const std::string& name, const std::string& text, const config::Mark& mark) {
        // What is shorter is a flag or an empty place rather than a secret.
        constexpr std::size_t kShortest = 6;
        if (text.size() < kShortest || text.find("{{") != std::string::npos) return;
        if (!config::is_sensitive_name(name)) return;
        diagnostics_.warning(
            mark,
            tool_.name + ": " + name + ": a secret in the file itself",
            "use credential:, or ${cred:name}, ${file:/path}, ${env:VAR}"
        );
    }

    const config::Tool& tool_;
    config::Diagnostics& diagnostics_;
};

void lint_secrets(const config::Tool& tool, config::Diagnostics& diagnostics) {
    InlineSecrets secrets(tool, diagnostics);
    std::visit([&](const auto& execute) { secrets.look(execute); }, tool.execute);
    if (!tool.reconcile_by) return;
    std::visit([&](const auto& lookup) { secrets.look(lookup); }, *tool.reconcile_by);
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
    lint_secrets(tool, diagnostics);
    if (!tool.write) return;
    lint_key(tool, planted, diagnostics);
    lint_look_up(tool, planted, sought, diagnostics);
}

}  // namespace tools
