#include "tools/http_tool.hpp"

#include "outbox/traceparent.hpp"
#include "tools/http_client_request.hpp"

namespace tools {
namespace {

using outbox::Cause;
using outbox::Json;
using outbox::Outcome;

// What a planner gets from a tool without outcomes: what the answer says.
Json whole_body(const Answer& answer) {
    if (answer.body) return *answer.body;
    if (answer.text.empty() || answer.truncated) return {};
    Json result;
    result.set("text", Json(answer.text));
    return result;
}

Outcome by_default(const Answer& answer, bool has_outcomes) {
    const int status = answer.status.value_or(0);
    if (status >= 200 && status < 300) {
        if (!has_outcomes) {
            return outbox::Succeeded{
                whole_body(answer), answer.truncated ? "the answer was too long to be kept" : ""
            };
        }
        auto error = describe(answer);
        error.message = "an answer that no outcome describes: " + error.message;
        return outbox::Unknown{Cause::status, std::move(error)};
    }
    return outcome_by_status(answer);
}

Outcome of_failure(HttpFailure failure) {
    if (failure.sent) return outbox::Unknown{failure.cause, std::move(failure.error)};
    return outbox::RetryLater{
        .error = std::move(failure.error), .after = std::nullopt, .counts = false
    };
}

}  // namespace

Outcome outcome_by_status(const Answer& answer) {
    const int status = answer.status.value_or(0);
    if (status == 401 || status == 429) return make_outcome(AttemptEnd::retry, {}, answer);
    if (status == 408 || status == 409 || status == 425) {
        return make_outcome(AttemptEnd::unknown, {}, answer);
    }
    if (status >= 300 && status < 500) return make_outcome(AttemptEnd::rejected, {}, answer);
    return make_outcome(AttemptEnd::unknown, {}, answer);
}

std::optional<HttpExecute> HttpExecute::compile(
    const config::HttpRequest& request, const Credentials& credentials, CompileContext& context
) {
    auto compiled = RequestTemplate::compile(request, credentials, context);
    auto outcomes = OutcomeRules::compile(request.rules, AnswerKind::http, std::nullopt, context);
    if (!compiled) return std::nullopt;
    return HttpExecute{std::move(*compiled), std::move(outcomes), request.has_rules};
}

bool token_was_stale(const HttpResult& result) {
    const auto* response = std::get_if<HttpResponse>(&result);
    return response != nullptr && response->token_was_stale;
}

Answer to_answer(HttpResponse response) {
    Answer answer;
    answer.status = response.status;
    answer.headers = std::move(response.headers);
    answer.text = std::move(response.body);
    answer.truncated = response.truncated;
    parse_body(answer);
    return answer;
}

void hand_on_trace(HttpRequest& request, const outbox::ToolCall& call) {
    if (!call.intent.traceparent) return;
    for (const auto& [name, value] : request.headers) {
        if (same_name(name, "traceparent")) return;
    }
    request.headers.emplace_back(
        "traceparent", outbox::child_traceparent(*call.intent.traceparent)
    );
}

Outcome judge(const HttpExecute& execute, HttpResult result, const Scope& scope) {
    if (auto* failure = std::get_if<HttpFailure>(&result)) return of_failure(std::move(*failure));
    const auto answer = to_answer(std::move(std::get<HttpResponse>(result)));
    auto outcome = execute.outcomes.match(answer, scope);
    if (!outcome) outcome = by_default(answer, execute.has_outcomes);
    if (auto* unknown = std::get_if<outbox::Unknown>(&*outcome)) {
        unknown->in_progress = answer.status == 409 || answer.status == 425;
    }
    return std::move(*outcome);
}

asio::awaitable<Outcome> HttpAction::perform(outbox::ToolCall call, outbox::Deadline deadline) {
    const Scope scope{call};
    if (auto error = execute_.outcomes.check(scope)) co_return outbox::refused(std::move(*error));
    for (bool first = true;; first = false) {
        auto request = execute_.request.render(scope);
        if (!request.ok()) co_return outbox::refused(request.error());
        hand_on_trace(request.value(), call);
        auto sending = sender_->send(std::move(request.value()), deadline);
        auto result = co_await std::move(sending);
        const bool stale = token_was_stale(result);
        auto signal = lane_signal(result);
        auto outcome = judge(execute_, std::move(result), scope);
        const bool no_effect = std::holds_alternative<outbox::RetryLater>(outcome);
        if (first && stale && no_effect) continue;
        reporter_.tell(with_outcome(signal, outcome));
        co_return outcome;
    }
}

}  // namespace tools
