-- Ends operations: takes the queue row, files the outcome and the events in one statement.
-- Fenced by lease_epoch alone: with a status beside it the planner believes nothing is attempting
-- and walks the due index (four times dearer).
-- One element per operation: $1 seq, $2 epoch, $3 outcome, $4 result, $5 error, $6 attempts delta,
-- $7 attention, $8 events, of which the last four may be empty when all would be null or 0. Events
-- are JSON, [{"operation_id", "kind", "detail"}], so that none has to be looked for.
-- Where a fenced attempt's late answer already proved an effect (attention late_effect), this
-- attempt can only end succeeded; an effect of its own with another result is a duplicate.
-- Returns the seqs that were written, and whether one was found to be a second effect.
-- Index: queue_pkey. The end is worked out where the row goes: each column more to hand on costs.
WITH gone AS (
    DELETE FROM outbox.queue q
     USING unnest($1::bigint[], $2::integer[], $3::text[], $4::jsonb[], $5::jsonb[], $6::integer[],
                  $7::text[], $8::jsonb[])
           AS d (seq, epoch, outcome, result, error, attempts_delta, attention, events)
     WHERE q.seq = d.seq AND q.lease_epoch = d.epoch
    RETURNING q.seq, q.lease_epoch + 1 AS lease_epoch, q.attempt_epoch, q.started_at, q.leased_by,
              q.request_hash, q.ambiguous, q.attempts + coalesce(d.attempts_delta, 0) AS attempts,
              CASE WHEN q.attention = 'late_effect' THEN 'succeeded' ELSE d.outcome END AS outcome,
              CASE WHEN q.attention = 'late_effect' AND d.outcome <> 'succeeded'
                   THEN q.result ELSE d.result END AS result,
              CASE WHEN q.attention = 'late_effect' THEN NULL ELSE d.error END AS error,
              CASE WHEN q.attention IS DISTINCT FROM 'late_effect' THEN d.attention
                   WHEN d.outcome = 'succeeded' AND q.status = 'attempting'
                        AND d.result IS DISTINCT FROM q.result THEN 'duplicate_effect'
                   ELSE 'late_effect' END AS attention,
              d.events
), told AS (
    INSERT INTO outbox.event (operation_id, kind, epoch, worker, detail)
    SELECT e.operation_id, e.kind, g.lease_epoch, g.leased_by, coalesce(e.detail, 'null')
      FROM gone g
     CROSS JOIN LATERAL jsonb_to_recordset(g.events)
           AS e (operation_id text, kind text, detail jsonb)
     WHERE $8::jsonb[] <> '{}' AND g.events IS NOT NULL
)
INSERT INTO outbox.outcome (seq, outcome, attempts, lease_epoch, attempt_epoch, result, error,
                            started_at, request_hash, ambiguous, attention)
SELECT g.seq, g.outcome, g.attempts, g.lease_epoch, g.attempt_epoch, g.result, g.error,
       g.started_at, g.request_hash, g.ambiguous, g.attention
  FROM gone g
RETURNING seq, attention IS NOT DISTINCT FROM 'duplicate_effect' AS duplicate
