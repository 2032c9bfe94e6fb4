#include "tests/support/operation_states.hpp"

namespace tests {

namespace {

void exactly_one(const Rows& rows, const std::string& what) {
    if (rows.size() != 1) {
        throw std::logic_error("moved " + std::to_string(rows.size()) + " rows: " + what);
    }
}

}  // namespace

void begin_attempt(Session& session, const std::string& id) {
    exactly_one(
        session.query(
            "UPDATE outbox.queue q SET status = 'attempting', lease_epoch = lease_epoch + 1, "
            "attempt_epoch = lease_epoch + 1, attempts = attempts + 1, "
            "leased_by = gen_random_uuid(), attempted_at = now(), "
            "started_at = coalesce(started_at, now()), deadline_at = now() + interval '20 s', "
            "due_at = now() + interval '30 s', request_hash = 7 FROM outbox.operation o "
            "WHERE o.seq = q.seq AND o.operation_id = $1 AND q.status = 'pending' RETURNING 1",
            {id}
        ),
        id + " → attempting"
    );
}

void lose_attempt(Session& session, const std::string& id) {
    exactly_one(
        session.query(
            "UPDATE outbox.queue q SET status = 'unknown', lease_epoch = lease_epoch + 1, "
            "ambiguous = true, unknown_since = now(), due_at = now(), leased_by = NULL "
            "FROM outbox.operation o "
            "WHERE o.seq = q.seq AND o.operation_id = $1 AND q.status = 'attempting' RETURNING 1",
            {id}
        ),
        id + " → unknown"
    );
}

void end_operation(
    Session& session,
    const std::string& id,
    const std::string& outcome,
    const Value& result,
    const Value& error
) {
    exactly_one(
        session.query(
            "WITH gone AS (DELETE FROM outbox.queue q USING outbox.operation o "
            "WHERE o.seq = q.seq AND o.operation_id = $1 RETURNING q.*) "
            "INSERT INTO outbox.outcome (seq, outcome, attempts, lease_epoch, attempt_epoch, "
            "result, error, started_at, request_hash, ambiguous) "
            "SELECT seq, $2, attempts, lease_epoch + 1, attempt_epoch, $3::jsonb, $4::jsonb, "
            "started_at, request_hash, ambiguous FROM gone RETURNING 1",
            {id, outcome, result, error}
        ),
        id + " → " + outcome
    );
}

void bring_to(Session& session, const std::string& id, const std::string& status) {
    if (status == "pending") {
        return;
    }
    if (status == "scheduled") {
        exactly_one(
            session.query(
                "UPDATE outbox.queue q SET status = 'scheduled', "
                "due_at = now() + interval '1 h', lease_epoch = lease_epoch + 1 "
                "FROM outbox.operation o WHERE o.seq = q.seq "
                "AND o.operation_id = $1 RETURNING 1",
                {id}
            ),
            id + " → scheduled"
        );
        return;
    }
    if (status == "cancelled") {
        end_operation(session, id, "cancelled");
        return;
    }
    begin_attempt(session, id);
    if (status == "unknown") {
        lose_attempt(session, id);
    } else if (status == "succeeded") {
        end_operation(session, id, "succeeded", R"({"id": "T-1"})");
    } else if (status == "failed") {
        end_operation(
            session, id, "failed", {}, R"({"code": "validation", "message": "title is too long"})"
        );
    }
}

void publish_tool(Session& session, const std::string& name, const std::string& dedup_fields) {
    session.query(
        "INSERT INTO outbox.tool (tool, effect, revision, dedup_fields) "
        "VALUES ($1, 'write', 'r1', $2::text[])",
        {name, dedup_fields}
    );
}

}  // namespace tests
