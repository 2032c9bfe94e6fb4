#include "tools/resend_rules.hpp"

#include <algorithm>
#include <string>

#include "config/units.hpp"

namespace tools {
namespace {

const Reference* find(const std::vector<Reference>& references, std::string_view path) {
    const auto found = std::find_if(references.begin(), references.end(), [&](const auto& one) {
        return one.path == path;
    });
    return found == references.end() ? nullptr : &*found;
}

// A command finds key and id in its environment.
bool sends_key(const config::Tool& tool, const std::vector<Reference>& planted) {
    return std::holds_alternative<config::Command>(tool.execute) ||
           find(planted, "operation.key") != nullptr || find(planted, "operation.id") != nullptr;
}

}  // namespace

void check_resend(
    const config::Tool& tool,
    const std::vector<Reference>& planted,
    config::Diagnostics& diagnostics
) {
    if (!tool.reconcile_by) return;
    const auto* resend = std::get_if<config::Resend>(&*tool.reconcile_by);
    if (resend == nullptr) return;
    if (!sends_key(tool, planted)) {
        diagnostics.error(
            resend->mark,
            tool.name +
                ": resend without a key: nothing tells the provider that it is the same "
                "request, so each one would be another effect",
            std::holds_alternative<config::Mcp>(tool.execute)
                ? "send it where the server reads it, for instance arguments: { external_id: "
                  "\"{{ operation.key }}\" } or meta: { com.example/key: \"{{ operation.key }}\" "
                  "}, "
                  "if it promises to replay"
                : "send it, for instance headers: { Idempotency-Key: \"{{ operation.key }}\" }, "
                  "where the provider promises to replay"
        );
    }
    if (tool.key.window && *tool.key.window <= tool.timeout) {
        diagnostics.error(
            tool.key.mark,
            tool.name + ": key.window is not longer than timeout (" +
                config::duration_text(tool.timeout) + "): nothing would ever be sent once more",
            "key: { window: … } as long as the provider remembers a key, or a shorter timeout"
        );
    }
    if (!tool.key.window_given) {
        diagnostics.warning(
            resend->mark,
            tool.name + ": resend without key.window: 24h are assumed",
            "key: { window: … }, a little less than the provider promises to remember a key"
        );
    }
    if (const auto* attempt = find(planted, "operation.attempt")) {
        diagnostics.warning(
            attempt->mark,
            tool.name + ": {{ operation.attempt }} makes each resend another request",
            "leave it out: providers that compare requests under one key refuse the second one"
        );
    }
}

}  // namespace tools
