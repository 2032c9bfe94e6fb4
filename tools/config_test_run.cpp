#include "tools/config_test_run.hpp"

#include <fmt/format.h>

#include <boost/algorithm/string/replace.hpp>

#include "config/units.hpp"
#include "config/without_secrets.hpp"
#include "tools/answer.hpp"
#include "tools/config_test_answer.hpp"
#include "tools/form.hpp"
#include "tools/rehearsal.hpp"
#include "tools/scope.hpp"
#include "tools/value_template.hpp"

namespace tools {
namespace {

using outbox::Json;
using Kind = Rehearsal::Kind;

// 2026-01-02T03:04:05Z: what templates of a time render is the same on every day.
constexpr outbox::DbTime kThen{std::chrono::seconds{1'767'323'045}};

Json json_of(const config::Value& value) {
    auto parsed = outbox::parse_json(plain_json_text(value));
    return parsed.value ? std::move(*parsed.value) : Json{};
}

// A multi-line text in YAML ends its lines with LF, also where `newline: crlf` sends CR LF.
std::string with_lf(const std::string& text) {
    return boost::algorithm::replace_all_copy(text, "\r\n", "\n");
}

// One test, running.
class Run {
 public:
    Run(const config::Config& config, const config::TestCase& test) : config_(config), test_(test) {
        result_.name = test.name;
        result_.tool = test.tool.value;
        result_.mark = test.mark;
    }

    TestResult all() {
        std::string why;
        auto stage = Rehearsal::of(config_, test_.tool.value, why);
        if (!stage) {
            check(false, test_.tool.mark, "tool", "a tool that can be tried", why);
            return std::move(result_);
        }
        const auto call = make_call(*stage);
        if (test_.execute.request) {
            check_request(*test_.execute.request, stage->request(call), "request");
        }
        for (std::size_t i = 0; i < test_.execute.answers.size(); ++i) {
            check_outcome(*stage, call, test_.execute.answers[i], fmt::format("answers[{}]", i));
        }
        if (test_.reconcile.request) {
            check_request(*test_.reconcile.request, stage->lookup(call), "reconcile.request");
        }
        for (std::size_t i = 0; i < test_.reconcile.answers.size(); ++i) {
            check_verdict(
                *stage, call, test_.reconcile.answers[i], fmt::format("reconcile.answers[{}]", i)
            );
        }
        return std::move(result_);
    }

 private:
    bool check(
        bool holds,
        const config::Mark& mark,
        std::string what,
        std::string expected,
        std::string got
    ) {
        ++result_.checks;
        if (holds) return true;
        result_.failures.push_back(
            {mark, std::move(what), shortened(std::move(expected)), shortened(std::move(got))}
        );
        return false;
    }

    outbox::DbTime time(const std::optional<config::Text>& text, std::string_view name) {
        if (!text) return kThen;
        const auto parsed = parse_iso8601(text->value);
        if (parsed) return *parsed;
        check(
            false,
            text->mark,
            fmt::format("operation.{}", name),
            "a time such as 2026-01-02T03:04:05Z",
            text->value
        );
        return kThen;
    }

    outbox::ToolCall make_call(const Rehearsal& stage) {
        outbox::ToolCall call;
        auto& intent = call.intent;
        intent.id = outbox::OperationId(test_.operation_id);
        intent.tool = test_.tool.value;
        intent.arguments = test_.arguments ? json_of(*test_.arguments) : Json{Json::Object{}};
        intent.run_id = test_.run_id;
        intent.traceparent = test_.traceparent;
        intent.created_at = time(test_.created_at, "created_at");
        call.first_sent_at = time(test_.first_sent_at, "first_sent_at");
        call.attempt = test_.attempt;
        call.provider_key = test_.key ? *test_.key : stage.key_of(test_.operation_id);
        if (test_.tool.value.find(':') != std::string::npos) {
            intent.compensates = outbox::OperationId(test_.original_id);
        }
        if (test_.original_arguments)
            intent.original_arguments = json_of(*test_.original_arguments);
        if (test_.original_result) intent.original_result = json_of(*test_.original_result);
        return call;
    }

    void check_request(
        const config::ExpectedRequest& expected,
        const Rendered<SentRequest>& sent,
        const std::string& what
    ) {
        if (!sent.ok()) {
            const auto& refusal = sent.error();
            const auto got = fmt::format("refused, {}: {}", refusal.code, refusal.message);
            if (expected.refused) {
                check(
                    refusal.code == expected.refused->value,
                    expected.refused->mark,
                    what + ".refused",
                    expected.refused->value,
                    got
                );
            } else {
                check(false, expected.mark, what, "a request", got);
            }
            return;
        }
        if (expected.refused) {
            check(
                false,
                expected.refused->mark,
                what + ".refused",
                expected.refused->value,
                to_text(sent.value())
            );
        } else if (const auto* http = std::get_if<HttpRequest>(&sent.value())) {
            check_mcp(expected, http->body, what);
            check_http(expected, *http, what);
        } else {
            const auto& command = std::get<ProcessSpec>(sent.value());
            check_mcp(expected, command.input, what);
            check_command(expected, command, what);
        }
    }

    // What the message of a tools/call names, whichever way it goes.
    void check_mcp(
        const config::ExpectedRequest& expected, const std::string& message, const std::string& what
    ) {
        if (!expected.tool && !expected.arguments) return;
        const auto parsed = outbox::parse_json(message);
        const Json nothing;
        const auto& sent = parsed.value ? *parsed.value : nothing;
        const auto* tool = sent.at_pointer("/params/name");
        const auto* arguments = sent.at_pointer("/params/arguments");
        const auto* name = tool == nullptr ? nullptr : tool->as_string();
        equal(expected.tool, name == nullptr ? "no call of a tool" : *name, what + ".tool");
        if (!expected.arguments) return;
        const auto wanted = json_of(*expected.arguments);
        check(
            arguments != nullptr && arguments->equals(wanted),
            expected.arguments->mark,
            what + ".arguments",
            outbox::to_text(wanted),
            arguments == nullptr ? "no call of a tool" : outbox::to_text(*arguments)
        );
    }

    void equal(
        const std::optional<config::Text>& expected, const std::string& got, std::string what
    ) {
        if (!expected) return;
        check(expected->value == got, expected->mark, std::move(what), expected->value, got);
    }

    // null expects that nothing of the name is there.
    void named(
        const std::pair<config::Text, std::optional<config::Text>>& expected,
        const std::string* got,
        std::string what
    ) {
        const auto& [name, value] = expected;
        const bool holds = value ? got != nullptr && *got == value->value : got == nullptr;
        check(
            holds,
            value ? value->mark : name.mark,
            std::move(what),
            value ? value->value : "nothing of this name",
            got != nullptr ? *got : "nothing of this name"
        );
    }

    void foreign(const config::ExpectedRequest& expected, const std::string& what, bool command) {
        const bool of_command = expected.argv || expected.stdin_text || !expected.env.empty();
        const bool of_http = expected.method || expected.url || !expected.headers.empty() ||
                             expected.json || expected.form || expected.text;
        if (command ? !of_http : !of_command) return;
        check(
            false,
            expected.mark,
            what,
            command ? "a command: argv, stdin, env"
                    : "an HTTP request: method, url, headers, json, form, text",
            "members of the other kind"
        );
    }

    void check_http(
        const config::ExpectedRequest& expected, const HttpRequest& sent, const std::string& what
    ) {
        foreign(expected, what, false);
        equal(expected.method, sent.method, what + ".method");
        equal(expected.url, url_of(sent), what + ".url");
        for (const auto& header : expected.headers) {
            const std::string* got = nullptr;
            for (const auto& [name, value] : sent.headers) {
                if (same_header_name(name, header.first.value)) got = &value;
            }
            named(header, got, what + ".headers." + header.first.value);
        }
        if (expected.json) {
            const auto wanted = json_of(*expected.json);
            const auto got = outbox::parse_json(sent.body);
            check(
                got.value && got.value->equals(wanted),
                expected.json->mark,
                what + ".json",
                outbox::to_text(wanted),
                sent.body
            );
        }
        if (expected.form) {
            const auto wanted = form_encode(json_of(*expected.form));
            check(
                wanted.ok() && wanted.value() == sent.body,
                expected.form->mark,
                what + ".form",
                wanted.ok() ? wanted.value() : wanted.error().message,
                sent.body
            );
        }
        if (expected.text) {
            const auto got = with_lf(sent.body);
            check(
                with_lf(expected.text->value) == got,
                expected.text->mark,
                what + ".text",
                expected.text->value,
                got
            );
        }
    }

    void check_command(
        const config::ExpectedRequest& expected, const ProcessSpec& sent, const std::string& what
    ) {
        foreign(expected, what, true);
        if (expected.argv) {
            const auto list = [](const auto& items, auto text_of) {
                Json::Array out;
                for (const auto& item : items) out.emplace_back(text_of(item));
                return outbox::to_text(Json(std::move(out)));
            };
            const auto wanted = list(*expected.argv, [](const auto& text) { return text.value; });
            const auto got = list(sent.argv, [](const auto& text) { return text; });
            check(wanted == got, expected.mark, what + ".argv", wanted, got);
        }
        equal(expected.stdin_text, sent.input, what + ".stdin");
        for (const auto& variable : expected.env) {
            const auto head = variable.first.value + "=";
            const std::string* got = nullptr;
            std::string value;
            for (const auto& item : sent.environment) {
                if (item.rfind(head, 0) != 0) continue;
                value = item.substr(head.size());
                got = &value;
            }
            named(variable, got, what + ".env." + variable.first.value);
        }
    }

    // The answers in the form the tool gets them, or a failure: a command has no status.
    std::optional<std::vector<Rehearsal::Canned>> canned(
        const config::TestAnswer& answer, Kind kind, const std::string& what
    ) {
        std::vector<Rehearsal::Canned> out;
        for (const auto& page : answer.pages) {
            auto answer_of_kind = canned_answer(page, kind);
            if (!answer_of_kind) {
                check(false, page.mark, what, answers_of(kind), "an answer of another kind");
                return std::nullopt;
            }
            out.push_back(std::move(*answer_of_kind));
        }
        return out;
    }

    void check_end(
        const config::TestAnswer& expected, const Carried& got, const std::string& what
    ) {
        const auto text = got.text();
        if (!check(
                expected.then.value == got.end,
                expected.then.mark,
                what + ".then",
                expected.then.value,
                text
            )) {
            return;  // the rest would only say it again
        }
        if (expected.result) {
            const auto wanted = json_of(*expected.result);
            check(
                got.result != nullptr && got.result->equals(wanted),
                expected.result->mark,
                what + ".result",
                outbox::to_text(wanted),
                text
            );
        }
        const std::string none;
        const auto* error = got.error;
        equal(expected.code, error != nullptr ? error->code : none, what + ".code");
        equal(expected.message, error != nullptr ? error->message : none, what + ".message");
        if (expected.retry_after) {
            check(
                got.after == expected.retry_after,
                expected.retry_after_mark,
                what + ".retry_after",
                config::duration_text(*expected.retry_after),
                text
            );
        }
    }

    void check_outcome(
        Rehearsal& stage,
        const outbox::ToolCall& call,
        const config::TestAnswer& answer,
        const std::string& what
    ) {
        auto given = canned(answer, stage.execute_kind(), what);
        if (!given) return;
        const auto outcome = stage.outcome(call, std::move(given->front()));
        check_end(answer, carried(outcome, stage.write()), what);
    }

    void check_verdict(
        Rehearsal& stage,
        const outbox::ToolCall& call,
        const config::TestAnswer& answer,
        const std::string& what
    ) {
        auto given = canned(answer, stage.lookup_kind(), what);
        if (!given) return;
        const auto pages = given->size();
        const auto verdict = stage.verdict(call, std::move(*given));
        check_end(answer, carried(verdict), what);
        if (stage.unread() == 0) return;
        check(
            false,
            answer.mark,
            what + ".pages",
            fmt::format("{} pages are read", pages),
            fmt::format(
                "{} of them, then the look-up ends: {}",
                pages - stage.unread(),
                carried(verdict).text()
            )
        );
    }

    const config::Config& config_;
    const config::TestCase& test_;
    TestResult result_;
};

}  // namespace

std::vector<TestResult> run_config_tests(const config::Config& config) {
    const auto shown = config::without_secrets(config);
    std::vector<TestResult> out;
    for (const auto& test : shown.test_cases) out.push_back(Run(shown, test).all());
    return out;
}

}  // namespace tools
