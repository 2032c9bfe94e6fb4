// print(): the effective configuration as a tree of values, which emit.cpp writes.
#include <fmt/format.h>

#include "config/emit.hpp"
#include "config/load.hpp"
#include "config/mask.hpp"
#include "config/units.hpp"

namespace config {
namespace {

using Kind = Value::Kind;

Value scalar(Kind kind, std::string text) {
    Value value;
    value.kind = kind;
    value.text = std::move(text);
    return value;
}
Value text(std::string t) {
    return scalar(Kind::string, std::move(t));
}
Value number(double n) {
    return scalar(Kind::number, fmt::format("{}", n));
}
Value number(int n) {
    return scalar(Kind::number, std::to_string(n));
}
Value flag(bool b) {
    return scalar(Kind::boolean, b ? "true" : "false");
}
Value length(Duration d) {
    return text(duration_text(d));
}
Value length(const std::optional<Duration>& d) {
    return text(d ? duration_text(*d) : "forever");
}
Value as_written(const Text& t) {
    Value value = text(t.value);
    value.source = t.source;
    return value;
}
Value path(const std::optional<std::string>& p) {
    return p ? text(*p) : Value{};
}

Value secret(const Secret& s) {
    Value value = text("***");
    value.source = shown_secret(s.source);
    return value;
}

Value mapping() {
    Value value;
    value.kind = Kind::mapping;
    return value;
}

void set(Value& map, std::string key, Value value) {
    map.kind = Kind::mapping;
    for (auto& member : map.members) {
        if (member.key != key) continue;
        member.value = std::move(value);
        return;
    }
    map.members.push_back({std::move(key), {}, std::move(value)});
}

void set_default(Value& map, std::string key, Value value) {
    const auto* found = map.find(key);
    if (!found || found->is(Kind::null)) set(map, std::move(key), std::move(value));
}

Value list(const std::vector<std::string>& items) {
    Value value;
    value.kind = Kind::sequence;
    for (const auto& item : items) value.items.push_back(text(item));
    return value;
}

Value database(const Database& in) {
    auto out = mapping();
    if (!in.sources.empty()) {
        Value sources;
        sources.kind = Kind::sequence;
        for (const auto& source : in.sources) {
            auto one = mapping();
            set(one, "name", text(source.name));
            set(one, "dsn", secret(source.dsn));
            sources.items.push_back(std::move(one));
        }
        set(out, "sources", std::move(sources));
        return out;
    }
    if (!in.dsn.value.empty()) set(out, "dsn", secret(in.dsn));
    if (in.embedded) {
        auto embedded = mapping();
        set(embedded, "data_dir", text(in.embedded->data_dir));
        set(out, "embedded", std::move(embedded));
    }
    set(out, "namespace", text(in.key_namespace));
    return out;
}

Value worker(const Worker& in) {
    auto out = mapping();
    set(out, "name", text(in.name));
    set(out, "concurrency", number(in.concurrency));
    auto poll = mapping();
    set(poll, "busy", length(in.poll_busy));
    set(poll, "idle", length(in.poll_idle));
    set(out, "poll", std::move(poll));
    set(out, "wakeup", text(in.wakeup ? "auto" : "off"));
    set(out, "drain_timeout", length(in.drain_timeout));
    set(out, "lease_margin", length(in.lease_margin));
    return out;
}

Value admin(const Admin& in) {
    auto out = mapping();
    const bool v6 = in.host.find(':') != std::string::npos;
    set(out,
        "listen",
        text(v6 ? fmt::format("[{}]:{}", in.host, in.port) : fmt::format("{}:{}", in.host, in.port))
    );
    set(out, "token_file", path(in.token_file));
    set(out, "hosts", list(in.hosts));
    return out;
}

Value mcp_face(const McpFace& in) {
    auto out = mapping();
    set(out, "run_header", path(in.run_header));
    set(out, "wait", length(in.wait));
    set(out, "token_file", path(in.token_file));
    return out;
}

Value retry(const Retry& in) {
    auto out = mapping();
    set(out, "max_attempts", number(in.max_attempts));
    set(out, "initial", length(in.initial));
    set(out, "max", length(in.max));
    set(out, "multiplier", number(in.multiplier));
    set(out, "jitter", number(in.jitter));
    set(out, "give_up_after", length(in.give_up_after));
    return out;
}

void set_policy(Value& out, const Reconcile& in) {
    set(out, "settle", length(in.settle));
    set(out, "confirmations", number(in.confirmations));
    set(out, "interval", length(in.interval));
    set(out, "max_interval", length(in.max_interval));
    set(out, "give_up_after", length(in.give_up_after));
    set(out, "after_absent", text(in.after_absent));
}

// A password in it is shown as its source, or not at all.
Value proxy(const Proxy& in) {
    const bool v6 = in.host.find(':') != std::string::npos;
    const auto host = v6 ? fmt::format("[{}]", in.host) : in.host;
    const bool plain = in.user.empty() && in.secret.value.empty();
    Value value = text(fmt::format("http://{}{}:{}", plain ? "" : "***@", host, in.port));
    value.source = shown_secret(in.secret.source);
    return value;
}

Value http(const Http& in) {
    auto out = mapping();
    set(out, "tls_verify", flag(in.tls_verify));
    set(out, "ca_file", path(in.ca_file));
    set(out, "max_connections_per_host", number(in.max_connections_per_host));
    set(out, "allow_private_hosts", flag(in.allow_private_hosts));
    set(out, "proxy", in.proxy ? proxy(*in.proxy) : text("none"));
    return out;
}

Value defaults(const Defaults& in) {
    auto out = mapping();
    set(out, "timeout", length(in.timeout));
    set(out, "connect_timeout", length(in.connect_timeout));
    set(out, "retry", retry(in.retry));
    auto reconcile = mapping();
    set_policy(reconcile, in.reconcile);
    set(out, "reconcile", std::move(reconcile));
    set(out, "http", http(in.http));
    return out;
}

Value credential(const Credential& in) {
    auto out = mapping();
    switch (in.kind) {
        case Credential::Kind::bearer:
            set(out, "kind", text("bearer"));
            set(out, "token", secret(in.secret));
            return out;
        case Credential::Kind::basic:
            set(out, "kind", text("basic"));
            set(out, "username", text(in.user_or_name));
            set(out, "password", secret(in.secret));
            return out;
        case Credential::Kind::header:
        case Credential::Kind::query:
            set(out, "kind", text(in.kind == Credential::Kind::header ? "header" : "query"));
            set(out, "name", text(in.user_or_name));
            set(out, "value", secret(in.secret));
            return out;
        case Credential::Kind::oauth2_client_credentials:
            set(out, "kind", text("oauth2_client_credentials"));
            set(out, "token_url", as_written(in.token_url));
            set(out, "client_id", text(in.user_or_name));
            set(out, "client_secret", secret(in.secret));
            set(out, "client_auth", text(in.secret_in_body ? "post" : "basic"));
            if (!in.scope.empty()) set(out, "scope", text(in.scope));
            if (!in.audience.empty()) set(out, "audience", text(in.audience));
            return out;
        case Credential::Kind::standard_webhooks:
            set(out, "kind", text("standard_webhooks"));
            set(out, "secret", secret(in.secret));
            return out;
        case Credential::Kind::mtls:
            set(out, "kind", text("mtls"));
            set(out, "cert_file", text(in.cert_file));
            set(out, "key_file", text(in.key_file));
            return out;
    }
    return out;
}

Value key(const Key& in) {
    auto out = mapping();
    set(out, "encoding", text(in.encoding));
    set(out, "prefix", text(in.prefix));
    set(out, "max_length", number(static_cast<int>(in.max_length)));
    set(out, "window", length(in.window));
    return out;
}

void set_command_defaults(Value& out) {
    set_default(out, "allow_dash", flag(false));
    set_default(out, "stdout", text("json"));
}

void set_mcp_defaults(Value& out, const Mcp& mcp) {
    if (mcp.command) set_default(out, "allow_dash", flag(false));
}

// A dsn that holds a password is not shown.
void mask_dsn(Value& out, const Sql& sql) {
    if (sql.dsn) set(out, "dsn", secret(*sql.dsn));
}

Value reconcile(const Tool& tool) {
    const auto* given = tool.source.find("reconcile");
    auto out = given ? *given : mapping();
    const auto& by = *tool.reconcile_by;
    if (std::holds_alternative<HttpRequest>(by)) set_default(out, "method", text("GET"));
    if (std::holds_alternative<Command>(by)) set_command_defaults(out);
    if (const auto* sql = std::get_if<Sql>(&by)) mask_dsn(out, *sql);
    if (const auto* mcp = std::get_if<Mcp>(&by)) set_mcp_defaults(out, *mcp);
    set(out, "consistency", text(tool.consistency));
    set_policy(out, tool.reconcile);
    return out;
}

// The tool as the file has it, with everything that was left out or inherited.
Value tool_tree(const Tool& tool) {
    auto out = tool.source;
    if (!tool.title.empty()) set(out, "title", text(tool.title));
    if (!tool.description.empty()) set(out, "description", text(tool.description));
    set(out, "effect", text(tool.write ? "write" : "read"));
    if (tool.concurrency > 0) set(out, "concurrency", number(tool.concurrency));
    if (tool.rate_per_second) set(out, "rate", text(rate_text(*tool.rate_per_second)));
    set(out, "timeout", length(tool.timeout));
    set(out, "connect_timeout", length(tool.connect_timeout));
    set(out, "retry", retry(tool.retry));
    set(out, "http", http(tool.http));
    set(out, "key", key(tool.key));
    set(out, "expose", flag(tool.expose));
    set(out, "destructive", flag(tool.destructive));
    if (std::holds_alternative<Command>(tool.execute)) {
        if (tool.compensates_tool) {
            set_command_defaults(out);
        } else {
            auto execute = *tool.source.find("execute");
            set_command_defaults(execute);
            set(out, "execute", std::move(execute));
        }
    }
    if (const auto* sql = std::get_if<Sql>(&tool.execute)) {
        if (tool.compensates_tool) {
            mask_dsn(out, *sql);
        } else {
            auto execute = *tool.source.find("execute");
            mask_dsn(execute, *sql);
            set(out, "execute", std::move(execute));
        }
    }
    if (const auto* mcp = std::get_if<Mcp>(&tool.execute); mcp && mcp->command) {
        if (tool.compensates_tool) {
            set_mcp_defaults(out, *mcp);
        } else {
            auto execute = *tool.source.find("execute");
            set_mcp_defaults(execute, *mcp);
            set(out, "execute", std::move(execute));
        }
    }
    if (tool.reconcile_by) set(out, "reconcile", reconcile(tool));
    mask_requests(out);
    return out;
}

Value tools(const Config& config) {
    auto out = mapping();
    for (const auto& tool : config.tools) {
        if (tool.compensates_tool) continue;
        auto tree = tool_tree(tool);
        auto compensate = mapping();
        for (const auto& other : config.tools) {
            if (other.compensates_tool != tool.name) continue;
            set(compensate, other.name.substr(tool.name.size() + 1), tool_tree(other));
        }
        if (!compensate.members.empty()) set(tree, "compensate", std::move(compensate));
        set(out, tool.name, std::move(tree));
    }
    return out;
}

Value limits(const Limits& in) {
    auto out = mapping();
    set(out, "arguments", text(size_text(in.arguments)));
    set(out, "result", text(size_text(in.result)));
    set(out, "response", text(size_text(in.response)));
    return out;
}

Value retention(const Retention& in) {
    auto out = mapping();
    set(out, "payloads", length(in.payloads));
    set(out, "events", length(in.events));
    set(out, "keys", length(in.keys));
    return out;
}

}  // namespace

Value effective(const Config& config) {
    auto out = mapping();
    set(out, "version", number(1));
    set(out, "database", database(config.database));
    set(out, "worker", worker(config.worker));
    set(out, "admin", admin(config.admin));
    set(out, "mcp", mcp_face(config.mcp));
    auto log = mapping();
    set(log, "level", text(config.log.level));
    set(log, "format", text(config.log.format));
    set(out, "log", std::move(log));
    set(out, "limits", limits(config.limits));
    set(out, "retention", retention(config.retention));
    set(out, "defaults", defaults(config.defaults));
    auto credentials = mapping();
    for (const auto& [name, c] : config.credentials) set(credentials, name, credential(c));
    set(out, "credentials", std::move(credentials));
    set(out, "tools", tools(config));
    auto testing = mapping();
    set(testing, "allow_failpoints", flag(config.allow_failpoints));
    set(out, "testing", std::move(testing));
    if (config.tests) set(out, "tests", *config.tests);
    return out;
}

std::string print(const Config& config) {
    return to_yaml(effective(config));
}

}  // namespace config
