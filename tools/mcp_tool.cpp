#include "tools/mcp_tool.hpp"

#include <array>
#include <utility>

#include "outbox/failpoint.hpp"
#include "tools/filter.hpp"
#include "tools/http_tool.hpp"

namespace tools {
namespace {

using outbox::Cause;
using outbox::Inconclusive;
using outbox::Json;
using outbox::Outcome;
using outbox::Verdict;

// What was kept from earlier is corrected once, and what comes to light with that once more.
constexpr int kRepeats = 2;

// Errors that by their meaning come before the tool. Not -32602 and -32600: servers use them for
// what they find wrong with the tool's own answer, which is after it (SDK 1.17 for TypeScript does
// so, and gateways pass on what their client says).
bool is_before_the_tool(int code) {
    constexpr std::array<int, 4> kBefore = {
        -32601,  // no such method
        -32020,  // the headers do not fit the message
        -32021,  // it would need something that we do not offer
        -32022,  // not this revision
    };
    for (const int before : kBefore) {
        if (code == before) return true;
    }
    return false;
}

Outcome unknown(outbox::Error error) {
    return outbox::Unknown{Cause::mcp, std::move(error)};
}

Outcome of_error(const Answer& answer) {
    constexpr int kNeedsPerson = -32042;  // 2025-11-25: somebody has to visit an address
    if (answer.rpc_error == kNeedsPerson) return outbox::Attention{describe(answer)};
    if (is_before_the_tool(*answer.rpc_error)) return outbox::Rejected{describe(answer)};
    // A status that refuses the message as a whole, whatever stands in it.
    const bool refused = answer.status && *answer.status >= 400 && *answer.status < 500;
    constexpr int kInternalError = -32603;
    if (refused && answer.rpc_error != kInternalError) return outcome_by_status(answer);
    return unknown(describe(answer));
}

// What a planner gets of a tool without outcomes.
Json whole_result(const Answer& answer) {
    const auto* structured = answer.body->find("structuredContent");
    if (structured != nullptr && !structured->is_null()) return *structured;
    Json result;
    result.set("text", Json(answer.text));
    return result;
}

Outcome by_default(const Answer& answer, bool of_task, bool has_outcomes) {
    // A task was at work when its error arose, whatever its code means before a call.
    if (answer.rpc_error) return of_task ? unknown(describe(answer)) : of_error(answer);
    if (!answer.result_type) return outcome_by_status(answer);
    auto error = describe(answer);
    if (answer.result_type == "input_required") {
        error.message = "the tool asks for input, which nobody here can give";
        return outbox::Attention{std::move(error)};
    }
    if (!answer.is_error) {
        error.message = "the result is no tool's result: " + error.message;
        return outbox::Unknown{Cause::unreadable, std::move(error)};
    }
    if (*answer.is_error) return unknown(std::move(error));
    if (!has_outcomes) return outbox::Succeeded{whole_result(answer), {}};
    error.message = "an answer that no outcome describes: " + error.message;
    return unknown(std::move(error));
}

outbox::Error task_error(const McpTaskEnd& task) {
    using How = McpTaskEnd::How;
    std::string code = "task_forgotten";
    std::string message = "the server does not know the task (any more)";
    if (task.how == How::cancelled) {
        code = "task_cancelled";
        message = "the task was cancelled; what it had done by then is not known";
    } else if (task.how == How::input_required) {
        code = "input_required";
        message = "the task asks for input, which nobody here can give";
    } else if (task.how == How::working) {
        code = "task_working";
        message = "the task is still at work";
    }
    if (!task.message.empty()) message += ": " + task.message;
    return {std::move(code), std::move(message)};
}

// How an attempt ends whose task did not tell what came of the call.
Outcome of_task_end(McpTaskEnd task) {
    if (task.how == McpTaskEnd::How::input_required) return outbox::Attention{task_error(task)};
    if (task.how != McpTaskEnd::How::working) return unknown(task_error(task));
    // As a 202: the server has it, and will be asked.
    Json result;
    result.set("task", Json(task.id));
    return outbox::Accepted{std::move(result)};
}

bool is_no_effect(const Outcome& outcome) {
    return std::holds_alternative<outbox::Rejected>(outcome) ||
           std::holds_alternative<outbox::RetryLater>(outcome);
}

class McpPage final : public PageRequest {
 public:
    explicit McpPage(const Json& arguments) : arguments_(arguments) {}
    [[nodiscard]] std::optional<std::string> parameter(std::string_view name) const override {
        const auto* value = arguments_.find(name);
        return value == nullptr ? std::nullopt : scalar_text(*value);
    }
    [[nodiscard]] std::optional<std::string> next(
        const Pagination& pagination, const std::string& value
    ) const override {
        argument_ = pagination.argument();
        return value;
    }
    [[nodiscard]] bool is_same(const std::string& next) const override {
        return parameter(argument_) == next;
    }

 private:
    const Json& arguments_;
    mutable std::string argument_;
};

}  // namespace

std::optional<McpExecute> McpExecute::compile(
    const config::Mcp& mcp, const Credentials& credentials, CompileContext& context
) {
    auto call = McpTemplate::compile(mcp, McpTemplate::Phase::execute, credentials, context);
    auto outcomes = OutcomeRules::compile(mcp.rules, AnswerKind::mcp, std::nullopt, context);
    if (!call) return std::nullopt;
    return McpExecute{std::move(*call), std::move(outcomes), mcp.has_rules};
}

std::optional<McpLookup> McpLookup::compile(
    const config::Mcp& mcp, const Credentials& credentials, CompileContext& context
) {
    context.paginated = mcp.paginate.has_value();
    auto call = McpTemplate::compile(mcp, McpTemplate::Phase::look_up, credentials, context);
    context.paginated = false;
    auto verdicts = VerdictRules::compile(mcp.rules, AnswerKind::mcp, mcp.result, context);
    auto listing = Listing::compile(mcp, AnswerKind::mcp, context);
    std::optional<PointerConditions> must_equal;
    if (!listing && mcp.must_equal) {
        must_equal = PointerConditions::compile(
            *mcp.must_equal, "must_equal", PointerConditions::Optional::allowed, context
        );
    }
    if (!call) return std::nullopt;
    return McpLookup{
        std::move(*call), std::move(verdicts), std::move(listing), std::move(must_equal)
    };
}

std::optional<outbox::Error> McpLookup::check(const Scope& scope) const {
    if (auto error = verdicts.check(scope)) return error;
    if (listing) return listing->check(scope);
    return must_equal ? must_equal->check(scope) : std::nullopt;
}

Outcome judge(const McpExecute& execute, McpEnd end, const Scope& scope) {
    if (auto* failure = std::get_if<McpFailure>(&end.what)) {
        if (failure->sent) return outbox::Unknown{failure->cause, std::move(failure->error)};
        return outbox::RetryLater{
            .error = std::move(failure->error), .after = std::nullopt, .counts = false
        };
    }
    if (auto* task = std::get_if<McpTaskEnd>(&end.what)) return of_task_end(std::move(*task));
    const auto& answer = std::get<Answer>(end.what);
    if (auto outcome = execute.outcomes.match(answer, scope)) return std::move(*outcome);
    return by_default(answer, end.of_task, execute.has_outcomes);
}

asio::awaitable<Outcome> McpAction::perform(outbox::ToolCall call, outbox::Deadline deadline) {
    const Scope scope{call};
    if (auto error = execute_->outcomes.check(scope)) co_return outbox::refused(std::move(*error));
    for (int round = 0;; ++round) {
        auto rendered = execute_->call.render(scope);
        if (!rendered.ok()) co_return outbox::refused(rendered.error());
        if (execute_->call.server() == nullptr && failpoints_.armed()) {
            auto hit = failpoints_.hit(outbox::FailpointId::before_first_byte);
            co_await std::move(hit);
        }
        rendered.value().keep = call.keep_handle;
        auto calling = server_->call(std::move(rendered.value()), scope, deadline);
        auto end = co_await std::move(calling);
        const bool stale = end.stale;
        const auto signal = end.signal;
        auto outcome = judge(*execute_, std::move(end), scope);
        if (stale && round < kRepeats && is_no_effect(outcome)) continue;
        if (signal) reporter_.tell(with_outcome(*signal, outcome));
        co_return outcome;
    }
}

std::optional<Verdict> McpProbe::read(
    McpEnd end, const Json& arguments, const Scope& scope, ListingSearch* search
) const {
    if (auto* failure = std::get_if<McpFailure>(&end.what)) {
        if (search != nullptr) return search->incomplete(std::move(failure->error));
        return Inconclusive{std::move(failure->error)};
    }
    if (const auto* task = std::get_if<McpTaskEnd>(&end.what)) {
        if (search != nullptr) return search->incomplete(task_error(*task));
        return Inconclusive{task_error(*task)};
    }
    const auto& answer = std::get<Answer>(end.what);
    // Verdicts speak about the look-up itself, not about its third page.
    if (search == nullptr || search->page() == 1) {
        auto verdict = lookup_.verdicts.match(answer, scope);
        if (verdict && std::holds_alternative<outbox::Found>(*verdict) && lookup_.must_equal) {
            const Json nothing;
            auto conflict =
                conflict_with(lookup_.must_equal, answer.body ? *answer.body : nothing, scope);
            if (conflict) return conflict;
        }
        if (verdict) return verdict;
    }
    const bool good = answer.is_error == false;
    if (search != nullptr && good) return search->read(answer, McpPage(arguments));
    auto error = describe(answer);
    if (good) error.message = "an answer that no verdict describes: " + error.message;
    if (search != nullptr) return search->incomplete(std::move(error));
    return Inconclusive{std::move(error)};
}

asio::awaitable<Verdict> McpProbe::ask(outbox::ToolCall call, outbox::Deadline deadline) {
    Page page;
    const Scope scope{call, &page};
    if (auto error = lookup_.check(scope)) co_return Inconclusive{std::move(*error)};
    std::optional<ListingSearch> search;
    if (lookup_.listing) search.emplace(*lookup_.listing, scope);
    auto* listing = search ? &*search : nullptr;
    int repeats = 0;
    for (;;) {
        auto rendered = lookup_.call.render(scope);
        if (!rendered.ok()) co_return Inconclusive{rendered.error()};
        auto asked = std::move(rendered.value());
        if (listing != nullptr && !listing->next_page().empty()) {
            const auto& pagination = *lookup_.listing->pagination;
            asked.arguments.set(
                pagination.argument(), pagination.argument_value(listing->next_page())
            );
        }
        const auto arguments = asked.arguments;
        auto calling = server_->call(std::move(asked), scope, deadline);
        auto end = co_await std::move(calling);
        if (end.stale && repeats++ < kRepeats) continue;
        if (end.signal) reporter_.tell(of_lookup(*end.signal));
        if (auto verdict = read(std::move(end), arguments, scope, listing)) {
            co_return std::move(*verdict);
        }
        page = {.number = listing->page(), .cursor = listing->cursor()};
    }
}

}  // namespace tools
