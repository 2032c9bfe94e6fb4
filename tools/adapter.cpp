#include "tools/adapter.hpp"

namespace tools {
namespace {

// Nothing is sent either way. Where an earlier attempt may have had an effect (under an older
// schema, or before its daemon was killed), this refusal says nothing about it: a person decides.
outbox::Outcome unfit(std::string message, bool ambiguous) {
    if (!ambiguous) return outbox::refused({"invalid_arguments", std::move(message)});
    message += " An earlier attempt was made before that was found out, so it is not sent again.";
    return outbox::Attention{{"invalid_arguments", std::move(message)}};
}

}  // namespace

asio::awaitable<outbox::Outcome> AdapterTool::execute(
    outbox::ToolCall call, outbox::Deadline deadline
) {
    if (schema_) {
        if (auto violation = schema_->violation(call.intent.arguments)) {
            auto outcome = unfit(std::move(*violation), call.ambiguous);
            mask_->apply(outcome);
            co_return outcome;
        }
    }
    auto performing = action_->perform(std::move(call), deadline);
    auto outcome = co_await std::move(performing);
    mask_->apply(outcome);
    co_return outcome;
}

asio::awaitable<outbox::Verdict> AdapterTool::probe(
    outbox::ToolCall call, outbox::Deadline deadline
) {
    auto asking = probe_->ask(std::move(call), deadline);
    auto verdict = co_await std::move(asking);
    mask_->apply(verdict);
    co_return verdict;
}

}  // namespace tools
