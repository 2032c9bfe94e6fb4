#pragma once

#include <memory>
#include <optional>

#include "tools/adapter.hpp"
#include "tools/http_sender.hpp"
#include "tools/lane_reporter.hpp"
#include "tools/request_template.hpp"
#include "tools/rules.hpp"

namespace tools {

// execute: { type: http }, compiled.
struct HttpExecute {
    RequestTemplate request;
    OutcomeRules outcomes;
    bool has_outcomes = false;  // the key was there, even when empty

    static std::optional<HttpExecute> compile(
        const config::HttpRequest& request, const Credentials& credentials, CompileContext& context
    );
};

// An HTTP response as conditions and extraction see it.
[[nodiscard]] Answer to_answer(HttpResponse response);

// The defaults of the contract for an answer that is no 2xx.
[[nodiscard]] outbox::Outcome outcome_by_status(const Answer& answer);

// The planner's trace goes on with the request, in a span of its own. A header that the
// configuration names stands.
void hand_on_trace(HttpRequest& request, const outbox::ToolCall& call);

// A 401 to a token that was kept from earlier.
[[nodiscard]] bool token_was_stale(const HttpResult& result);

// How an attempt ended: by the rules, then by the defaults of the contract.
[[nodiscard]] outbox::Outcome judge(
    const HttpExecute& execute, HttpResult result, const Scope& scope
);

// An effect over HTTP. Sends one request; what cannot be rendered is rejected before. Only when a
// 401 refused a token that had been kept for a while, and the outcome is "no effect, try later",
// the request goes out once more with a fresh token: authentication fails before execution.
class HttpAction final : public Action {
 public:
    HttpAction(HttpExecute execute, std::shared_ptr<HttpSender> sender, LaneReporter reporter = {})
        : execute_(std::move(execute)),
          sender_(std::move(sender)),
          reporter_(std::move(reporter)) {}

    asio::awaitable<outbox::Outcome> perform(outbox::ToolCall call, outbox::Deadline deadline)
        override;

 private:
    HttpExecute execute_;
    std::shared_ptr<HttpSender> sender_;
    LaneReporter reporter_;
};

}  // namespace tools
