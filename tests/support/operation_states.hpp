#pragma once

#include <string>

#include "tests/support/session.hpp"

namespace tests {

// Moves one operation as the daemon would, for tests of what people and planners then see.
void begin_attempt(Session& session, const std::string& id);  // pending → attempting
void lose_attempt(Session& session, const std::string& id);   // attempting → unknown
// Ends it, from any open status; error only for failed.
void end_operation(
    Session& session,
    const std::string& id,
    const std::string& outcome,
    const Value& result = {},
    const Value& error = {}
);
// From pending into the named status, in one call.
void bring_to(Session& session, const std::string& id, const std::string& status);

// A tool of the catalogue, as a daemon publishes it.
void publish_tool(
    Session& session, const std::string& name, const std::string& dedup_fields = "{}"
);

}  // namespace tests
