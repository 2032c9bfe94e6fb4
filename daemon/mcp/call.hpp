#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "daemon/mcp/message.hpp"
#include "daemon/mcp/offer.hpp"
#include "outbox/pg/client.hpp"

namespace outboxd::mcp {

// What a client puts into _meta of tools/call; a model never sees them.
inline constexpr std::string_view kRunKey = "dev.outboxd/run-id";
inline constexpr std::string_view kOccurrenceKey = "dev.outboxd/occurrence";
inline constexpr std::string_view kRetryKey = "dev.outboxd/retry-failed";

// Where a call's run comes from when its _meta names none.
struct RunSource {
    std::optional<std::string> run_id;
    std::string hint;  // how to set it on this transport, for the sentence of a refusal
};

struct EnqueuePlan {
    outbox::pg::EnqueueCall call;
    std::string operation_id;  // that enqueue will derive; empty: the arguments have no key
};
struct StatusPlan {
    std::string operation_id;
};
struct CompensatePlan {
    outbox::pg::CompensateCall call;
};
// Nothing is recorded: the sentence for the model.
struct Refused {
    std::string message;
};
using Plan = std::variant<EnqueuePlan, StatusPlan, CompensatePlan, Refused, Fault>;

// What a tools/call asks for, checked as far as it can be without the database. Pure; the fresh id
// serves a tool that only reads and was called without a run: nothing is lost by reading again.
[[nodiscard]] Plan plan_call(
    const Message& message, const Offer& offer, const RunSource& run, const std::string& fresh_id
);

}  // namespace outboxd::mcp
