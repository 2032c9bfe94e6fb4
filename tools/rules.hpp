#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "config/config.hpp"
#include "outbox/outcome.hpp"
#include "tools/condition.hpp"
#include "tools/extraction.hpp"
#include "tools/retry_after.hpp"

namespace tools {

// What a rule of outcomes: says about an attempt; contract/config.md has the meanings.
enum class AttemptEnd { succeeded, accepted, rejected, retry, unknown, attention };
// What a rule of verdicts: says about a probe.
enum class ProbeEnd { found, absent, pending, conflict, inconclusive };

// `then:`; mistakes are reported with the nearest name, empty then.
[[nodiscard]] std::optional<AttemptEnd> compile_attempt_end(
    const config::Text& then, config::Diagnostics& diagnostics
);
[[nodiscard]] std::optional<ProbeEnd> compile_probe_end(
    const config::Text& then, config::Diagnostics& diagnostics
);

// How an end is worded, beyond its kind.
struct Wording {
    std::optional<Extraction> result;
    std::optional<TextSource> code;
    std::optional<TextSource> message;
    std::optional<RetryAfter> retry_after;
    bool proves_absence = false;
};
[[nodiscard]] outbox::Outcome make_outcome(
    AttemptEnd end, const Wording& wording, const Answer& answer
);
[[nodiscard]] outbox::Verdict make_verdict(
    ProbeEnd end, const Wording& wording, const Answer& answer
);

// Code and message of an answer: status_422 and what its body says under the usual names, or
// exit_65 and the first line of standard error.
[[nodiscard]] outbox::Error describe(const Answer& answer);

// outcomes: of execute, in order; the first match wins. A rule that would need a body nobody could
// read stops the search: what comes behind it might be wrong, so the attempt is unknown.
class OutcomeRules {
 public:
    // A rule without a result: of its own takes the default one.
    static OutcomeRules compile(
        const std::vector<config::Rule>& rules,
        AnswerKind kind,
        const std::optional<config::Value>& default_result,
        CompileContext& context
    );

    // Empty: no rule matches, the adapter's defaults decide.
    [[nodiscard]] std::optional<outbox::Outcome> match(const Answer& answer, const Scope& scope)
        const;
    [[nodiscard]] std::optional<outbox::Error> check(const Scope& scope) const;

 private:
    struct Rule {
        Condition when;
        AttemptEnd end = AttemptEnd::unknown;
        Wording wording;
    };
    std::vector<Rule> rules_;
};

// verdicts: of reconcile, in order; the first match wins.
class VerdictRules {
 public:
    static VerdictRules compile(
        const std::vector<config::Rule>& rules,
        AnswerKind kind,
        const std::optional<config::Value>& default_result,
        CompileContext& context
    );

    [[nodiscard]] std::optional<outbox::Verdict> match(const Answer& answer, const Scope& scope)
        const;
    [[nodiscard]] std::optional<outbox::Error> check(const Scope& scope) const;
    [[nodiscard]] bool empty() const { return rules_.empty(); }

 private:
    struct Rule {
        Condition when;
        ProbeEnd end = ProbeEnd::inconclusive;
        Wording wording;
    };
    std::vector<Rule> rules_;
};

}  // namespace tools
