#pragma once

#include <cstddef>

#include "outbox/failpoint.hpp"
#include "tools/adapter.hpp"
#include "tools/command_template.hpp"
#include "tools/exit_codes.hpp"
#include "tools/process_run.hpp"
#include "tools/rules.hpp"

namespace tools {

// execute: { type: command }, compiled: outcomes first, then exit codes.
struct CommandExecute {
    CommandTemplate command;
    OutcomeRules outcomes;
    ExitCodes<AttemptEnd> exit_codes;
    Wording wording;  // of an end that an exit code decides
    bool stdout_text = false;

    static CommandExecute compile(const config::Command& command, CompileContext& context);
};

// reconcile: { type: command }, compiled: verdicts first, then exit codes.
struct CommandLookup {
    CommandTemplate command;
    VerdictRules verdicts;
    ExitCodes<ProbeEnd> exit_codes;
    Wording wording;
    bool stdout_text = false;

    static CommandLookup compile(const config::Command& command, CompileContext& context);
};

[[nodiscard]] outbox::Outcome judge(
    const CommandExecute& execute, ProcessEnd end, const Scope& scope
);
[[nodiscard]] outbox::Verdict judge(
    const CommandLookup& lookup, ProcessEnd end, const Scope& scope
);

// An effect by running a program.
class CommandAction final : public Action {
 public:
    CommandAction(CommandExecute execute, std::size_t output_limit, outbox::Failpoints& failpoints)
        : execute_(std::move(execute)), output_limit_(output_limit), failpoints_(failpoints) {}

    asio::awaitable<outbox::Outcome> perform(outbox::ToolCall call, outbox::Deadline deadline)
        override;

 private:
    CommandExecute execute_;
    std::size_t output_limit_;
    outbox::Failpoints& failpoints_;
};

// Asks by running a program. Whatever goes wrong is inconclusive, never absent.
class CommandProbe final : public Probe {
 public:
    CommandProbe(CommandLookup lookup, std::size_t output_limit)
        : lookup_(std::move(lookup)), output_limit_(output_limit) {}

    asio::awaitable<outbox::Verdict> ask(outbox::ToolCall call, outbox::Deadline deadline) override;

 private:
    CommandLookup lookup_;
    std::size_t output_limit_;
};

}  // namespace tools
