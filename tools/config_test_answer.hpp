#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "config/config.hpp"
#include "outbox/outcome.hpp"
#include "outbox/sql_database.hpp"
#include "tools/http_client.hpp"
#include "tools/mcp_answer.hpp"
#include "tools/process_run.hpp"
#include "tools/rehearsal.hpp"

namespace tools {

// An answer of tests:, in the form the tool gets it; empty: it is of another kind.
[[nodiscard]] std::optional<Rehearsal::Canned> canned_answer(
    const config::CannedAnswer& canned, Rehearsal::Kind kind
);
// What would have been one, for a message.
[[nodiscard]] const char* answers_of(Rehearsal::Kind kind);

// What an outcome or a verdict carries, for comparing; borrows from it.
struct Carried {
    std::string end;  // succeeded, found, …
    const outbox::Json* result = nullptr;
    const outbox::Error* error = nullptr;
    std::optional<std::chrono::milliseconds> after{};
    std::string note{};

    [[nodiscard]] std::string text() const;
};
// Without a write there is nothing that may have happened: unknown is tried again.
[[nodiscard]] Carried carried(const outbox::Outcome& outcome, bool write);
[[nodiscard]] Carried carried(const outbox::Verdict& verdict);

}  // namespace tools
