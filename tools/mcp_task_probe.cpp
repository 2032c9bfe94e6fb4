#include "tools/mcp_task_probe.hpp"

#include <optional>

#include "outbox/overloaded.hpp"

namespace tools {
namespace {

using outbox::Verdict;

// What a task says about the attempt; empty: nothing.
struct Told {
    std::optional<Verdict> verdict;
    // Why it may be at work for all that is known.
    std::optional<outbox::Error> in_doubt{};
};

// The outcome of the call itself, only later: no echo of another one.
Told told_by(const McpExecute& execute, McpEnd end, const Scope& scope) {
    if (auto* failure = std::get_if<McpFailure>(&end.what)) return {{}, std::move(failure->error)};
    auto outcome = judge(execute, std::move(end), scope);
    return std::visit(
        outbox::Overloaded{
            [](outbox::Succeeded& o) {
                return Told{outbox::Found{std::move(o.result), std::move(o.note)}};
            },
            [](outbox::Accepted&) { return Told{outbox::Pending{"the task is still at work"}}; },
            [](outbox::Rejected&) { return Told{outbox::Absent{}}; },
            [](outbox::RetryLater&) { return Told{outbox::Absent{}}; },
            [](outbox::Attention& o) { return Told{outbox::Conflict{std::move(o.error)}}; },
            [](outbox::Unknown&) { return Told{}; },
        },
        outcome
    );
}

// What is left for the look-up when the task's server does not answer.
outbox::Deadline half(outbox::Deadline deadline) {
    return {outbox::BootClock::now() + deadline.left() / 2};
}

}  // namespace

asio::awaitable<Verdict> McpTaskProbe::ask(outbox::ToolCall call, outbox::Deadline deadline) {
    std::optional<outbox::Error> in_doubt;
    if (call.handle) {
        const Scope scope{call};
        Told told;
        if (auto rendered = execute_->call.render(scope); rendered.ok()) {
            rendered.value().task = *call.handle;
            auto looking = server_->call(std::move(rendered.value()), scope, half(deadline));
            auto end = co_await std::move(looking);
            told = told_by(*execute_, std::move(end), scope);
        } else {
            told.in_doubt = rendered.error();
        }
        if (told.verdict) co_return std::move(*told.verdict);
        in_doubt = std::move(told.in_doubt);
    }
    auto asking = otherwise_->ask(std::move(call), deadline);
    auto verdict = co_await std::move(asking);
    if (in_doubt && std::holds_alternative<outbox::Absent>(verdict)) {
        in_doubt->message =
            "nothing was found, but the task of this attempt could not be asked about: " +
            in_doubt->message;
        verdict = outbox::Inconclusive{std::move(*in_doubt)};
    }
    co_return verdict;
}

}  // namespace tools
