#include "tools/command_tool.hpp"

#include <cerrno>
#include <cstring>

#include "outbox/utf8.hpp"

namespace tools {
namespace {

using outbox::Cause;
using outbox::Error;
using outbox::Json;
using How = ProcessEnd::How;

// Without a result: of its own, what the command printed is the result.
config::Value whole_output() {
    config::Value value;
    value.kind = config::Value::Kind::string;
    return value;
}

Wording wording_of(const config::Value& result, CompileContext& context) {
    Wording wording;
    wording.result = Extraction::compile(result, context.diagnostics);
    return wording;
}

// Standard output as a body: JSON, or {"text": …} when it is none, because the exit code decides
// and not how the command words its success.
Answer to_answer(ProcessEnd end, bool stdout_text) {
    Answer answer;
    answer.exit_code = end.code;
    answer.truncated = end.truncated;
    answer.text = std::move(end.output);
    answer.diagnosis = std::move(end.errors);
    if (!stdout_text) parse_body(answer);
    if (answer.body) return answer;
    if (answer.text.empty()) {
        answer.body = Json{};
        return answer;
    }
    Json body;
    body.set("text", Json(outbox::repair_utf8(answer.text)));
    if (answer.truncated) body.set("truncated", Json(true));
    answer.body = std::move(body);
    return answer;
}

Error not_started(const std::string& program, int error) {
    if (error == ETIME) {
        return {
            .code = "not_sent_deadline", .message = "the deadline passed before the command started"
        };
    }
    return {
        .code = "not_sent_start",
        .message = program + " could not be started: " + std::strerror(error)
    };
}

// An end without an exit code.
Error no_exit_code(const ProcessEnd& end) {
    switch (end.how) {
        case How::signalled:
            return {
                .code = "killed",
                .message = "the command was ended by signal " + std::to_string(end.code)
            };
        case How::timed_out:
            return {.code = "timeout", .message = "the command did not end in time and was killed"};
        case How::cut:
            return {.code = "cut", .message = "the command was killed because outboxd stops"};
        case How::not_started:
        case How::exited:
            break;
    }
    return {.code = "command", .message = "the command did not end as expected"};
}

Cause cause_of(How how) {
    switch (how) {
        case How::signalled:
            return Cause::killed;
        case How::timed_out:
            return Cause::timeout;
        case How::cut:
        case How::not_started:
        case How::exited:
            break;
    }
    return Cause::other;
}

}  // namespace

CommandExecute CommandExecute::compile(const config::Command& command, CompileContext& context) {
    const auto result = command.result.value_or(whole_output());
    CommandExecute execute;
    execute.command = CommandTemplate::compile(command, context);
    execute.outcomes = OutcomeRules::compile(command.rules, AnswerKind::command, result, context);
    execute.exit_codes = ExitCodes<AttemptEnd>::compile(
        command.exit_codes, compile_attempt_end, context.diagnostics
    );
    if (command.exit_codes.empty() && !command.has_rules) {
        execute.exit_codes.set(0, AttemptEnd::succeeded);
    }
    execute.wording = wording_of(result, context);
    execute.stdout_text = command.stdout_text;
    return execute;
}

CommandLookup CommandLookup::compile(const config::Command& command, CompileContext& context) {
    const auto result = command.result.value_or(whole_output());
    CommandLookup lookup;
    lookup.command = CommandTemplate::compile(command, context);
    lookup.verdicts = VerdictRules::compile(command.rules, AnswerKind::command, result, context);
    lookup.exit_codes =
        ExitCodes<ProbeEnd>::compile(command.exit_codes, compile_probe_end, context.diagnostics);
    lookup.wording = wording_of(result, context);
    lookup.stdout_text = command.stdout_text;
    if (command.exit_codes.empty() && lookup.verdicts.empty()) {
        context.diagnostics.error(
            command.mark,
            "reconcile says neither exit_codes nor verdicts: nothing would ever be found",
            "for instance exit_codes: { 0: found, 1: absent, default: inconclusive }"
        );
    }
    return lookup;
}

outbox::Outcome judge(const CommandExecute& execute, ProcessEnd end, const Scope& scope) {
    if (end.how == How::not_started) {
        auto error = not_started(execute.command.program(), end.code);
        // No later attempt will have shorter arguments.
        if (end.code == E2BIG) return outbox::refused(std::move(error));
        return outbox::RetryLater{
            .error = std::move(error), .after = std::nullopt, .counts = false
        };
    }
    if (end.how != How::exited) return outbox::Unknown{cause_of(end.how), no_exit_code(end)};
    const auto answer = to_answer(std::move(end), execute.stdout_text);
    if (auto outcome = execute.outcomes.match(answer, scope)) return std::move(*outcome);
    const auto decided = execute.exit_codes.of(*answer.exit_code).value_or(AttemptEnd::unknown);
    return make_outcome(decided, execute.wording, answer);
}

outbox::Verdict judge(const CommandLookup& lookup, ProcessEnd end, const Scope& scope) {
    if (end.how == How::not_started) {
        return outbox::Inconclusive{not_started(lookup.command.program(), end.code)};
    }
    if (end.how != How::exited) return outbox::Inconclusive{no_exit_code(end)};
    const auto answer = to_answer(std::move(end), lookup.stdout_text);
    if (auto verdict = lookup.verdicts.match(answer, scope)) return std::move(*verdict);
    const auto decided = lookup.exit_codes.of(*answer.exit_code).value_or(ProbeEnd::inconclusive);
    return make_verdict(decided, lookup.wording, answer);
}

asio::awaitable<outbox::Outcome> CommandAction::perform(
    outbox::ToolCall call, outbox::Deadline deadline
) {
    const Scope scope{call};
    if (auto error = execute_.outcomes.check(scope)) co_return outbox::refused(std::move(*error));
    auto spec = execute_.command.render(scope);
    if (!spec.ok()) co_return outbox::refused(spec.error());
    spec.value().output_limit = output_limit_;
    if (failpoints_.armed()) {
        auto hit = failpoints_.hit(outbox::FailpointId::before_first_byte);
        co_await std::move(hit);
    }
    auto running = run_process(std::move(spec.value()), deadline);
    auto end = co_await std::move(running);
    co_return judge(execute_, std::move(end), scope);
}

asio::awaitable<outbox::Verdict> CommandProbe::ask(
    outbox::ToolCall call, outbox::Deadline deadline
) {
    const Scope scope{call};
    if (auto error = lookup_.verdicts.check(scope))
        co_return outbox::Inconclusive{std::move(*error)};
    auto spec = lookup_.command.render(scope);
    if (!spec.ok()) co_return outbox::Inconclusive{spec.error()};
    spec.value().output_limit = output_limit_;
    auto running = run_process(std::move(spec.value()), deadline);
    auto end = co_await std::move(running);
    co_return judge(lookup_, std::move(end), scope);
}

}  // namespace tools
