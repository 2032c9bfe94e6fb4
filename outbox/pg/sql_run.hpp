#pragma once

#include <optional>
#include <string>

#include "outbox/failpoint.hpp"
#include "outbox/pg/session.hpp"
#include "outbox/sql_database.hpp"

namespace outbox::pg {

// One statement of a tool on one connection, from BEGIN to COMMIT; on the lane's thread. Nothing is
// thrown for what the server did. The call outlives it; failpoints may be null.
[[nodiscard]] SqlEnd run_effect(
    Session& session,
    const SqlCall& call,
    const JudgeRows& judge,
    const OwnAttempt* own,
    Failpoints* failpoints
);
[[nodiscard]] SqlEnd run_look_up(Session& session, const SqlCall& call, Failpoints* failpoints);

// Whether a commit whose acknowledgement was lost was done; empty: the database did not say. The
// row lock waits for the end of the lost transaction, should the server still be at it.
[[nodiscard]] std::optional<bool> was_committed(
    Session& session, const OwnAttempt& own, const Transition& next
);

[[nodiscard]] SqlFailure not_begun(std::string message);

}  // namespace outbox::pg
