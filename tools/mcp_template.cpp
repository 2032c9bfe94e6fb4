#include "tools/mcp_template.hpp"

#include "outbox/traceparent.hpp"

namespace tools {
namespace {

using outbox::Json;

// Both forms of an answer, and none that is compressed: events have to be read as they come.
config::HttpRequest with_headers(config::HttpRequest request) {
    const auto add = [&](const char* name, const char* value) {
        request.headers.emplace_back(
            config::Text{name, request.mark}, config::Text{value, request.mark}
        );
    };
    add("Accept", "application/json, text/event-stream");
    add("Content-Type", "application/json");
    add("Accept-Encoding", "identity");
    return request;
}

std::string identity_of(const config::Mcp& mcp) {
    Json::Array parts;
    if (mcp.server) {
        const auto& server = *mcp.server;
        parts.emplace_back("url");
        parts.emplace_back(server.url.value);
        parts.emplace_back(server.credential ? server.credential->value : std::string());
        parts.emplace_back(server.mtls ? server.mtls->value : std::string());
    } else if (mcp.command) {
        parts.emplace_back("command");
        for (const auto& item : mcp.command->argv) parts.emplace_back(item.value);
    }
    return outbox::to_text(Json(std::move(parts)));
}

// Its receivers know a repetition by the id of the operation, and one call is several messages.
void check_credential(
    const config::HttpRequest& request, const Credentials& credentials, CompileContext& context
) {
    if (!request.credential) return;
    const auto found = credentials.find(request.credential->value);
    const bool signs = found != credentials.end() &&
                       found->second.kind == config::Credential::Kind::standard_webhooks;
    if (!signs) return;
    context.diagnostics.error(
        request.credential->mark,
        "a credential of kind standard_webhooks signs single requests, not an MCP session",
        "bearer, basic, header, query, oauth2_client_credentials or mtls"
    );
}

}  // namespace

std::optional<McpTemplate> McpTemplate::compile(
    const config::Mcp& mcp, Phase phase, const Credentials& credentials, CompileContext& context
) {
    McpTemplate out;
    out.tells_operation_ = phase == Phase::execute;
    out.tool_ = mcp.tool.value;
    out.arguments_ = ValueTemplate::compile(mcp.arguments, context);
    out.meta_ = ValueTemplate::compile(mcp.meta, context);
    out.identity_ = identity_of(mcp);
    if (mcp.server) {
        check_credential(*mcp.server, credentials, context);
        out.server_ = RequestTemplate::compile(with_headers(*mcp.server), credentials, context);
        if (!out.server_) return std::nullopt;
    } else if (mcp.command) {
        out.command_ = CommandTemplate::compile(*mcp.command, context);
    } else {
        context.diagnostics.error(mcp.mark, "an MCP server needs url or command");
        return std::nullopt;
    }
    return out;
}

// Under names of ours: a server that knows them can refuse a second effect by itself.
Json McpTemplate::own_meta(const Scope& scope) const {
    Json meta{Json::Object{}};
    const auto& call = scope.call;
    if (const auto& trace = call.intent.traceparent) {
        meta.set("traceparent", Json(outbox::child_traceparent(*trace)));
    }
    if (!tells_operation_) return meta;
    meta.set("dev.outboxd/idempotency-key", Json(call.provider_key));
    meta.set("dev.outboxd/operation-id", Json(call.intent.id.value));
    meta.set("dev.outboxd/attempt", Json(call.attempt));
    return meta;
}

Rendered<McpCall> McpTemplate::render(const Scope& scope) const {
    McpCall call;
    call.tool = tool_;
    auto arguments = arguments_.render(scope);
    if (!arguments.ok()) return arguments.error();
    call.arguments = std::move(arguments.value()).value_or(Json(Json::Object{}));
    call.meta = own_meta(scope);
    auto meta = meta_.render(scope);
    if (!meta.ok()) return meta.error();
    if (meta.value()) {
        for (auto& [name, value] : *meta.value()->as_object()) call.meta.set(name, value);
    }
    if (server_) {
        auto request = server_->render_unsigned(scope);
        if (!request.ok()) return request.error();
        call.to = std::move(request.value());
    } else {
        auto spec = command_->render(scope);
        if (!spec.ok()) return spec.error();
        spec.value().interactive = true;
        spec.value().output_limit = output_limit;
        call.to = std::move(spec.value());
    }
    return call;
}

}  // namespace tools
