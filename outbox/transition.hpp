#pragma once

#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "outbox/clock.hpp"
#include "outbox/ids.hpp"
#include "outbox/json.hpp"
#include "outbox/operation.hpp"
#include "outbox/outcome.hpp"

namespace outbox {

// Why a person is needed; closed set of the contract.
enum class AttentionReason {
    manual,
    conflict,
    hold,
    give_up,
    provider,
    late_effect,
    duplicate_effect
};
inline constexpr std::array kAllAttentionReasons = {
    AttentionReason::manual,
    AttentionReason::conflict,
    AttentionReason::hold,
    AttentionReason::give_up,
    AttentionReason::provider,
    AttentionReason::late_effect,
    AttentionReason::duplicate_effect,
};
[[nodiscard]] std::string_view to_string(AttentionReason reason);

// Kinds of outbox.event; closed set of the contract.
enum class EventKind {
    replayed,
    retry,
    failed,
    succeeded,
    released,
    unknown,
    lease_expired,
    probe,
    attention,
    resolved,
    acknowledged,
    cancelled,
    retried,
    late_result,
    timeline,
    result_lost,
};
inline constexpr std::array kAllEventKinds = {
    EventKind::replayed,
    EventKind::retry,
    EventKind::failed,
    EventKind::succeeded,
    EventKind::released,
    EventKind::unknown,
    EventKind::lease_expired,
    EventKind::probe,
    EventKind::attention,
    EventKind::resolved,
    EventKind::acknowledged,
    EventKind::cancelled,
    EventKind::retried,
    EventKind::late_result,
    EventKind::timeline,
    EventKind::result_lost,
};
[[nodiscard]] std::string_view to_string(EventKind kind);

struct Event {
    EventKind kind;
    Json detail;  // an object
};

// What a probe leaves in the row for the next one.
struct ProbeMemory {
    int probes = 0;
    int absent_count = 0;
    std::optional<DbTime> last_absent_at;
};

// One write of status, fenced by the epoch it read. Built by decide.hpp only; the store turns it
// into rows and knows no policy.
struct Transition {
    enum class Writer {
        attempt,  // a leased attempt: when fenced, the answer becomes evidence (late_result)
        probe,    // a claimed probe: when fenced, nothing is lost, the other one knows better;
                  // unless it was a resend and its answer is evidence
    };

    Writer writer = Writer::attempt;
    Seq seq;
    OperationId id;
    std::string tool;
    Epoch epoch;  // compared; epoch + 1 is set
    Status to = Status::unknown;

    Json result;  // succeeded (and accepted: kept with the attempt)
    std::optional<Error> error;
    // scheduled and unknown: when somebody must look next, from the moment of the write; empty
    // with unknown: never (due_at = infinity), only a person can help.
    std::optional<std::chrono::milliseconds> due_in;
    int attempts_delta = 0;  // −1 gives the attempt back
    bool ambiguous = false;  // from now on a "rejected" proves nothing
    std::optional<Cause> cause;
    std::optional<AttentionReason> attention;
    std::optional<ProbeMemory> probe;
    std::vector<Event> events;

    // What the answer proves when the write comes too late.
    enum class Evidence { none, effect, no_effect };
    Evidence evidence = Evidence::none;
};

}  // namespace outbox
