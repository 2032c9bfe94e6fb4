#include "tools/config_test_request.hpp"

#include <fmt/format.h>

#include <boost/algorithm/string/replace.hpp>
#include <cctype>

#include "tools/answer.hpp"
#include "tools/form.hpp"

namespace tools {
namespace {

using outbox::Json;

// A multi-line text in YAML ends its lines with LF, also where `newline: crlf` sends CR LF.
std::string with_lf(const std::string& text) {
    return boost::algorithm::replace_all_copy(text, "\r\n", "\n");
}

// A statement is the same however it is laid out.
std::string without_layout(const std::string& statement) {
    std::string out;
    for (const char c : statement) {
        const bool blank = std::isspace(static_cast<unsigned char>(c)) != 0;
        if (!blank) {
            out += c;
        } else if (!out.empty() && out.back() != ' ') {
            out += ' ';
        }
    }
    if (!out.empty() && out.back() == ' ') out.pop_back();
    return out;
}

enum class Part { http, command, sql };

// Members that the sent kind does not have.
void foreign(
    TestChecks& checks, const config::ExpectedRequest& expected, const std::string& what, Part part
) {
    const bool of_command = expected.argv || expected.stdin_text || !expected.env.empty();
    const bool of_http = expected.method || expected.url || !expected.headers.empty() ||
                         expected.json || expected.form || expected.text;
    const bool of_sql = expected.statement || expected.parameters;
    const bool of_mcp = expected.tool || expected.arguments;
    const bool strange = (of_http && part != Part::http) || (of_command && part != Part::command) ||
                         (of_sql && part != Part::sql) || (of_mcp && part == Part::sql);
    if (!strange) return;
    checks.check(
        false,
        expected.mark,
        what,
        part == Part::command ? "a command: argv, stdin, env"
        : part == Part::sql   ? "a statement: statement, parameters"
                              : "an HTTP request: method, url, headers, json, form, text",
        "members of another kind"
    );
}

// What the message of a tools/call names, whichever way it goes.
void check_mcp(
    TestChecks& checks,
    const config::ExpectedRequest& expected,
    const std::string& message,
    const std::string& what
) {
    if (!expected.tool && !expected.arguments) return;
    const auto parsed = outbox::parse_json(message);
    const Json nothing;
    const auto& sent = parsed.value ? *parsed.value : nothing;
    const auto* tool = sent.at_pointer("/params/name");
    const auto* arguments = sent.at_pointer("/params/arguments");
    const auto* name = tool == nullptr ? nullptr : tool->as_string();
    checks.equal(expected.tool, name == nullptr ? "no call of a tool" : *name, what + ".tool");
    if (!expected.arguments) return;
    checks.equal(
        *expected.arguments,
        arguments == nullptr ? Json("no call of a tool") : *arguments,
        what + ".arguments"
    );
}

void check_http(
    TestChecks& checks,
    const config::ExpectedRequest& expected,
    const HttpRequest& sent,
    const std::string& what
) {
    foreign(checks, expected, what, Part::http);
    checks.equal(expected.method, sent.method, what + ".method");
    checks.equal(expected.url, url_of(sent), what + ".url");
    for (const auto& header : expected.headers) {
        const std::string* got = nullptr;
        for (const auto& [name, value] : sent.headers) {
            if (same_header_name(name, header.first.value)) got = &value;
        }
        checks.named(header, got, what + ".headers." + header.first.value);
    }
    if (expected.json) {
        const auto wanted = json_of(*expected.json);
        const auto got = outbox::parse_json(sent.body);
        checks.check(
            got.value && got.value->equals(wanted),
            expected.json->mark,
            what + ".json",
            outbox::to_text(wanted),
            sent.body
        );
    }
    if (expected.form) {
        const auto wanted = form_encode(json_of(*expected.form));
        checks.check(
            wanted.ok() && wanted.value() == sent.body,
            expected.form->mark,
            what + ".form",
            wanted.ok() ? wanted.value() : wanted.error().message,
            sent.body
        );
    }
    if (expected.text) {
        const auto got = with_lf(sent.body);
        checks.check(
            with_lf(expected.text->value) == got,
            expected.text->mark,
            what + ".text",
            expected.text->value,
            got
        );
    }
}

void check_command(
    TestChecks& checks,
    const config::ExpectedRequest& expected,
    const ProcessSpec& sent,
    const std::string& what
) {
    foreign(checks, expected, what, Part::command);
    if (expected.argv) {
        const auto list = [](const auto& items, auto text_of) {
            Json::Array out;
            for (const auto& item : items) out.emplace_back(text_of(item));
            return outbox::to_text(Json(std::move(out)));
        };
        const auto wanted = list(*expected.argv, [](const auto& text) { return text.value; });
        const auto got = list(sent.argv, [](const auto& text) { return text; });
        checks.check(wanted == got, expected.mark, what + ".argv", wanted, got);
    }
    checks.equal(expected.stdin_text, sent.input, what + ".stdin");
    for (const auto& variable : expected.env) {
        const auto head = variable.first.value + "=";
        const std::string* got = nullptr;
        std::string value;
        for (const auto& item : sent.environment) {
            if (item.rfind(head, 0) != 0) continue;
            value = item.substr(head.size());
            got = &value;
        }
        checks.named(variable, got, what + ".env." + variable.first.value);
    }
}

void check_statement(
    TestChecks& checks,
    const config::ExpectedRequest& expected,
    const SentStatement& sent,
    const std::string& what
) {
    foreign(checks, expected, what, Part::sql);
    if (expected.statement) {
        checks.check(
            without_layout(expected.statement->value) == without_layout(sent.statement),
            expected.statement->mark,
            what + ".statement",
            without_layout(expected.statement->value),
            without_layout(sent.statement)
        );
    }
    if (!expected.parameters) return;
    Json got{Json::Object{}};
    for (const auto& [name, value] : sent.parameters) got.set(name, value);
    for (const auto& member : expected.parameters->members) {
        const auto* value = got.find(member.key);
        checks.equal(
            member.value,
            value != nullptr ? *value : Json("there is no such parameter"),
            what + ".parameters." + member.key
        );
    }
}

void check_refused(
    TestChecks& checks,
    const config::ExpectedRequest& expected,
    const outbox::Error& refusal,
    const std::string& what
) {
    const auto got = fmt::format("refused, {}: {}", refusal.code, refusal.message);
    if (!expected.refused) {
        checks.check(false, expected.mark, what, "a request", got);
        return;
    }
    checks.check(
        refusal.code == expected.refused->value,
        expected.refused->mark,
        what + ".refused",
        expected.refused->value,
        got
    );
}

}  // namespace

void check_request(
    TestChecks& checks,
    const config::ExpectedRequest& expected,
    const Rendered<SentRequest>& sent,
    const std::string& what
) {
    if (!sent.ok()) return check_refused(checks, expected, sent.error(), what);
    const auto& request = sent.value();
    if (expected.refused) {
        checks.check(
            false,
            expected.refused->mark,
            what + ".refused",
            expected.refused->value,
            to_text(request)
        );
    } else if (const auto* http = std::get_if<HttpRequest>(&request)) {
        check_mcp(checks, expected, http->body, what);
        check_http(checks, expected, *http, what);
    } else if (const auto* command = std::get_if<ProcessSpec>(&request)) {
        check_mcp(checks, expected, command->input, what);
        check_command(checks, expected, *command, what);
    } else {
        check_statement(checks, expected, std::get<SentStatement>(request), what);
    }
}

}  // namespace tools
