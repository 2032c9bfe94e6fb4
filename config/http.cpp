#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "config/mask.hpp"
#include "config/nearest.hpp"
#include "config/sections.hpp"

namespace config {
namespace {

using Kind = Value::Kind;

std::string lower(std::string_view text) {
    std::string out(text);
    for (auto& c : out) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    return out;
}

void read_method(MapReader& in, Phase phase, HttpRequest& out) {
    std::string method = "GET";
    const auto* given = in.value("method");
    if (phase == Phase::execute) {
        if (!in.require("method", "for example method: POST")) return;
        in.choice("method", method, {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"});
    } else {
        in.choice("method", method, {"GET", "HEAD", "POST", "OPTIONS"});
    }
    out.method = {method, given ? given->mark : in.key_mark()};
}

// What is wrong with a URL, or empty.
std::string url_problem(std::string_view url, std::string& hint) {
    const auto head = lower(url.substr(0, 8));
    std::size_t from = 0;
    if (head.rfind("http://", 0) == 0) from = 7;
    if (head.rfind("https://", 0) == 0) from = 8;
    hint = "for example https://desk.example.com/api/tickets";
    if (from == 0) return "must begin with http:// or https://";
    const auto host = url.substr(from, url.find_first_of("/?#", from) - from);
    if (host.find("{{") != std::string_view::npos) {
        hint = "the file fixes the host: templates may fill path, query and headers";
        return "a template in the host";
    }
    if (host.find('@') != std::string_view::npos) {
        hint = "use a credential of kind basic";
        return "a user name in the URL";
    }
    if (host.empty() || host.front() == ':') return "has no host";
    if (host.find_first_of(" \t\r\n\\\"<>") != std::string_view::npos)
        return "has a host with odd characters";
    if (url.find_first_of("\r\n") != std::string_view::npos) return "holds a line end";
    return {};
}

void read_url(MapReader& in, HttpRequest& out) {
    const auto* given = in.require("url", "for example url: https://desk.example.com/api/tickets");
    if (!given || !in.text("url", out.url) || given->value.unresolved) return;
    std::string hint;
    if (auto problem = url_problem(out.url.value, hint); !problem.empty()) {
        in.error(given->value, "url", problem, hint);
    }
}

void read_credential(MapReader& in, HttpRequest& out, const ToolContext& context) {
    in.text("credential", out.credential);
    in.text("mtls", out.mtls);
    const auto& known = context.credentials;
    for (const auto* key : {"credential", "mtls"}) {
        const auto* given = in.value(key);
        if (!given || given->unresolved) continue;
        if (std::find(known.begin(), known.end(), given->text) != known.end()) continue;
        in.error(
            *given,
            key,
            fmt::format("there is no credential {}", shown(*given)),
            known.empty() ? "declare it under credentials:" : nearest_hint(given->text, known)
        );
    }
}

void check_header(
    MapReader& in, const Text& name, const Text& value, std::vector<std::string>& seen
) {
    constexpr std::array<std::string_view, 5> kOwn{
        "host", "content-length", "connection", "transfer-encoding", "user-agent"
    };
    const auto key = lower(name.value);
    auto& diagnostics = in.diagnostics();
    const bool token = !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
        return std::isalnum(static_cast<unsigned char>(c)) ||
               std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
    });
    if (!token) {
        diagnostics.error(
            name.mark,
            fmt::format("{}.headers: \"{}\" is no name of a header", in.path(), name.value),
            "letters, digits and -"
        );
    } else if (std::find(kOwn.begin(), kOwn.end(), key) != kOwn.end()) {
        diagnostics.error(
            name.mark,
            fmt::format("{}.headers: {} is set by the client itself", in.path(), name.value),
            "remove it"
        );
    } else if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
        diagnostics.error(
            name.mark,
            fmt::format("{}.headers: {} is given twice", in.path(), name.value),
            "names of headers ignore case"
        );
    }
    if (value.value.find_first_of("\r\n") != std::string::npos) {
        diagnostics.error(
            value.mark,
            fmt::format("{}.headers.{}: a line end in a header", in.path(), name.value),
            "put the value on one line, in quotes"
        );
    }
    const bool literal = value.source.empty() && value.value.find("{{") == std::string::npos;
    if (literal && is_sensitive_name(key) && value.value != "***") {
        diagnostics.warning(
            value.mark,
            fmt::format("{}.headers.{}: a secret in the file itself", in.path(), name.value),
            "use credential:, or ${cred:name}, ${file:/path}, ${env:VAR}"
        );
    }
    seen.push_back(key);
}

void read_body(MapReader& in, HttpRequest& out) {
    const auto* json = in.member("json");
    const auto* form = in.member("form");
    const auto* text = in.member("text");
    const auto* multipart = in.member("multipart");
    const Value::Member* first = nullptr;
    for (const auto* body : {json, form, text, multipart}) {
        if (!body) continue;
        if (first) {
            in.diagnostics().error(
                body->key_mark,
                fmt::format("{}: {} and {} exclude each other", in.path(), first->key, body->key),
                "a request has one body"
            );
        }
        first = first ? first : body;
    }
    if (json) {
        out.body = HttpRequest::Body::json;
        out.body_value = json->value;
    } else if (form) {
        out.body = HttpRequest::Body::form;
        out.body_value = form->value;
        if (!form->value.is(Kind::mapping))
            in.error(form->value, "form", "must be a mapping", "write { name: value }");
    } else if (multipart) {
        out.body = HttpRequest::Body::multipart;
        out.body_value = multipart->value;
        if (!multipart->value.is(Kind::mapping)) {
            in.error(
                multipart->value,
                "multipart",
                "must be a mapping",
                "write { name: value, file: { filename: a.txt, text: \"…\" } }"
            );
        }
    } else if (text) {
        out.body = HttpRequest::Body::text;
        in.text("text", out.body_text);
    }
    if (std::string newline = "lf"; in.choice("newline", newline, {"lf", "crlf"})) {
        out.crlf = newline == "crlf";
        if (!text) in.error(*in.value("newline"), "newline", "belongs to text:", "remove it");
    }
}

void read_query(MapReader& in, HttpRequest& out) {
    std::optional<Value> query;
    in.free_mapping("query", query);
    if (!query) return;
    for (auto& m : query->members)
        out.query.emplace_back(Text{m.key, m.key_mark}, std::move(m.value));
}

void check_paginate(MapReader& in) {
    if (!in.has("paginate")) return;
    auto page = in.section("paginate");
    Text from, to;
    std::optional<Value> more;
    int max_pages = 0;
    if (page.require("from", "where the next page is named: body:/next_cursor"))
        page.text("from", from);
    if (page.require("to", "where it goes: query:cursor")) page.text("to", to);
    page.free_mapping("more", more);
    page.integer("max_pages", max_pages, {1, 10'000});
    page.finish();
}

}  // namespace

// A listing (items) or ordered verdicts: without either no answer would mean anything.
void read_listing(MapReader& in, bool has_rules, Listing& out) {
    in.text("items", out.items);
    in.free_mapping("match", out.match);
    in.free_mapping("must_equal", out.must_equal);
    in.free("result", out.result);
    in.free("paginate", out.paginate);
    check_paginate(in);
    if (!in.is_mapping()) return;
    if (!out.items && !has_rules) {
        in.diagnostics().error(
            in.key_mark(),
            fmt::format("{} has neither items nor verdicts", in.path()),
            "items: /pointer of a listing, or verdicts: [{ when: { status: 404 }, then: absent }, "
            "…]"
        );
    }
    for (const auto* key : {"match", "paginate"}) {
        if (out.items || !in.has(key)) continue;
        in.diagnostics().error(
            in.member(key)->key_mark,
            fmt::format("{}.{} belongs to a listing", in.path(), key),
            "say where the items are: items: /pointer"
        );
    }
}

HttpRequest read_address(MapReader& in, const ToolContext& context) {
    HttpRequest out;
    out.mark = in.key_mark();
    out.method = {"POST", in.key_mark()};
    read_url(in, out);
    read_credential(in, out, context);
    return out;
}

HttpRequest read_http(MapReader& in, Phase phase, const ToolContext& context) {
    HttpRequest out;
    out.mark = in.key_mark();
    read_method(in, phase, out);
    read_url(in, out);
    read_credential(in, out, context);
    in.text_map("headers", out.headers);
    std::vector<std::string> seen;
    for (const auto& [name, value] : out.headers) check_header(in, name, value, seen);
    read_query(in, out);
    read_body(in, out);
    read_rules(in, phase, out.rules, out.has_rules);
    if (phase == Phase::reconcile) read_listing(in, out.has_rules, out);
    return out;
}

}  // namespace config
