#include "tools/sent_request.hpp"

#include <algorithm>
#include <string_view>

#include "outbox/utf8.hpp"
#include "tools/http_client_request.hpp"

namespace tools {
namespace {

using outbox::Json;

// As a shell would need it, for reading only: no shell is involved.
std::string quoted(const std::string& word) {
    constexpr std::string_view kPlain =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/.:=@%+,-";
    if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
    std::string out = "'";
    for (const char c : word) {
        if (c == '\'') {
            out += "'\\''";
        } else {
            out += c;
        }
    }
    return out + "'";
}

std::string text_of(const HttpRequest& request) {
    std::string out = "# to " + std::string(request.origin.tls ? "https://" : "http://") +
                      to_text(request.origin) + "\n";
    auto head = request_head(request);
    std::erase(head, '\r');
    out += head + request.body;
    if (!request.body.empty() && out.back() != '\n') out += '\n';
    return out;
}

std::string text_of(const ProcessSpec& command) {
    std::string out;
    for (const auto& variable : command.environment) {
        const auto equals = variable.find('=');
        out += variable.substr(0, equals + 1) + quoted(variable.substr(equals + 1)) + '\n';
    }
    if (!command.directory.empty()) out += "cd " + quoted(command.directory) + '\n';
    for (const auto& item : command.argv) out += quoted(item) + ' ';
    out.back() = '\n';
    if (!command.input.empty()) {
        out += "# standard input:\n" + command.input;
        if (out.back() != '\n') out += '\n';
    }
    return out;
}

const char* database_of(const SentStatement& sent) {
    return sent.own ? "own" : "other";
}

std::string text_of(const SentStatement& sent) {
    std::string out = sent.own ? "-- on the outbox's own database, in one transaction with the "
                                 "record\n"
                               : "-- on the database of its dsn\n";
    out += sent.statement;
    if (out.back() != '\n') out += '\n';
    for (const auto& [name, value] : sent.parameters) {
        // JSON text holds no line end: nothing of a value looks like SQL of ours.
        out += "-- :" + name + " = " + outbox::to_text(value) + '\n';
    }
    return out;
}

Json json_of(const SentStatement& sent) {
    Json out;
    out.set("type", Json("sql"));
    out.set("database", Json(database_of(sent)));
    out.set("statement", Json(sent.statement));
    Json parameters{Json::Object{}};
    for (const auto& [name, value] : sent.parameters) parameters.set(name, value);
    out.set("parameters", std::move(parameters));
    return out;
}

Json json_of(const HttpRequest& request) {
    Json out;
    out.set("type", Json("http"));
    out.set("method", Json(request.method));
    out.set("url", Json(url_of(request)));
    Json headers{Json::Object{}};
    for (const auto& [name, value] : request.headers) headers.set(name, Json(value));
    out.set("headers", std::move(headers));
    out.set("body", Json(outbox::repair_utf8(request.body)));
    return out;
}

Json json_of(const ProcessSpec& command) {
    Json out;
    out.set("type", Json("command"));
    Json::Array argv;
    for (const auto& item : command.argv) argv.emplace_back(outbox::repair_utf8(item));
    out.set("argv", Json(std::move(argv)));
    Json env{Json::Object{}};
    for (const auto& variable : command.environment) {
        const auto equals = variable.find('=');
        env.set(variable.substr(0, equals), Json(outbox::repair_utf8(variable.substr(equals + 1))));
    }
    out.set("env", std::move(env));
    out.set("cwd", command.directory.empty() ? Json{} : Json(command.directory));
    out.set("stdin", Json(outbox::repair_utf8(command.input)));
    return out;
}

}  // namespace

std::string url_of(const HttpRequest& request) {
    const auto& origin = request.origin;
    std::string out = origin.tls ? "https://" : "http://";
    const bool brackets = origin.host.find(':') != std::string::npos;
    out += brackets ? "[" + origin.host + "]" : origin.host;
    if (origin.port != (origin.tls ? 443 : 80)) out += ":" + std::to_string(origin.port);
    return out + request.target;
}

std::string to_text(const SentRequest& request) {
    return std::visit([](const auto& one) { return text_of(one); }, request);
}

Json to_json(const SentRequest& request) {
    return std::visit([](const auto& one) { return json_of(one); }, request);
}

}  // namespace tools
