#include "tools/config_test_run.hpp"

#include <fmt/format.h>

#include <utility>

#include "config/units.hpp"
#include "config/without_secrets.hpp"
#include "tools/config_test_answer.hpp"
#include "tools/config_test_request.hpp"
#include "tools/rehearsal.hpp"
#include "tools/scope.hpp"

namespace tools {
namespace {

using outbox::Json;
using Kind = Rehearsal::Kind;

// 2026-01-02T03:04:05Z: what templates of a time render is the same on every day.
constexpr outbox::DbTime kThen{std::chrono::seconds{1'767'323'045}};

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
            checks_.check(false, test_.tool.mark, "tool", "a tool that can be tried", why);
            return std::move(result_);
        }
        const auto call = make_call(*stage);
        if (test_.execute.request) {
            check_request(checks_, *test_.execute.request, stage->request(call), "request");
        }
        for (std::size_t i = 0; i < test_.execute.answers.size(); ++i) {
            check_outcome(*stage, call, test_.execute.answers[i], fmt::format("answers[{}]", i));
        }
        if (test_.reconcile.request) {
            check_request(
                checks_, *test_.reconcile.request, stage->lookup(call), "reconcile.request"
            );
        }
        for (std::size_t i = 0; i < test_.reconcile.answers.size(); ++i) {
            check_verdict(
                *stage, call, test_.reconcile.answers[i], fmt::format("reconcile.answers[{}]", i)
            );
        }
        return std::move(result_);
    }

 private:
    outbox::DbTime time(const std::optional<config::Text>& text, std::string_view name) {
        if (!text) return kThen;
        const auto parsed = parse_iso8601(text->value);
        if (parsed) return *parsed;
        checks_.check(
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

    // The answers in the form the tool gets them, or a failure: a command has no status.
    std::optional<std::vector<Rehearsal::Canned>> canned(
        const config::TestAnswer& answer, Kind kind, const std::string& what
    ) {
        std::vector<Rehearsal::Canned> out;
        for (const auto& page : answer.pages) {
            auto answer_of_kind = canned_answer(page, kind);
            if (!answer_of_kind) {
                checks_.check(
                    false, page.mark, what, answers_of(kind), "an answer of another kind"
                );
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
        if (!checks_.check(
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
            checks_.check(
                got.result != nullptr && got.result->equals(wanted),
                expected.result->mark,
                what + ".result",
                outbox::to_text(wanted),
                text
            );
        }
        const std::string none;
        const auto* error = got.error;
        checks_.equal(expected.code, error != nullptr ? error->code : none, what + ".code");
        checks_.equal(
            expected.message, error != nullptr ? error->message : none, what + ".message"
        );
        if (expected.retry_after) {
            checks_.check(
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
        checks_.check(
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
    TestChecks checks_{result_};
};

}  // namespace

std::vector<TestResult> run_config_tests(const config::Config& config) {
    const auto shown = config::without_secrets(config);
    std::vector<TestResult> out;
    for (const auto& test : shown.test_cases) out.push_back(Run(shown, test).all());
    return out;
}

}  // namespace tools
