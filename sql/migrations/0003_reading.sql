-- What people and planners see: one row per operation, whatever table its state lives in.
CREATE INDEX operation_compensates ON outbox.operation (compensates) WHERE compensates IS NOT NULL;

CREATE TYPE outbox.receipt AS (
    operation_id   text,
    status         text,
    replayed       boolean,
    result         jsonb,
    error          jsonb,
    message        text,
    created_at     timestamptz,
    compensated_by text,
    result_expired boolean
);
COMMENT ON TYPE outbox.receipt IS 'What enqueue answers: exactly one row, for a new operation and for a known one';
COMMENT ON COLUMN outbox.receipt.status IS 'pending, scheduled, attempting, unknown, succeeded, failed, cancelled';
COMMENT ON COLUMN outbox.receipt.replayed IS 'true: it was recorded before, and nothing is executed; null from outbox.get';
COMMENT ON COLUMN outbox.receipt.result IS 'What the tool answered, when succeeded';
COMMENT ON COLUMN outbox.receipt.error IS 'Why it failed, {"code", "message"}; failed means no effect';
COMMENT ON COLUMN outbox.receipt.message IS 'One sentence or two for a model';
COMMENT ON COLUMN outbox.receipt.compensated_by IS 'The operation that undoes this one';
COMMENT ON COLUMN outbox.receipt.result_expired IS 'The result was pruned; the operation still replays';

-- The sentence for a model. derived: the id came from the run, so "in this run" is true.
CREATE FUNCTION outbox.status_message(
    status text, replayed boolean, derived boolean, error jsonb, attention text,
    compensated_by text, compensation_status text, result_expired boolean) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE
        WHEN compensated_by IS NOT NULL AND compensation_status = 'succeeded' THEN
            format('This action was performed and then undone by the compensation "%s".', compensated_by)
        WHEN compensated_by IS NOT NULL THEN
            format('This action is being undone by the compensation "%s" (%s).',
                   compensated_by, compensation_status)
        WHEN status = 'succeeded' THEN
            CASE WHEN NOT coalesce(replayed, false) THEN 'This action was performed.'
                 ELSE 'This action was already performed'
                      || CASE WHEN derived THEN ' in this run' ELSE ' under this operation id' END
                      || CASE WHEN result_expired THEN '; its result is no longer kept.'
                              ELSE '; returning the earlier result.' END END
        WHEN status = 'failed' THEN
            format('The previous attempt of this action failed and had no effect (%s%s).',
                   coalesce(error ->> 'code', 'failed'), coalesce(': ' || (error ->> 'message'), ''))
        WHEN status = 'cancelled' THEN
            'This action was cancelled before it was carried out; it had no effect.'
        WHEN status = 'unknown' AND attention IS NOT NULL THEN
            'This action is in progress: it may have happened already, and a person has been asked. '
            || 'Do not send it again, and do not report failure.'
        WHEN status = 'unknown' THEN
            'This action is in progress: it may have happened already, and we are asking the other side. '
            || 'Do not send it again, and do not report failure.'
        WHEN status = 'attempting' THEN
            'This action is in progress: it is being carried out at this moment. '
            || 'Do not send it again, and do not assume failure.'
        WHEN status = 'scheduled' THEN
            'This action is in progress: it is recorded and waits for its time. '
            || 'Do not send it again, and do not assume failure.'
        ELSE
            'This action is in progress: it is recorded and waits to be carried out. '
            || 'Do not send it again, and do not assume failure.'
        END
        || CASE WHEN replayed THEN ' Nothing was executed again.' ELSE '' END
$$;
COMMENT ON FUNCTION outbox.status_message(text, boolean, boolean, jsonb, text, text, text, boolean)
    IS 'What a model reads about an operation, one wording per status';

CREATE VIEW outbox.operations AS
SELECT o.operation_id,
       s.status,
       NULL::boolean AS replayed,
       e.result,
       e.error,
       outbox.status_message(s.status, NULL, o.run_id IS NOT NULL, e.error,
           coalesce(e.attention, q.attention), c.operation_id, c.status,
           coalesce(e.result_expired, false)) AS message,
       o.created_at,
       c.operation_id AS compensated_by,
       coalesce(e.result_expired, false) AS result_expired,
       o.tool,
       o.run_id,
       coalesce(e.attempts, q.attempts) AS attempts,
       CASE WHEN e.seq IS NULL THEN q.attempt_epoch ELSE e.attempt_epoch END AS attempt_epoch,
       CASE WHEN e.seq IS NULL THEN q.started_at ELSE e.started_at END AS started_at,
       e.finished_at,
       o.compensates,
       CASE WHEN e.seq IS NULL THEN q.attention ELSE e.attention END AS attention,
       o.seq,
       o.priority,
       q.due_at,
       q.leased_by,
       CASE WHEN e.seq IS NULL THEN q.started_at ELSE e.started_at END
           - greatest(o.created_at, o.run_at) AS waited,
       e.finished_at - e.started_at AS took,
       coalesce(e.attention, q.attention) IS NOT NULL AS needs_attention,
       c.status AS compensation_status,
       q.error AS last_error,
       q.unknown_since,
       q.deadline_at,
       o.labels,
       o.pruned_at
  FROM outbox.operation o
  LEFT JOIN outbox.queue q ON q.seq = o.seq
  LEFT JOIN outbox.outcome e ON e.seq = o.seq
 CROSS JOIN LATERAL (SELECT coalesce(e.outcome, q.status) AS status) s
  LEFT JOIN LATERAL (
       -- The compensation that counts: a finished one before one under way, failed ones never.
       SELECT u.operation_id, coalesce(ue.outcome, uq.status) AS status
         FROM outbox.operation u
         LEFT JOIN outbox.queue uq ON uq.seq = u.seq
         LEFT JOIN outbox.outcome ue ON ue.seq = u.seq
        WHERE u.compensates = o.operation_id
          AND (ue.outcome IS NULL OR ue.outcome = 'succeeded')
        ORDER BY ue.outcome NULLS LAST, u.seq
        LIMIT 1) c ON true;

COMMENT ON VIEW outbox.operations IS 'Every operation with its state; the truth for people and planners';
COMMENT ON COLUMN outbox.operations.operation_id IS 'Identity of the operation, for ever';
COMMENT ON COLUMN outbox.operations.status IS 'pending, scheduled, attempting, unknown; final: succeeded, failed (no effect), cancelled';
COMMENT ON COLUMN outbox.operations.replayed IS 'Always null here: only an enqueue can be a replay';
COMMENT ON COLUMN outbox.operations.result IS 'What the tool answered, when succeeded';
COMMENT ON COLUMN outbox.operations.error IS 'Why it failed, {"code", "message"}';
COMMENT ON COLUMN outbox.operations.message IS 'The state in a sentence for a model';
COMMENT ON COLUMN outbox.operations.created_at IS 'Start of the planner''s transaction';
COMMENT ON COLUMN outbox.operations.compensated_by IS 'The operation that undoes this one';
COMMENT ON COLUMN outbox.operations.result_expired IS 'The result was pruned; the operation still replays';
COMMENT ON COLUMN outbox.operations.tool IS 'Name of the tool';
COMMENT ON COLUMN outbox.operations.run_id IS 'The planner''s run';
COMMENT ON COLUMN outbox.operations.attempts IS 'Attempts made; what was not sent does not count';
COMMENT ON COLUMN outbox.operations.attempt_epoch IS 'Identifies the last attempt; outbox.resolve asks for it';
COMMENT ON COLUMN outbox.operations.started_at IS 'Start of the first attempt';
COMMENT ON COLUMN outbox.operations.finished_at IS 'When the outcome was recorded';
COMMENT ON COLUMN outbox.operations.compensates IS 'The operation this one undoes';
COMMENT ON COLUMN outbox.operations.attention IS 'Why a person must look: manual, conflict, hold, give_up, provider, late_effect, duplicate_effect';
COMMENT ON COLUMN outbox.operations.seq IS 'Order of insertion';
COMMENT ON COLUMN outbox.operations.priority IS 'Smaller first';
COMMENT ON COLUMN outbox.operations.due_at IS 'When somebody looks at it next; infinity: only a person can help';
COMMENT ON COLUMN outbox.operations.leased_by IS 'The daemon that attempts or probes it';
COMMENT ON COLUMN outbox.operations.waited IS 'From being due first to its first attempt';
COMMENT ON COLUMN outbox.operations.took IS 'From its first attempt to its end';
COMMENT ON COLUMN outbox.operations.needs_attention IS 'A person must look';
COMMENT ON COLUMN outbox.operations.compensation_status IS 'Status of compensated_by';
COMMENT ON COLUMN outbox.operations.last_error IS 'How the last attempt of an open operation ended';
COMMENT ON COLUMN outbox.operations.unknown_since IS 'Since when it is unknown';
COMMENT ON COLUMN outbox.operations.deadline_at IS 'Hard end of the last attempt of an open operation';
COMMENT ON COLUMN outbox.operations.labels IS 'The planner''s labels';
COMMENT ON COLUMN outbox.operations.pruned_at IS 'When the arguments were pruned';

CREATE VIEW outbox.attention AS
SELECT o.operation_id, o.tool, a.status, a.attention,
       CASE a.attention
           WHEN 'manual' THEN 'No look-up is configured for this tool: only a person can tell whether it happened.'
           WHEN 'conflict' THEN 'The look-up found something else than was asked for, or more than one match.'
           WHEN 'hold' THEN 'It did not happen; the tool is configured to wait for a person before trying again.'
           WHEN 'give_up' THEN 'The look-up gave no clear answer for too long.'
           WHEN 'provider' THEN 'The other side says that a person must look.'
           WHEN 'late_effect' THEN 'An answer came late: it did happen, although it was recorded without effect.'
           WHEN 'duplicate_effect' THEN 'It happened twice; both results are in the events.'
       END AS why,
       a.error, a.attempts, a.attempt_epoch, a.since, o.run_id, o.created_at
  FROM (SELECT q.seq, q.status, q.attention, q.error, q.attempts, q.attempt_epoch,
               q.unknown_since AS since
          FROM outbox.queue q WHERE q.attention IS NOT NULL
         UNION ALL
        SELECT e.seq, e.outcome, e.attention, e.error, e.attempts, e.attempt_epoch, e.finished_at
          FROM outbox.outcome e WHERE e.attention IS NOT NULL) a
  JOIN outbox.operation o ON o.seq = a.seq;

COMMENT ON VIEW outbox.attention IS 'What waits for a person, and why';
COMMENT ON COLUMN outbox.attention.operation_id IS 'Identity of the operation';
COMMENT ON COLUMN outbox.attention.tool IS 'Name of the tool';
COMMENT ON COLUMN outbox.attention.status IS 'unknown: outbox.resolve settles it; final: outbox.acknowledge clears the flag';
COMMENT ON COLUMN outbox.attention.attention IS 'The reason, from a closed set';
COMMENT ON COLUMN outbox.attention.why IS 'The reason in a sentence';
COMMENT ON COLUMN outbox.attention.error IS 'How the last attempt or probe ended';
COMMENT ON COLUMN outbox.attention.attempts IS 'Attempts made';
COMMENT ON COLUMN outbox.attention.attempt_epoch IS 'Pass it to outbox.resolve as expected_epoch';
COMMENT ON COLUMN outbox.attention.since IS 'Unknown since, or finished at';
COMMENT ON COLUMN outbox.attention.run_id IS 'The planner''s run';
COMMENT ON COLUMN outbox.attention.created_at IS 'Start of the planner''s transaction';

-- From version 18 on SQL functions keep their plans: one made on empty tables must not scan later.
CREATE FUNCTION outbox.get(operation_id text) RETURNS TABLE (
    operation_id text, status text, replayed boolean, result jsonb, error jsonb, message text,
    created_at timestamptz, compensated_by text, result_expired boolean, tool text, run_id text,
    attempts integer, attempt_epoch integer, started_at timestamptz, finished_at timestamptz,
    compensates text, attention text)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, outbox, pg_temp SET plan_cache_mode = force_custom_plan AS $$
    SELECT v.operation_id, v.status, v.replayed, v.result, v.error, v.message, v.created_at,
           v.compensated_by, v.result_expired, v.tool, v.run_id, v.attempts, v.attempt_epoch,
           v.started_at, v.finished_at, v.compensates, v.attention
      FROM outbox.operations v WHERE v.operation_id = $1
$$;
COMMENT ON FUNCTION outbox.get(text) IS 'One operation as it is now; no row when the id is unknown';
