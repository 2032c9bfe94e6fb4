#include "tools/adapter.hpp"

namespace tools {

asio::awaitable<outbox::Outcome> AdapterTool::execute(
    outbox::ToolCall call, outbox::Deadline deadline
) {
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
