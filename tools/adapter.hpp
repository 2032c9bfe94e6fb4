#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <utility>

#include "outbox/tool.hpp"
#include "tools/arguments_schema.hpp"
#include "tools/secret_mask.hpp"

namespace tools {

namespace asio = boost::asio;

// Performs the effect: the execute: of a tool.
class Action {
 public:
    virtual ~Action() = default;
    // Its attempts may leave something to be asked about by (ToolCall::keep_handle).
    [[nodiscard]] virtual bool leaves_handles() const { return false; }
    virtual asio::awaitable<outbox::Outcome> perform(
        outbox::ToolCall call, outbox::Deadline deadline
    ) = 0;
};

// Asks whether it happened: the reconcile: of a tool.
class Probe {
 public:
    virtual ~Probe() = default;
    virtual asio::awaitable<outbox::Verdict> ask(
        outbox::ToolCall call, outbox::Deadline deadline
    ) = 0;
};

// Any action with any probe: an HTTP effect may be looked for by a command. Arguments that do not
// fit the schema never reach the action.
class AdapterTool final : public outbox::Tool {
 public:
    AdapterTool(
        std::unique_ptr<Action> action,
        std::unique_ptr<Probe> probe,
        std::shared_ptr<const SecretMask> mask,
        std::unique_ptr<const ArgumentsSchema> schema = nullptr
    )
        : action_(std::move(action)),
          probe_(std::move(probe)),
          mask_(std::move(mask)),
          schema_(std::move(schema)) {}

    asio::awaitable<outbox::Outcome> execute(outbox::ToolCall call, outbox::Deadline deadline)
        override;
    asio::awaitable<outbox::Verdict> probe(outbox::ToolCall call, outbox::Deadline deadline)
        override;
    [[nodiscard]] bool leaves_handles() const override { return action_->leaves_handles(); }

 private:
    asio::awaitable<outbox::Outcome> perform(outbox::ToolCall call, outbox::Deadline deadline);
    // Whatever is reported leaves here, without secrets.
    template <class Report>
    asio::awaitable<Report> masked(asio::awaitable<Report> reporting) const;

    std::unique_ptr<Action> action_;
    std::unique_ptr<Probe> probe_;
    std::shared_ptr<const SecretMask> mask_;
    std::unique_ptr<const ArgumentsSchema> schema_;  // null: any arguments will do
};

}  // namespace tools
