#include "tools/rules.hpp"

#include <array>

#include "config/nearest.hpp"

namespace tools {
namespace {

using outbox::Error;
using outbox::Json;

constexpr std::size_t kCodeBytes = 100;
constexpr std::size_t kMessageBytes = 1000;

// In the order of the enums.
const std::vector<std::string> kAttemptEnds = {
    "succeeded", "accepted", "rejected", "retry", "unknown", "attention"
};
const std::vector<std::string> kProbeEnds = {
    "found", "absent", "pending", "conflict", "inconclusive"
};

template <class End>
std::optional<End> compile_end(
    const config::Text& then,
    const std::vector<std::string>& names,
    config::Diagnostics& diagnostics
) {
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (names[i] == then.value) return static_cast<End>(i);
    }
    diagnostics.error(
        then.mark, "unknown end \"" + then.value + "\"", config::nearest_hint(then.value, names)
    );
    return std::nullopt;
}

Wording compile_wording(
    const config::Rule& rule,
    const std::optional<config::Value>& default_result,
    CompileContext& context
) {
    Wording wording;
    auto& diagnostics = context.diagnostics;
    const auto& result = rule.result ? rule.result : default_result;
    if (result) wording.result = Extraction::compile(*result, diagnostics);
    if (rule.code) wording.code = TextSource::compile(*rule.code, diagnostics);
    if (rule.message) wording.message = TextSource::compile(*rule.message, diagnostics);
    if (rule.retry_after) wording.retry_after = RetryAfter::compile(*rule.retry_after, diagnostics);
    wording.proves_absence = rule.proves_absence;
    return wording;
}

// What has no meaning with this end is a mistake: it was meant to do something.
void check_wording(const config::Rule& rule, AttemptEnd end, config::Diagnostics& diagnostics) {
    const bool effect = end == AttemptEnd::succeeded || end == AttemptEnd::accepted;
    if (rule.result && !effect) {
        diagnostics.error(
            rule.mark, "result belongs to succeeded or accepted", "use code: and message:"
        );
    }
    if (rule.retry_after && end != AttemptEnd::retry) {
        diagnostics.error(rule.mark, "retry_after belongs to then: retry");
    }
    if (rule.proves_absence && end != AttemptEnd::rejected) {
        diagnostics.error(rule.mark, "proves_absence belongs to then: rejected");
    }
}

Error worded(const Wording& wording, const Answer& answer) {
    auto error = describe(answer);
    if (wording.code) {
        if (auto code = wording.code->read(answer, kCodeBytes)) error.code = std::move(*code);
    }
    if (wording.message) {
        if (auto message = wording.message->read(answer, kMessageBytes)) {
            error.message = std::move(*message);
        }
    }
    return error;
}

Extraction::Extracted extracted(const Wording& wording, const Answer& answer) {
    if (!wording.result) return {};
    return wording.result->extract(answer, answer.body ? &*answer.body : nullptr);
}

Error unreadable(const Answer& answer) {
    auto error = describe(answer);
    error.code = "unreadable";
    error.message = answer.truncated ? "the answer is too long to be understood"
                                     : "a rule needs the answer's body, which is no JSON";
    return error;
}

std::string default_message(const Answer& answer) {
    if (answer.status)
        return "the other side answered with status " + std::to_string(*answer.status);
    if (answer.exit_code)
        return "the command ended with exit code " + std::to_string(*answer.exit_code);
    if (answer.rpc_error)
        return "the server answered with error " + std::to_string(*answer.rpc_error);
    if (answer.result_type)
        return "the server answered with a result of type " + *answer.result_type;
    if (answer.rows) return "the statement gave " + std::to_string(*answer.rows) + " rows";
    return "the answer says nothing";
}

outbox::Cause cause_of(const Answer& answer) {
    if (answer.exit_code) return outbox::Cause::exit_code;
    if (answer.rpc_error || answer.result_type) return outbox::Cause::mcp;
    return outbox::Cause::status;
}

// An error of the look-up's server as a whole says nothing about what was looked for.
bool failed_look_up(const Answer& answer) {
    constexpr int kInternalError = -32603;
    if (answer.rpc_error == kInternalError) return true;
    // What the TypeScript SDK makes of them: also of a tool that it does not have.
    if (answer.is_error == true && answer.text.starts_with("MCP error -326")) return true;
    return answer.status && (*answer.status >= 500 || *answer.status == 401);
}

}  // namespace

std::optional<AttemptEnd> compile_attempt_end(
    const config::Text& then, config::Diagnostics& diagnostics
) {
    return compile_end<AttemptEnd>(then, kAttemptEnds, diagnostics);
}

std::optional<ProbeEnd> compile_probe_end(
    const config::Text& then, config::Diagnostics& diagnostics
) {
    return compile_end<ProbeEnd>(then, kProbeEnds, diagnostics);
}

Error describe(const Answer& answer) {
    constexpr std::array kMessages = {
        "/detail", "/title", "/error/message", "/message", "/errors/0/message"
    };
    Error error;
    if (answer.status) error.code = "status_" + std::to_string(*answer.status);
    if (answer.exit_code) error.code = "exit_" + std::to_string(*answer.exit_code);
    if (answer.rows) error.code = "rows_" + std::to_string(*answer.rows);
    if (answer.result_type) error.code = "result_" + *answer.result_type;
    if (answer.is_error == true) error.code = "tool_error";
    if (answer.rpc_error) error.code = "rpc_" + std::to_string(*answer.rpc_error);
    for (const auto* pointer : kMessages) {
        if (!answer.body) break;
        if (auto text = presentable(answer.body->at_pointer(pointer), kMessageBytes)) {
            error.message = std::move(*text);
            return error;
        }
    }
    const Json diagnosis(answer.diagnosis);
    error.message = presentable(&diagnosis, kMessageBytes).value_or(default_message(answer));
    return error;
}

outbox::Outcome make_outcome(AttemptEnd end, const Wording& wording, const Answer& answer) {
    switch (end) {
        case AttemptEnd::succeeded: {
            auto result = extracted(wording, answer);
            return outbox::Succeeded{std::move(result.value), std::move(result.note)};
        }
        case AttemptEnd::accepted:
            return outbox::Accepted{extracted(wording, answer).value};
        case AttemptEnd::rejected:
            return outbox::Rejected{worded(wording, answer), wording.proves_absence};
        case AttemptEnd::retry: {
            // 429 and 401 give the attempt back: nothing was tried.
            const bool given_back = answer.status == 429 || answer.status == 401;
            auto after = wording.retry_after;
            if (!after && answer.status == 429) after = RetryAfter::header("Retry-After");
            const auto now = std::chrono::system_clock::now();
            return outbox::RetryLater{
                .error = worded(wording, answer),
                .after = after ? after->read(answer, now) : std::nullopt,
                .counts = !given_back,
                .asked = after && after->from_answer()
            };
        }
        case AttemptEnd::unknown: {
            return outbox::Unknown{cause_of(answer), worded(wording, answer)};
        }
        case AttemptEnd::attention:
            return outbox::Attention{worded(wording, answer)};
    }
    return outbox::Unknown{};
}

outbox::Verdict make_verdict(ProbeEnd end, const Wording& wording, const Answer& answer) {
    switch (end) {
        case ProbeEnd::found: {
            auto result = extracted(wording, answer);
            return outbox::Found{std::move(result.value), std::move(result.note)};
        }
        case ProbeEnd::absent:
            // Also where a rule names no status: a failed look-up proves nothing.
            if (failed_look_up(answer)) {
                return outbox::Inconclusive{worded(wording, answer)};
            }
            return outbox::Absent{};
        case ProbeEnd::pending:
            return outbox::Pending{worded(wording, answer).message};
        case ProbeEnd::conflict:
            return outbox::Conflict{worded(wording, answer)};
        case ProbeEnd::inconclusive:
            return outbox::Inconclusive{worded(wording, answer)};
    }
    return outbox::Inconclusive{};
}

OutcomeRules OutcomeRules::compile(
    const std::vector<config::Rule>& rules,
    AnswerKind kind,
    const std::optional<config::Value>& default_result,
    CompileContext& context
) {
    OutcomeRules result;
    for (const auto& rule : rules) {
        Rule compiled;
        compiled.when = Condition::compile(rule.when, kind, context);
        compiled.wording = compile_wording(rule, default_result, context);
        const auto end = compile_attempt_end(rule.then, context.diagnostics);
        if (end) {
            compiled.end = *end;
            check_wording(rule, *end, context.diagnostics);
        }
        const bool no_effect = end == AttemptEnd::rejected || end == AttemptEnd::retry;
        const bool has_status = kind == AnswerKind::http || kind == AnswerKind::mcp;
        if (has_status && no_effect && compiled.when.names_status(500, 599)) {
            context.diagnostics.warning(
                rule.mark,
                "a 5xx answer is mapped to " + rule.then.value + ", which means: no effect",
                "a server that fails may have acted before; use then: unknown"
            );
        }
        result.rules_.push_back(std::move(compiled));
    }
    return result;
}

std::optional<outbox::Outcome> OutcomeRules::match(const Answer& answer, const Scope& scope) const {
    for (const auto& rule : rules_) {
        switch (rule.when.holds(answer, scope)) {
            case Holds::no:
                break;
            case Holds::yes:
                return make_outcome(rule.end, rule.wording, answer);
            case Holds::undecidable:
                return outbox::Unknown{outbox::Cause::unreadable, unreadable(answer)};
        }
    }
    return std::nullopt;
}

std::optional<Error> OutcomeRules::check(const Scope& scope) const {
    for (const auto& rule : rules_) {
        if (auto error = rule.when.check(scope)) return error;
    }
    return std::nullopt;
}

VerdictRules VerdictRules::compile(
    const std::vector<config::Rule>& rules,
    AnswerKind kind,
    const std::optional<config::Value>& default_result,
    CompileContext& context
) {
    VerdictRules result;
    for (const auto& rule : rules) {
        Rule compiled;
        compiled.when = Condition::compile(rule.when, kind, context);
        compiled.wording = compile_wording(rule, default_result, context);
        const auto end = compile_probe_end(rule.then, context.diagnostics);
        if (end) compiled.end = *end;
        if (rule.retry_after || rule.proves_absence) {
            context.diagnostics.error(
                rule.mark, "retry_after and proves_absence belong to outcomes, not to verdicts"
            );
        }
        const bool failed =
            compiled.when.names_status(500, 599) || compiled.when.names_status(401, 401);
        if (end == ProbeEnd::absent && failed) {
            context.diagnostics.error(
                rule.mark,
                "a look-up that failed (401, 5xx) cannot mean absent",
                "leave these statuses out: they are inconclusive by themselves"
            );
        }
        if (end == ProbeEnd::absent && compiled.when.names_rpc_error(-32603, -32600)) {
            context.diagnostics.error(
                rule.mark,
                "an error of the protocol (-32603 to -32600) cannot mean absent",
                "a mistyped tool or a server that fails gives the same; these are inconclusive by "
                "themselves"
            );
        } else if (end == ProbeEnd::absent && compiled.when.takes_any_error()) {
            context.diagnostics.warning(
                rule.mark,
                "any error of the look-up counts as absent",
                "say which one: { is_error: true, text: { matches: \"no such issue\" } }"
            );
        }
        result.rules_.push_back(std::move(compiled));
    }
    return result;
}

std::optional<outbox::Verdict> VerdictRules::match(const Answer& answer, const Scope& scope) const {
    for (const auto& rule : rules_) {
        switch (rule.when.holds(answer, scope)) {
            case Holds::no:
                break;
            case Holds::yes:
                return make_verdict(rule.end, rule.wording, answer);
            case Holds::undecidable:
                return outbox::Inconclusive{unreadable(answer)};
        }
    }
    return std::nullopt;
}

std::optional<Error> VerdictRules::check(const Scope& scope) const {
    for (const auto& rule : rules_) {
        if (auto error = rule.when.check(scope)) return error;
    }
    return std::nullopt;
}

}  // namespace tools
