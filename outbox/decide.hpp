#pragma once

#include <optional>

#include "outbox/operation.hpp"
#include "outbox/outcome.hpp"
#include "outbox/policy.hpp"
#include "outbox/transition.hpp"

// The rules of contract/states.md as pure functions: no clock, no I/O, no logging. Times are the
// database's; random is uniform in [0, 1) and comes from the caller.
namespace outbox {

// How an attempt's end moves its operation.
[[nodiscard]] Transition decide_attempt(
    const LeasedAttempt& attempt,
    const Outcome& outcome,
    const ToolPolicy& policy,
    DbTime now,
    double random
);

// How an attempt ends that must not begin: what it is to be called with cannot be read, or it is
// one too many. The latter are reads whose worker died with each attempt (nobody was there to count
// them; of a write the reconciler does), and operations whose max_attempts was lowered meanwhile.
[[nodiscard]] std::optional<Outcome> decide_before(
    const LeasedAttempt& attempt, const ToolPolicy& policy
);

// The provider may have forgotten the key of an earlier attempt whose end is not known for sure: it
// would take this one for another request. So it is looked for once more right before anything is
// sent, and only "absent" lets it go. Where there is nothing to look by (manual, resend), it was a
// person who let it go, and nobody knows better.
[[nodiscard]] bool needs_fresh_absent(
    const LeasedAttempt& attempt, const ToolPolicy& policy, DbTime now
);

// What that look said, as the end of the attempt; empty: it may be sent.
[[nodiscard]] std::optional<Outcome> decide_fresh_absent(const Verdict& verdict);

// An attempt that provably never sent a byte, given back at shutdown.
[[nodiscard]] Transition decide_release(const LeasedAttempt& attempt);

// What a probe's verdict does to an unknown operation.
[[nodiscard]] Transition decide_probe(
    const ClaimedProbe& claim,
    const Verdict& verdict,
    const ToolPolicy& policy,
    DbTime now,
    double random
);

// An unknown operation of a tool that is a read now: nobody is asked. Nobody had published the tool
// when the database came back on another timeline, or it was a write then.
[[nodiscard]] Transition decide_read(
    const ClaimedProbe& claim, const ToolPolicy& policy, DbTime now, double random
);

// An unknown operation of a tool that only a person can answer for: nobody is asked.
[[nodiscard]] Transition decide_manual(const ClaimedProbe& claim);

// reconcile: resend. Why an unknown operation must not be sent once more, as its transition; empty:
// it may, until now + the tool's time-out.
[[nodiscard]] std::optional<Transition> decide_before_resend(
    const ClaimedProbe& claim, const ToolPolicy& policy, DbTime now
);

// What the answer to a resend says about the operation.
[[nodiscard]] Verdict resend_verdict(const Outcome& outcome);

// How a resend's answer moves its operation. `claim` has the epoch and the attempts of the
// journaled resend, and the hard deadline of the attempt before it.
[[nodiscard]] Transition decide_resend(
    const ClaimedProbe& claim,
    const Outcome& outcome,
    const ToolPolicy& policy,
    DbTime now,
    double random
);

}  // namespace outbox
