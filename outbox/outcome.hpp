#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "outbox/json.hpp"

namespace outbox {

// Why an operation did not succeed (yet), as planners read it: {"code": …, "message": …}.
struct Error {
    std::string code;     // short and stable: invalid_arguments, not_sent, status_500, timeout, …
    std::string message;  // one sentence for a person or a model; never a secret
};

// Label of outboxd_unknown_total: how an attempt came to end without a known end.
enum class Cause {
    timeout,                 // the deadline passed after the first byte was written
    reset,                   // the connection broke after the first byte was written
    status,                  // an answer that a rule or the defaults call unknown (500, 409, …)
    unreadable,              // an answer that could not be understood
    exit_code,               // a command's exit code that nobody described
    killed,                  // a command that a signal ended
    lease_expired,           // nobody reported before the lease ended
    rejected_after_unknown,  // "no" after an attempt that may have happened: maybe our own echo
    timeline,                // the database came back from a failover or a restore
    mcp,                     // an MCP server's isError
    other,
};
[[nodiscard]] std::string_view to_string(Cause cause);

// How one attempt ended. A tool answers with one of these and never throws for what the other
// side did.
struct Succeeded {  // the effect happened
    Json result;
    std::string note;  // said in an event: for instance that the result could not be extracted
};
struct Accepted {  // taken, not yet proven (202): probe until found
    Json result;
};
struct Rejected {  // definitely no effect, and trying again would not help
    Error error;
    bool proves_absence = false;  // holds even after an earlier attempt that ended unknown
    bool sent =
        true;  // false: refused on our side before the first byte; the attempt is given back
};
// Refused before anything was sent (the arguments do not fill the request).
[[nodiscard]] inline Rejected refused(Error error) {
    return {std::move(error), false, false};
}
struct RetryLater {  // definitely no effect; try later
    Error error;
    std::optional<std::chrono::milliseconds> after;  // Retry-After; empty: the tool's back-off
    bool counts = true;  // false: not sent, 429 and 401 give the attempt back
    bool asked = false;  // `after` is the other side's word, not the file's
};
struct Unknown {  // it may have happened
    Cause cause = Cause::other;
    Error error;
    bool in_progress = false;  // 409, 425: the other side is at work on this very request
};
struct Attention {  // a person must look (the provider says this key was used otherwise)
    Error error;
};
using Outcome = std::variant<Succeeded, Accepted, Rejected, RetryLater, Unknown, Attention>;
// Label of outboxd_attempts_total: succeeded, accepted, rejected, retry, unknown, attention.
[[nodiscard]] std::string_view outcome_name(const Outcome& outcome);

// What a probe found. A probe that failed is Inconclusive, never Absent.
struct Found {
    Json result;
    std::string note;
};
struct Absent {};
struct Pending {
    std::string note;
};
struct Conflict {  // found but different, or found twice
    Error error;
};
struct Inconclusive {
    Error error;
};
using Verdict = std::variant<Found, Absent, Pending, Conflict, Inconclusive>;
// Label of outboxd_reconciled_total: found, absent, pending, conflict, inconclusive.
[[nodiscard]] std::string_view verdict_name(const Verdict& verdict);

}  // namespace outbox
