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

// On the outbox's own database an earlier attempt that nobody saw the end of had no effect: it
// would have ended the operation.
void prove_absence(outbox::Outcome& outcome) {
    if (auto* rejected = std::get_if<outbox::Rejected>(&outcome)) rejected->proves_absence = true;
}

}  // namespace

template <class Report>
asio::awaitable<Report> AdapterTool::masked(asio::awaitable<Report> reporting) const {
    auto report = co_await std::move(reporting);
    mask_->apply(report);
    co_return report;
}

asio::awaitable<outbox::Outcome> AdapterTool::execute(
    outbox::ToolCall call, outbox::Deadline deadline
) {
    return masked(perform(std::move(call), deadline));
}

asio::awaitable<outbox::Verdict> AdapterTool::probe(
    outbox::ToolCall call, outbox::Deadline deadline
) {
    return masked(probe_->ask(std::move(call), deadline));
}

asio::awaitable<outbox::Outcome> AdapterTool::perform(
    outbox::ToolCall call, outbox::Deadline deadline
) {
    const bool own = call.own.has_value();
    if (schema_) {
        if (auto violation = schema_->violation(call.intent.arguments)) {
            auto outcome = unfit(std::move(*violation), call.ambiguous && !own);
            if (own) prove_absence(outcome);
            co_return outcome;
        }
    }
    if (own) {
        // What is recorded within the action must not hold a secret either. On another thread: so
        // by a copy of the mask.
        call.own->decide = [mask = *mask_, decide = call.own->decide](outbox::Outcome outcome) {
            mask.apply(outcome);
            return decide(std::move(outcome));
        };
    }
    auto performing = action_->perform(std::move(call), deadline);
    auto outcome = co_await std::move(performing);
    if (own) prove_absence(outcome);
    co_return outcome;
}

}  // namespace tools
