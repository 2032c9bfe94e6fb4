#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "outbox/pg/client.hpp"

namespace outbox::pg {

// What the admin server reads beside the command line's calls (client.hpp): rows are JSON text,
// with the tool beside it where somebody must know whose redact: applies.
struct BrowsedOperation {
    std::int64_t seq = 0;
    std::string tool;
    std::string row;
};

// One page, newest first; up to the filter's limit in one statement.
[[nodiscard]] std::vector<BrowsedOperation> browse(Session& session, const ListFilter& filter);

struct ToldOperation {
    std::string operation;           // a row of outbox.operations
    std::string intent;              // what the planner asked for, but for
    std::string arguments;           // these: they may be nested too deeply for a reader
    std::int64_t created_us = 0;     // microseconds since the epoch
    std::int64_t first_sent_us = 0;  // the same, of the first attempt
    int attempts = 0;
    std::optional<std::string> work;  // how far it is; empty once it is final
    std::string tool;
    bool pruned = false;  // its arguments and result are gone
    // Of a compensation: what it undoes.
    std::optional<std::string> original_tool;
    std::optional<std::string> original_arguments;
    std::optional<std::string> original_result;
    std::string compensations;        // array of names that the tool has
    std::string undone_by;            // array of the compensations that were asked for
    std::vector<std::string> events;  // the latest, oldest first
    bool more_events = false;         // there are older ones
};

// Empty: unknown id.
[[nodiscard]] std::optional<ToldOperation> tell(
    Session& session, const std::string& operation_id, int most_events
);

// What waits for a person per tool and reason, and what the last 24 hours brought per tool.
[[nodiscard]] std::vector<std::string> attention_counts(Session& session);
[[nodiscard]] std::vector<std::string> hourly_tally(Session& session);

}  // namespace outbox::pg
