#pragma once

#include <functional>
#include <string>

#include "outbox/tool.hpp"
#include "tests/sim/provider.hpp"

namespace sim {

// A tool as the adapters are: it connects, looks at its deadline right before the first byte, and
// takes an answer that arrived whole whenever it reads it.
class SimTool : public outbox::Tool {
 public:
    // `account`: where this configuration asks; another one sees other effects.
    SimTool(Provider& provider, const Draw& draw, Dice& dice, int account)
        : provider_(provider), draw_(draw), dice_(dice), account_(account) {}

    // Called with what it is about to return.
    std::function<void(const outbox::ToolCall&, const outbox::Outcome&)> on_answer;

    boost::asio::awaitable<outbox::Outcome> execute(
        outbox::ToolCall call, outbox::Deadline deadline
    ) override;
    boost::asio::awaitable<outbox::Verdict> probe(outbox::ToolCall call, outbox::Deadline deadline)
        override;

 private:
    boost::asio::awaitable<void> connect();

    Provider& provider_;
    const Draw& draw_;
    Dice& dice_;
    int account_;
};

}  // namespace sim
