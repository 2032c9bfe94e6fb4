// tests: what a tool sends and what it makes of an answer, told beside the tool itself.
#include <fmt/format.h>

#include <algorithm>

#include "config/nearest.hpp"
#include "config/sections.hpp"

namespace config {
namespace {

using Kind = Value::Kind;

// { name: value }, where null says that it must not be there.
void read_absent_or_text(
    MapReader& in, std::string_view key, std::vector<std::pair<Text, std::optional<Text>>>& out
) {
    std::optional<Value> map;
    if (!in.free_mapping(key, map)) return;
    for (const auto& m : map->members) {
        std::optional<Text> text;
        if (m.value.is(Kind::sequence) || m.value.is(Kind::mapping)) {
            in.error(
                m.value,
                fmt::format("{}.{}", key, m.key),
                fmt::format("must be a text, not {}", shown(m.value)),
                "null: it must not be there"
            );
            continue;
        }
        if (!m.value.is(Kind::null)) text = to_text_value(m.value);
        out.emplace_back(Text{m.key, m.key_mark}, std::move(text));
    }
}

ExpectedRequest read_request(MapReader& in) {
    ExpectedRequest out;
    out.mark = in.key_mark();
    in.text("method", out.method);
    in.text("url", out.url);
    read_absent_or_text(in, "headers", out.headers);
    in.free("json", out.json);
    in.free_mapping("form", out.form);
    in.text("text", out.text);
    std::vector<Text> argv;
    if (in.texts("argv", argv)) out.argv = std::move(argv);
    in.text("stdin", out.stdin_text);
    read_absent_or_text(in, "env", out.env);
    in.text("tool", out.tool);
    in.free_mapping("arguments", out.arguments);
    in.text("statement", out.statement);
    in.free_mapping("parameters", out.parameters);
    in.text("refused", out.refused);
    in.finish();
    const bool sent = out.method || out.url || !out.headers.empty() || out.json || out.form ||
                      out.text || out.argv || out.stdin_text || !out.env.empty() || out.tool ||
                      out.arguments || out.statement || out.parameters;
    if (in.is_mapping() && sent == out.refused.has_value()) {
        in.diagnostics().error(
            out.mark,
            fmt::format("{} {}", in.path(), sent ? "is both sent and refused" : "expects nothing"),
            "what is sent: method, url, headers, json, form, text; argv, stdin, env; tool, "
            "arguments; statement, parameters; or refused: invalid_argument"
        );
    }
    return out;
}

// Rows as a statement returns them: mappings of columns.
void read_rows(MapReader& in, CannedAnswer& out) {
    const auto* rows = in.value("rows");
    if (rows == nullptr || rows->unresolved) return;
    const bool listed = rows->is(Kind::sequence) &&
                        std::all_of(rows->items.begin(), rows->items.end(), [](const auto& row) {
                            return row.is(Kind::mapping) || row.unresolved;
                        });
    if (!listed) {
        in.error(*rows, "rows", "must be a list of rows", "rows: [{ id: 7, credit: 12.5 }], or []");
    }
    out.rows = *rows;
}

void read_sqlstate(MapReader& in, CannedAnswer& out) {
    if (!in.has("sqlstate")) return;
    in.string("sqlstate", out.sqlstate);
    const bool fits =
        out.sqlstate.size() == 5 &&
        out.sqlstate.find_first_not_of("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == std::string::npos;
    const auto* given = in.value("sqlstate");
    if (fits || given->unresolved) return;
    in.error(
        *given,
        "sqlstate",
        "must be five digits and capital letters",
        "sqlstate: \"23505\", in quotes: a unique key was violated"
    );
}

// What the other side said; the members stand beside others, so there is no finish() here.
CannedAnswer read_canned(MapReader& in) {
    CannedAnswer out;
    out.mark = in.key_mark();
    int number = 0;
    if (in.integer("status", number, {100, 599})) out.status = number;
    if (in.integer("exit_code", number, {0, 255})) out.exit_code = number;
    if (in.integer("rpc_error", number, {-2'147'483'647, 2'147'483'647})) out.rpc_error = number;
    bool is_error = false;
    if (in.boolean("is_error", is_error)) out.is_error = is_error;
    std::string result_type;
    if (in.string("result_type", result_type)) out.result_type = result_type;
    if (in.integer("affected", number, {0, 1'000'000'000})) out.affected = number;
    read_rows(in, out);
    read_sqlstate(in, out);
    in.text_map("headers", out.headers);
    in.free("body", out.body);
    in.text("text", out.text);
    in.text("stderr", out.stderr_text);
    std::string fails;
    if (in.choice("fails", fails, {"not_sent", "timeout", "reset", "killed"})) {
        out.fails = fails;
    }
    int ways = 0;
    for (const auto* way :
         {"status",
          "exit_code",
          "rpc_error",
          "is_error",
          "result_type",
          "rows",
          "affected",
          "sqlstate",
          "fails"}) {
        ways += in.has(way) ? 1 : 0;
    }
    if (in.is_mapping() && ways != 1) {
        in.diagnostics().error(
            out.mark,
            fmt::format(
                "{} must say one of status, exit_code, rpc_error, is_error, result_type, rows, "
                "affected, sqlstate and fails",
                in.path()
            ),
            "{ status: 201, body: { id: 7 }, then: succeeded }"
        );
    }
    if (out.body && out.text) {
        in.error(*in.value("text"), "text", "body and text exclude each other", "keep one");
    }
    return out;
}

void read_pages(MapReader& in, const Value& pages, TestAnswer& out) {
    if (!pages.is(Kind::sequence) || pages.items.empty()) {
        in.error(pages, "pages", "must be a list of answers", "[{ status: 200, body: … }, …]");
        return;
    }
    for (std::size_t i = 0; i < pages.items.size(); ++i) {
        MapReader page(
            &pages.items[i],
            pages.items[i].mark,
            fmt::format("{}.pages[{}]", in.path(), i),
            in.diagnostics()
        );
        out.pages.push_back(read_canned(page));
        page.finish();
    }
}

TestAnswer read_answer(const Value& item, std::string path, Phase phase, Diagnostics& diagnostics) {
    MapReader in(&item, item.mark, std::move(path), diagnostics);
    TestAnswer out;
    out.mark = item.mark;
    const auto* pages = phase == Phase::reconcile ? in.value("pages") : nullptr;
    if (pages) {
        read_pages(in, *pages, out);
        for (const auto* key :
             {"status",
              "exit_code",
              "rpc_error",
              "is_error",
              "result_type",
              "rows",
              "affected",
              "sqlstate",
              "headers",
              "body",
              "text",
              "stderr",
              "fails"}) {
            const auto* beside = in.value(key);
            if (beside) in.error(*beside, key, "belongs into pages", "each page is an answer");
        }
    } else {
        out.pages.push_back(read_canned(in));
    }
    if (in.require("then", "what is to become of the answer, for example then: succeeded") &&
        in.text("then", out.then)) {
        check_then(out.then, in.path() + ".then", phase, diagnostics);
    }
    in.free("result", out.result);
    in.text("code", out.code);
    in.text("message", out.message);
    if (Duration after{};
        phase == Phase::execute && in.duration("retry_after", after, {0ms, kHorizons.max})) {
        out.retry_after = after;
        out.retry_after_mark = in.value("retry_after")->mark;
    }
    in.finish();
    return out;
}

void read_answers(MapReader& in, Phase phase, std::vector<TestAnswer>& out) {
    const auto* list = in.value("answers");
    if (!list || list->unresolved) return;
    if (!list->is(Kind::sequence)) {
        in.error(
            *list,
            "answers",
            fmt::format("must be a list, not {}", shown(*list)),
            phase == Phase::execute ? "- { status: 201, then: succeeded }"
                                    : "- { status: 404, then: absent }"
        );
        return;
    }
    for (std::size_t i = 0; i < list->items.size(); ++i) {
        out.push_back(read_answer(
            list->items[i], fmt::format("{}.answers[{}]", in.path(), i), phase, in.diagnostics()
        ));
    }
}

void read_phase(MapReader& in, Phase phase, TestPhase& out) {
    if (in.has("request")) {
        auto request = in.section("request");
        out.request = read_request(request);
    }
    read_answers(in, phase, out.answers);
}

void read_operation(MapReader& test, TestCase& out) {
    auto in = test.section("operation");
    in.string("id", out.operation_id);
    in.string("key", out.key);
    in.string("run_id", out.run_id);
    in.string("traceparent", out.traceparent);
    in.integer("attempt", out.attempt, {1, 1'000'000});
    in.text("created_at", out.created_at);
    in.text("first_sent_at", out.first_sent_at);
    in.finish();
}

// Of a compensation: the operation that it undoes.
void read_original(MapReader& test, TestCase& out) {
    auto in = test.section("original");
    in.string("id", out.original_id);
    in.free_mapping("arguments", out.original_arguments);
    in.free("result", out.original_result);
    in.finish();
}

void check_tool(MapReader& in, const TestCase& test, const Config& config) {
    std::vector<std::string> known;
    for (const auto& tool : config.tools) known.push_back(tool.name);
    if (std::find(known.begin(), known.end(), test.tool.value) != known.end()) return;
    const auto* at = in.value("tool");
    if (!at) return;
    in.error(
        *at,
        "tool",
        fmt::format("there is no tool {}", shown(*at)),
        nearest_hint(test.tool.value, known)
    );
}

TestCase read_test(const Value::Member& member, const Config& config, Diagnostics& diagnostics) {
    MapReader in(&member.value, member.key_mark, fmt::format("tests.{}", member.key), diagnostics);
    TestCase out;
    out.mark = member.key_mark;
    out.name = member.key;
    if (in.require("tool", "the tool under test: tool: create_ticket") &&
        in.text("tool", out.tool)) {
        check_tool(in, out, config);
    }
    in.free_mapping("arguments", out.arguments);
    read_operation(in, out);
    read_original(in, out);
    read_phase(in, Phase::execute, out.execute);
    auto reconcile = in.section("reconcile");
    read_phase(reconcile, Phase::reconcile, out.reconcile);
    reconcile.finish();
    in.finish();
    const bool tests = in.has("request") || in.has("answers") || in.has("reconcile");
    if (in.is_mapping() && !tests) {
        diagnostics.error(
            out.mark,
            fmt::format("{} expects nothing", in.path()),
            "request: what is sent; answers: what becomes of an answer; reconcile: the same of the "
            "look-up"
        );
    }
    return out;
}

}  // namespace

void read_tests(MapReader& root, Config& out) {
    const auto* section = root.member("tests");
    if (!section) return;
    out.tests = section->value;
    const MapReader all(&section->value, section->key_mark, "tests", root.diagnostics());
    for (const auto& member : section->value.members) {
        if (member.key.empty()) {
            root.diagnostics().error(
                member.key_mark, "a test needs a name", "say in words what it shows"
            );
            continue;
        }
        out.test_cases.push_back(read_test(member, out, root.diagnostics()));
    }
}

}  // namespace config
