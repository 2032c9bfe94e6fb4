// One template in every place that can hold one, rendered against arbitrary arguments. Parts: the
// template, the arguments as JSON. Whatever they are, the file's author decides the shape: which
// host, how many segments, parameters, headers, members and arguments; values only fill them.
#include <algorithm>
#include <optional>

#include "tests/fuzz/harness.hpp"
#include "tools/command_template.hpp"
#include "tools/encoding.hpp"
#include "tools/http_client_request.hpp"
#include "tools/request_template.hpp"

namespace {

using config::Text;
using config::Value;
using fuzz::must;
using outbox::Json;
using tools::Template;

Value text_value(const std::string& text) {
    Value value;
    value.kind = Value::Kind::string;
    value.text = text;
    return value;
}

Value mapping(std::vector<std::pair<std::string, Value>> members) {
    Value value;
    value.kind = Value::Kind::mapping;
    for (auto& [key, member] : members) value.members.push_back({key, {}, std::move(member)});
    return value;
}

// What the compiler accepted; nothing where it reported a mistake.
template <class Compile>
auto compiled(Compile compile)
    -> std::optional<decltype(compile(std::declval<tools::CompileContext&>()))> {
    config::Diagnostics diagnostics;
    tools::CompileContext context{
        .diagnostics = diagnostics, .compensation = true, .paginated = true
    };
    auto result = compile(context);
    if (diagnostics.has_errors()) return std::nullopt;
    return result;
}

struct Case {
    std::string text;  // the template
    Template itself;
    tools::Scope scope;
    bool uses_key = false;

    // Values are data: what looks like a template in one of them is never rendered.
    void check_one_pass(std::string_view rendered) const {
        must(
            uses_key || rendered.find(fuzz::kProviderKey) == std::string_view::npos,
            "rendering is one pass",
            rendered
        );
    }
};

// The text with a plain character where each expression stands.
std::string shape(const std::string& text) {
    const auto parsed =
        compiled([&](auto& context) { return Template::compile({text, {}}, context); });
    std::string out;
    for (const auto& piece : parsed->pieces()) out += piece.expression ? "x" : piece.literal;
    return out;
}

std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> out(1);
    for (const char c : text) {
        if (c == separator) {
            out.emplace_back();
        } else {
            out.back() += c;
        }
    }
    return out;
}

std::string_view path_of(std::string_view target) {
    return target.substr(0, target.find('?'));
}
std::string_view query_of(std::string_view target) {
    return target.substr(std::min(target.find('?'), target.size()));
}

void check_target(const std::string& target, const std::string& wanted) {
    const auto whole = tools::origin_of("https://desk.example:8443" + target);
    must(
        whole && whole->host == "desk.example" && whole->port == 8443 && whole->tls,
        "the host is the file's",
        target
    );
    const auto have = split(path_of(target), '/');
    const auto want = split(path_of(wanted), '/');
    must(have.size() == want.size(), "a value makes no path segment", target);
    for (std::size_t i = 0; i < have.size(); ++i) {
        const bool special = have[i].empty() || have[i] == "." || have[i] == "..";
        must(!special || have[i] == want[i], "a value makes no special segment", target);
    }
    for (const char c : {'?', '&', '=', '#'}) {
        const auto count = [&](std::string_view text) {
            return std::count(text.begin(), text.end(), c);
        };
        must(
            count(query_of(target)) == count(query_of(wanted)), "a value makes no parameter", target
        );
    }
}

void check_url(const Case& it) {
    const auto url = "https://desk.example:8443/a/" + it.text + "/z?q=" + it.text;
    const auto parsed =
        compiled([&](auto& context) { return tools::UrlTemplate::compile({url, {}}, context); });
    if (!parsed || !*parsed) return;
    must((*parsed)->origin().host == "desk.example", "the host is the file's", url);
    const auto target = (*parsed)->render(it.scope);
    if (!target.ok()) return;
    check_target(
        target.value(), shape(url).substr(std::string_view("https://desk.example:8443").size())
    );
    it.check_one_pass(target.value());
}

void check_head(const Case& it) {
    config::HttpRequest request;
    request.method = {"POST", {}};
    request.url = {"https://desk.example:8443/a", {}};
    request.headers = {{{"X-One", {}}, {it.text, {}}}, {{"X-Two", {}}, {"v" + it.text, {}}}};
    request.query = {{{"q", {}}, text_value(it.text)}, {{"last", {}}, text_value("1")}};
    const auto parsed = compiled([&](auto& context) {
        return tools::RequestTemplate::compile(request, {}, context);
    });
    if (!parsed || !*parsed) return;
    const auto rendered = (*parsed)->render(it.scope);
    if (!rendered.ok()) return;
    const auto& made = rendered.value();
    const auto problem = tools::check_request(made);
    must(!problem, "what renders can be sent", problem.value_or(""));
    const bool optional = it.itself.optional();
    const auto parameters = split(made.target, '&').size();
    must(parameters == 2 || (optional && parameters == 1), "two parameters", made.target);
    must(made.target.ends_with("last=1"), "the last parameter is the file's", made.target);
    must(
        std::count(made.target.begin(), made.target.end(), '=') == static_cast<long>(parameters),
        "a value makes no parameter",
        made.target
    );
    // Both headers and Accept; an optional one may be left out.
    must(made.headers.size() == 3 || (optional && made.headers.size() == 1), "three headers");
    const auto head = tools::request_head(made);
    // The request line, Host, User-Agent, Accept-Encoding, Content-Length, the headers, and the
    // empty line.
    must(split(head, '\n').size() == made.headers.size() + 7, "a value makes no header", head);
    must(split(head, '\r').size() == made.headers.size() + 7, "a value makes no header", head);
    it.check_one_pass(head);
}

std::optional<std::string> rendered_body(const Case& it, config::HttpRequest request) {
    request.method = {"POST", {}};
    request.url = {"https://desk.example/a", {}};
    const auto parsed = compiled([&](auto& context) {
        return tools::RequestTemplate::compile(request, {}, context);
    });
    if (!parsed || !*parsed) return std::nullopt;
    const auto rendered = (*parsed)->render(it.scope);
    if (!rendered.ok()) return std::nullopt;
    it.check_one_pass(rendered.value().body);
    return rendered.value().body;
}

void check_json(const Case& it) {
    config::HttpRequest request;
    request.body = config::HttpRequest::Body::json;
    Value list;
    list.kind = Value::Kind::sequence;
    list.items = {text_value(it.text), text_value("x" + it.text)};
    request.body_value =
        mapping({{"a", text_value(it.text)}, {"b", list}, {"c", text_value("end")}});
    const auto body = rendered_body(it, std::move(request));
    if (!body) return;
    const auto json = outbox::parse_json(*body);
    must(json.value && json.value->as_object(), "a JSON body is JSON", *body);
    const bool optional = it.itself.optional();
    const auto members = json.value->as_object()->size();
    must(members == 3 || (optional && members == 2), "a value adds no member", *body);
    const auto* items = json.value->find("b");
    must(items && items->as_array(), "the list is there", *body);
    const auto count = items->as_array()->size();
    must(count == 2 || (optional && count < 2), "a value adds no item", *body);
    const auto* end = json.value->find("c");
    must(end && end->as_string() && *end->as_string() == "end", "the file's own value", *body);
}

void check_form(const Case& it) {
    config::HttpRequest request;
    request.body = config::HttpRequest::Body::form;
    request.body_value = mapping({{"a", text_value(it.text)}, {"c", text_value("end")}});
    const auto body = rendered_body(it, std::move(request));
    if (!body) return;
    const auto pairs = split(*body, '&');
    must(pairs.back() == "c=end", "the file's own value comes last", *body);
    for (std::size_t i = 0; i + 1 < pairs.size(); ++i) {
        const bool own = pairs[i].starts_with("a=") || pairs[i].starts_with("a%5B");
        must(own && split(pairs[i], '=').size() == 2, "a value stays below its member", *body);
    }
    constexpr std::string_view kOthers = "-._~%=&";
    must(
        std::all_of(
            body->begin(),
            body->end(),
            [&](char c) {
                return std::isalnum(static_cast<unsigned char>(c)) ||
                       kOthers.find(c) != std::string_view::npos;
            }
        ),
        "a form is encoded",
        *body
    );
}

// Characters that only the file may write, by what the last filters say.
void check_escapes(const Case& it, std::string_view body) {
    const auto literal = [&](char c) {
        long count = 0;
        for (const auto& piece : it.itself.pieces()) {
            count += std::count(piece.literal.begin(), piece.literal.end(), c);
        }
        return count;
    };
    const auto all = [&](tools::FilterId id) {
        const auto& pieces = it.itself.pieces();
        return std::all_of(pieces.begin(), pieces.end(), [&](const auto& piece) {
            return !piece.expression || piece.expression->filters.back().id == id;
        });
    };
    const auto only = [&](std::string_view characters) {
        for (const char c : characters) {
            must(std::count(body.begin(), body.end(), c) == literal(c), "a value is escaped", body);
        }
    };
    using namespace std::literals;
    if (all(tools::FilterId::xml)) only("<>\"'\0\x01"sv);
    if (all(tools::FilterId::ical_text)) only("\r\n\0\x01"sv);
    if (all(tools::FilterId::json) && it.itself.has_expressions() &&
        it.itself.pieces().size() == 1 && !it.itself.optional()) {
        must(outbox::parse_json(body).value.has_value(), "| json is JSON", body);
    }
}

void check_text(const Case& it) {
    const auto escaped =
        compiled([&](auto& context) { return Template::compile_escaped({it.text, {}}, context); });
    if (!escaped) return;
    config::HttpRequest request;
    request.body = config::HttpRequest::Body::text;
    request.body_text = {it.text, {}};
    if (const auto body = rendered_body(it, request)) check_escapes(it, *body);
    // As lines of CRLF: no line feed is left alone.
    request.crlf = true;
    if (const auto body = rendered_body(it, std::move(request))) {
        for (auto at = body->find('\n'); at != std::string::npos; at = body->find('\n', at + 1)) {
            must(at > 0 && (*body)[at - 1] == '\r', "newline: crlf", *body);
        }
    }
}

void check_command(const Case& it) {
    config::Command command;
    command.argv = {{"/bin/true", {}}, {it.text, {}}, {"--x=" + it.text, {}}, {"end", {}}};
    command.env = {{{"ONE", {}}, {it.text, {}}}};
    command.stdin_text = Text{"fixed", {}};
    const auto parsed =
        compiled([&](auto& context) { return tools::CommandTemplate::compile(command, context); });
    if (!parsed) return;
    const auto rendered = parsed->render(it.scope);
    if (!rendered.ok()) return;
    const auto& spec = rendered.value();
    const bool optional = it.itself.optional();
    must(spec.argv.size() == 4 || (optional && spec.argv.size() == 2), "argv is the file's");
    must(spec.argv[0] == "/bin/true" && spec.argv.back() == "end", "argv keeps its order");
    if (spec.argv.size() == 4 && it.itself.starts_with_expression()) {
        must(!spec.argv[1].starts_with('-'), "a value is no option", spec.argv[1]);
    }
    const auto variables = spec.environment.size();
    must(variables == 5 || (optional && variables == 4), "the environment is the file's");
    for (const auto* list : {&spec.argv, &spec.environment}) {
        for (const auto& item : *list) {
            must(item.find('\0') == std::string::npos, "execve takes no NUL", item);
        }
    }
    it.check_one_pass(spec.argv[1]);
}

}  // namespace

void fuzz::run_input(std::string_view input) {
    const auto parts = parts_of(input, 3);
    if (!is_utf8(parts[0]) || input.find(kProviderKey) != std::string_view::npos) return;
    const std::string text(parts[0]);
    auto itself = compiled([&](auto& context) { return Template::compile({text, {}}, context); });
    auto arguments = outbox::parse_json(parts[1]);
    if (!itself || !arguments.value) return;
    auto call = call_with(std::move(*arguments.value));
    auto original = outbox::parse_json(parts[2]);
    if (original.value) call.intent.original_result = std::move(*original.value);
    Case it{text, std::move(*itself), {call, nullptr}};
    for (const auto& piece : it.itself.pieces()) {
        it.uses_key |= piece.expression && piece.expression->path.size() > 1 &&
                       piece.expression->path[0] == "operation";
    }
    check_url(it);
    check_head(it);
    check_json(it);
    check_form(it);
    check_text(it);
    check_command(it);
}
