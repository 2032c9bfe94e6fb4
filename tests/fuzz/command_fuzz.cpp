// What a command may say, and how it may end, as a result. Parts: a control line, standard output,
// standard error. The exit code decides, whatever stands in the output, unless a rule that could
// read it says otherwise; and what is stored is always jsonb.
#include "tests/fuzz/harness.hpp"
#include "tools/compiled_tool.hpp"

namespace {

using fuzz::must;
using How = tools::ProcessEnd::How;

constexpr const char* kTools = R"(
  plain:
    effect: write
    execute: { type: command, argv: [/bin/true], exit_codes: { 0: succeeded, 75: retry, 65: rejected, 9: attention, 10: accepted, default: unknown }, result: { id: /id, whole: "", at: /list/0 } }
    reconcile: { type: command, argv: [/bin/true], exit_codes: { 0: found, 1: absent, 2: pending, 3: conflict, default: inconclusive } }
  text:
    effect: write
    execute: { type: command, argv: [/bin/true], stdout: text, exit_codes: { 0: succeeded, 75: retry, 65: rejected, 9: attention, 10: accepted, default: unknown } }
    reconcile: { type: command, argv: [/bin/true], stdout: text, exit_codes: { 0: found, 1: absent, 2: pending, 3: conflict, default: inconclusive } }
  rules:
    effect: write
    execute:
      type: command
      argv: [/bin/true]
      outcomes:
        - { when: { exit_code: 0, body: { /ok: true } }, then: succeeded, result: /id }
        - { when: { exit_code: [1, 2], body: { /retry: { exists: true } } }, then: retry, retry_after: /retry }
        - { when: { body: { /state: { matches: "^dup" } } }, then: rejected, code: /code, message: /message, proves_absence: true }
        - { when: { text: { contains: "broken" } }, then: attention }
    reconcile:
      type: command
      argv: [/bin/true]
      verdicts:
        - { when: { exit_code: 0, body: { /found: true } }, then: found, result: { id: /id } }
        - { when: { exit_code: 0, body: { /found: false } }, then: absent }
        - { when: { text: { contains: "wait" } }, then: pending }
)";

const std::vector<tools::CompiledTool>& compiled_tools() {
    static const auto kCompiled = [] {
        const auto config = fuzz::configuration(kTools);
        std::vector<tools::CompiledTool> all;
        for (const auto& tool : config.tools) {
            config::Diagnostics diagnostics;
            all.push_back(std::move(*tools::compile_tool(tool, config, diagnostics)));
        }
        return all;
    }();
    return kCompiled;
}

void check_error(const outbox::Error& error) {
    must(!error.code.empty() && !error.message.empty(), "an error has a code and a sentence");
    fuzz::check_storable(outbox::Json(error.code));
    fuzz::check_storable(outbox::Json(error.message));
}

void check_outcome(const outbox::Outcome& outcome) {
    if (const auto* it = std::get_if<outbox::Succeeded>(&outcome)) {
        fuzz::check_storable(it->result);
        fuzz::check_storable(outbox::Json(it->note));
    } else if (const auto* accepted = std::get_if<outbox::Accepted>(&outcome)) {
        fuzz::check_storable(accepted->result);
    } else if (const auto* rejected = std::get_if<outbox::Rejected>(&outcome)) {
        check_error(rejected->error);
    } else if (const auto* later = std::get_if<outbox::RetryLater>(&outcome)) {
        check_error(later->error);
        must(!later->after || later->after->count() >= 0, "no wait is negative");
    } else if (const auto* unknown = std::get_if<outbox::Unknown>(&outcome)) {
        check_error(unknown->error);
    } else {
        check_error(std::get<outbox::Attention>(outcome).error);
    }
}

void check_verdict(const outbox::Verdict& verdict) {
    if (const auto* it = std::get_if<outbox::Found>(&verdict)) {
        fuzz::check_storable(it->result);
    } else if (const auto* pending = std::get_if<outbox::Pending>(&verdict)) {
        fuzz::check_storable(outbox::Json(pending->note));
    } else if (const auto* conflict = std::get_if<outbox::Conflict>(&verdict)) {
        check_error(conflict->error);
    } else if (const auto* inconclusive = std::get_if<outbox::Inconclusive>(&verdict)) {
        check_error(inconclusive->error);
    }
}

std::string_view expected_outcome(int code) {
    switch (code) {
        case 0:
            return "succeeded";
        case 75:
            return "retry";
        case 65:
            return "rejected";
        case 9:
            return "attention";
        case 10:
            return "accepted";
        default:
            return "unknown";
    }
}

std::string_view expected_verdict(int code) {
    switch (code) {
        case 0:
            return "found";
        case 1:
            return "absent";
        case 2:
            return "pending";
        case 3:
            return "conflict";
        default:
            return "inconclusive";
    }
}

}  // namespace

void fuzz::run_input(std::string_view input) {
    const auto parts = parts_of(input, 3);
    const auto which = choice(parts[0], 0, 3);
    tools::ProcessEnd end;
    constexpr How kHows[] = {
        How::exited,
        How::exited,
        How::exited,
        How::exited,
        How::exited,
        How::exited,
        How::signalled,
        How::timed_out,
        How::cut,
        How::not_started
    };
    end.how = kHows[choice(parts[0], 1, 10)];
    constexpr int kCodes[] = {0, 1, 2, 3, 9, 10, 65, 75, 127, 255};
    end.code = kCodes[choice(parts[0], 2, 10)];
    end.truncated = choice(parts[0], 3, 2) == 1;
    end.output = parts[1];
    end.errors = parts[2];

    const auto call = call_with({});
    const tools::Scope scope{call, nullptr};
    const auto& tool = compiled_tools()[which];
    const auto outcome = judge(std::get<tools::CommandExecute>(tool.execute), end, scope);
    const auto verdict = judge(std::get<tools::CommandLookup>(*tool.lookup), end, scope);
    check_outcome(outcome);
    check_verdict(verdict);
    const auto name = outcome_name(outcome);
    const auto found = verdict_name(verdict);
    if (end.how == How::not_started) {
        must(name == "retry" || name == "rejected", "not started is no effect", name);
        must(found == "inconclusive", "not started proves nothing", found);
    } else if (end.how != How::exited) {
        must(name == "unknown", "an end without an exit code is unknown", name);
        must(found == "inconclusive", "an end without an exit code proves nothing", found);
    } else if (which < 2) {
        must(name == expected_outcome(end.code), "the exit code decides", name);
        must(found == expected_verdict(end.code), "the exit code decides", found);
    } else if (end.truncated) {
        must(name != "succeeded", "succeeded out of a cut output", name);
        must(found != "absent", "absent out of a cut output", found);
    } else if (!outbox::parse_foreign_json(end.output).value) {
        must(name == "unknown" || name == "attention", "an unreadable output", name);
        must(found == "inconclusive" || found == "pending", "an unreadable output", found);
    }
}
