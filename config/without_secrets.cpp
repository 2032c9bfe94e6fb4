#include "config/without_secrets.hpp"

#include <variant>

#include "config/mask.hpp"

namespace config {
namespace {

using Kind = Value::Kind;

constexpr auto kMask = "***";
// Of the right form, and nobody's: 32 asterisks.
constexpr auto kNoSigningSecret = "whsec_KioqKioqKioqKioqKioqKioqKioqKioqKioqKioqKio=";

// "Token ${cred:pager} {{ operation.key }}" → "Token *** {{ operation.key }}".
std::string hidden(const std::string& source) {
    std::string out;
    std::size_t at = 0;
    while (at < source.size()) {
        if (source.compare(at, 3, "$${") == 0) {
            out += "${";
            at += 3;
        } else if (source.compare(at, 2, "${") == 0) {
            const auto close = source.find('}', at);
            out += kMask;
            at = close == std::string::npos ? source.size() : close + 1;
        } else {
            out += source[at++];
        }
    }
    return out;
}

bool is_template(const std::string& text) {
    return text.find("{{") != std::string::npos;
}

void hide(std::string& value, const std::string& source, bool from_secret, bool sensitive) {
    if (!source.empty() && (from_secret || sensitive)) {
        value = hidden(source);
    } else if (from_secret || (sensitive && !is_template(value))) {
        value = kMask;
    }
}

void hide(Text& text, bool sensitive = false) {
    hide(text.value, text.source, text.from_secret, sensitive);
}

void hide(Value& value, bool sensitive = false) {
    if (value.is(Kind::string)) hide(value.text, value.source, value.from_secret, sensitive);
    if (value.is(Kind::number) && sensitive) {
        value.kind = Kind::string;
        value.text = kMask;
    }
    for (auto& item : value.items) hide(item, sensitive);
    for (auto& member : value.members) {
        hide(member.value, sensitive || is_sensitive_name(member.key));
    }
}

// A secret address (a web hook) keeps its origin, without which it would be none.
void hide_url(Text& url) {
    if (!url.from_secret) return;
    const auto scheme = url.value.find("://");
    if (scheme == std::string::npos) return hide(url);
    const auto origin = url.value.substr(0, url.value.find_first_of("/?#", scheme + 3));
    const auto shown = hidden(url.source);
    // The secret holds more than a part of the path: nothing of it is shown.
    url.value = shown.rfind(origin, 0) == 0 ? shown : origin + "/" + kMask;
}

void hide(HttpRequest& request) {
    hide_url(request.url);
    for (auto& [name, value] : request.headers) hide(value, is_sensitive_name(name.value));
    for (auto& [name, value] : request.query) hide(value, is_sensitive_name(name.value));
    hide(request.body_value);
    hide(request.body_text);
}

void hide(Command& command) {
    for (auto& item : command.argv) hide(item);
    if (command.stdin_text) hide(*command.stdin_text);
    for (auto& [name, value] : command.env) hide(value, is_sensitive_name(name.value));
}

// "Token token=${cred:pager}" → "Token token=***": what print-config shows as well.
void hide(Secret& secret) {
    secret.value = shown_secret(secret.source).empty() ? kMask : hidden(secret.source);
}

void hide(Sql& sql) {
    if (sql.dsn) hide(*sql.dsn);
    for (auto& [name, value] : sql.parameters) hide(value, is_sensitive_name(name.value));
}

void hide(Mcp& mcp) {
    if (mcp.server) hide(*mcp.server);
    if (mcp.command) hide(*mcp.command);
    hide(mcp.arguments);
    hide(mcp.meta);
}

// Nothing is sent. No catch-all: a new kind of action has to say what it hides.
void hide(LogAction&) {}
void hide(Resend&) {}
void hide(Manual&) {}

// In tests a literal under a name such as token is made up: only what was brought in is hidden.
void hide_sourced(Value& value, bool sensitive = false) {
    if (value.is(Kind::string) && !value.source.empty()) hide(value, sensitive);
    for (auto& item : value.items) hide_sourced(item, sensitive);
    for (auto& member : value.members) {
        hide_sourced(member.value, sensitive || is_sensitive_name(member.key));
    }
}

void hide_optional(std::optional<Value>& part) {
    if (part) hide_sourced(*part);
}
void hide_optional(std::optional<Text>& part) {
    if (part) hide(*part);
}

// Tests may name secrets as the tools do; a failing one shows what it expected.
void hide(TestPhase& phase) {
    if (phase.request) {
        auto& request = *phase.request;
        hide_optional(request.url);
        hide_optional(request.json);
        hide_optional(request.form);
        hide_optional(request.text);
        hide_optional(request.arguments);
        hide_optional(request.statement);
        hide_optional(request.parameters);
        hide_optional(request.stdin_text);
        if (request.argv) {
            for (auto& item : *request.argv) hide(item);
        }
        for (auto* named : {&request.headers, &request.env}) {
            for (auto& [name, value] : *named) {
                if (value) hide(*value, is_sensitive_name(name.value) && !value->source.empty());
            }
        }
    }
    for (auto& answer : phase.answers) {
        hide_optional(answer.result);
        hide_optional(answer.code);
        hide_optional(answer.message);
    }
}

}  // namespace

Config without_secrets(Config config) {
    for (auto& [name, credential] : config.credentials) {
        hide(credential.secret);
        if (credential.kind == Credential::Kind::standard_webhooks) {
            credential.secret.value = kNoSigningSecret;
        }
    }
    if (config.defaults.http.proxy) hide(config.defaults.http.proxy->secret);
    for (auto& tool : config.tools) {
        if (tool.http.proxy) hide(tool.http.proxy->secret);
        std::visit([](auto& execute) { hide(execute); }, tool.execute);
        if (!tool.reconcile_by) continue;
        std::visit([](auto& lookup) { hide(lookup); }, *tool.reconcile_by);
    }
    for (auto& test : config.test_cases) {
        hide(test.execute);
        hide(test.reconcile);
    }
    return config;
}

}  // namespace config
