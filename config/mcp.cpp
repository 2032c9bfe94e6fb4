// type: mcp: a tool of an MCP server, and how the server is reached.
#include <fmt/format.h>

#include "config/sections.hpp"

namespace config {
namespace {

using Kind = Value::Kind;

// One server knows all its callers: who it is must not depend on an operation.
void check_fixed(MapReader& in, const Text& url) {
    const auto at = url.value.find("{{");
    const auto scheme = url.value.find("://");
    if (at == std::string::npos || scheme == std::string::npos) return;
    if (at < url.value.find('/', scheme + 3)) return;  // in the host, which is reported already
    in.error(
        *in.value("url"),
        "url",
        "a template in the address of an MCP server",
        "the file fixes the server; put what changes into arguments:"
    );
}

void read_server(MapReader& in, const ToolContext& context, Mcp& out) {
    const auto* url = in.member("url");
    const auto* command = in.member("command");
    if (url && command) {
        in.diagnostics().error(
            command->key_mark,
            fmt::format("{}: url and command exclude each other", in.path()),
            "url: a server that runs; command: one that is started for each call"
        );
    }
    if (command) {
        out.command = read_program(in, "command");
        for (const auto* key : {"credential", "mtls"}) {
            if (url || !in.has(key)) continue;
            in.diagnostics().error(
                in.member(key)->key_mark,
                fmt::format("{}.{} belongs to url", in.path(), key),
                "a server that is started gets its secrets in env: { NAME: \"${cred:name}\" }"
            );
        }
    }
    if (url) {
        out.server = read_address(in, context);
        check_fixed(in, out.server->url);
    } else if (!command && in.is_mapping()) {
        in.know({"credential", "mtls"});
        in.diagnostics().error(
            in.key_mark(),
            fmt::format("{} has neither url nor command", in.path()),
            "url: https://mcp.example.com/mcp, or command: [/usr/bin/server, --stdio]"
        );
    }
    for (const auto* key : {"env", "cwd", "allow_dash"}) {
        if (command || !in.has(key)) continue;
        in.diagnostics().error(
            in.member(key)->key_mark,
            fmt::format("{}.{} belongs to command", in.path(), key),
            "nothing is started where url: names a server"
        );
    }
}

void read_tool_name(MapReader& in, Mcp& out) {
    const auto* given =
        in.require("tool", "the name of the server's tool, for example tool: create_issue");
    if (!given || !in.text("tool", out.tool) || given->value.unresolved) return;
    if (out.tool.value.find("{{") != std::string::npos) {
        in.error(
            given->value,
            "tool",
            "a template as the name of the tool",
            "the file says what is called; templates may fill its arguments"
        );
    } else if (out.tool.value.empty()) {
        in.error(given->value, "tool", "must not be empty", {});
    }
}

void read_mapping(MapReader& in, std::string_view key, Value& out) {
    std::optional<Value> given;
    in.free_mapping(key, given);
    if (given) out = std::move(*given);
    out.kind = Kind::mapping;
}

// Names of _meta that are the protocol's or ours.
void check_meta(MapReader& in, const Value& meta) {
    for (const auto& member : meta.members) {
        const auto slash = member.key.find('/');
        const auto prefix = member.key.substr(0, slash == std::string::npos ? 0 : slash);
        const auto dot = prefix.find('.');
        const auto second = dot == std::string::npos
                                ? std::string{}
                                : prefix.substr(dot + 1, prefix.find('.', dot + 1) - dot - 1);
        const bool reserved = second == "modelcontextprotocol" || second == "mcp" ||
                              second == "outboxd" || member.key == "progressToken" ||
                              member.key == "traceparent";
        if (!reserved) continue;
        in.diagnostics().error(
            member.key_mark,
            fmt::format(
                "{}.meta: {} is set by outboxd or the protocol itself", in.path(), member.key
            ),
            "a name under a domain of yours, such as com.example/reference"
        );
    }
}

}  // namespace

Mcp read_mcp(MapReader& in, Phase phase, const ToolContext& context) {
    Mcp out;
    out.mark = in.key_mark();
    read_server(in, context, out);
    read_tool_name(in, out);
    read_mapping(in, "arguments", out.arguments);
    read_mapping(in, "meta", out.meta);
    check_meta(in, out.meta);
    read_rules(in, phase, out.rules, out.has_rules);
    if (phase == Phase::reconcile) read_listing(in, out.has_rules, out);
    return out;
}

}  // namespace config
