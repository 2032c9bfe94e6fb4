#pragma once

#include "outbox/log.hpp"
#include "tools/adapter.hpp"

namespace tools {

// Writes the operation to the log and succeeds: for trying things out and for benchmarks. The
// arguments are not written: they may hold what a log must not.
class LogAction final : public Action {
 public:
    explicit LogAction(outbox::Log& log) : log_(log) {}

    asio::awaitable<outbox::Outcome> perform(outbox::ToolCall call, outbox::Deadline deadline)
        override;

 private:
    outbox::Log& log_;
};

// A read tool without reconcile, and reconcile: { type: manual }: nothing to ask.
class NoProbe final : public Probe {
 public:
    explicit NoProbe(std::string reason) : reason_(std::move(reason)) {}

    asio::awaitable<outbox::Verdict> ask(outbox::ToolCall call, outbox::Deadline deadline) override;

 private:
    std::string reason_;
};

}  // namespace tools
