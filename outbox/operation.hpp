#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "outbox/clock.hpp"
#include "outbox/ids.hpp"
#include "outbox/json.hpp"

namespace outbox {

// Kept equal to the CHECKs in sql/migrations and the diagram in outbox/README.md by a test.
enum class Status {
    pending,     // may be leased
    scheduled,   // waits for due_at, then becomes pending
    attempting,  // leased: an attempt is on its way or its worker died
    unknown,     // it may have happened: only a verdict, evidence or an operator leads out
    succeeded,   // final: the effect happened
    failed,      // final: definitely no effect
    cancelled,   // final: taken back before any attempt
};
inline constexpr std::array kAllStatuses = {
    Status::pending,
    Status::scheduled,
    Status::attempting,
    Status::unknown,
    Status::succeeded,
    Status::failed,
    Status::cancelled,
};
[[nodiscard]] std::string_view to_string(Status status);
[[nodiscard]] std::optional<Status> parse_status(std::string_view text);

// The intent, as the planner wrote it.
struct Intent {
    Seq seq;
    OperationId id;
    std::string tool;
    Json arguments;
    std::optional<std::string> run_id;
    std::optional<int> max_attempts;  // the planner's own limit, over the tool's
    std::optional<DbTime> expires_at;
    std::optional<std::string> traceparent;
    DbTime created_at;
    std::int16_t priority = 0;  // smaller first
    // Why this row's JSON cannot be read (nested too deeply); empty: it could. Such a row fails
    // alone: it must never stop the batch it came with.
    std::string unreadable;
    // For compensations: the operation they undo, its arguments and its result.
    std::optional<OperationId> compensates;
    Json original_arguments;
    Json original_result;
};

// One attempt that this worker owns: the lease is its journal entry, committed before dispatch.
struct LeasedAttempt {
    Intent intent;
    Epoch epoch;             // identifies the attempt; every write compares it
    int attempts = 1;        // this one included
    bool ambiguous = false;  // an earlier attempt ended unknown
    // request_hash of the first attempt; differs from the tool's when the file changed since.
    std::int64_t request_hash = 0;
    DbTime leased_at;         // database clock
    DbTime deadline_at;       // database clock: hard end of this attempt
    DbTime first_attempt_at;  // database clock: start of the first attempt (first_sent_at)
    std::optional<DbTime> eligible_since;  // first attempts only: since when it could have run
};

// An unknown operation this worker asks about. The claim moved the epoch: one prober at a time.
struct ClaimedProbe {
    Intent intent;
    Epoch epoch;          // of the claim; the verdict's write compares it
    Epoch attempt_epoch;  // of the attempt in doubt
    int attempts = 0;
    std::int64_t request_hash = 0;
    DbTime probe_started_at;  // database clock, taken before the probe's first byte
    DbTime deadline_at;       // hard end of the last attempt
    DbTime first_attempt_at;
    // Since when the provider may know the key: the first attempt, or, where a timeline change lost
    // it, the moment the operation was filed.
    DbTime key_since;
    DbTime unknown_since;
    int probes = 0;                        // probes already answered since it became unknown
    int absent_count = 0;                  // absent verdicts counted so far
    std::optional<DbTime> last_absent_at;  // when the last counted one began
    bool flagged = false;  // attention is set: no probe by itself, only when a person asks
    bool asked = false;    // a person asked for this probe (outboxd probe ID); attention stays
    bool absent_believed = false;  // an earlier attempt was: a second match is a second effect
    // The database's clock stepped: from this probe's start on, how long "absent" proves nothing.
    std::chrono::milliseconds distrust{0};
};

}  // namespace outbox
