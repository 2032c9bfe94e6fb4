-- Ends operations: takes the queue row, files the outcome and the events in one statement.
-- Fenced by lease_epoch alone: with a status beside it the planner believes nothing is attempting
-- and walks the due index (four times dearer).
-- One element per operation: $1 seq, $2 epoch, $3 outcome, $4 result, $5 error, $6 attempts delta,
-- $7 attention; one per event: $8 seq, $9 operation_id, $10 kind, $11 detail.
-- Where a fenced attempt's late answer already proved an effect (attention late_effect), this
-- attempt can only end succeeded; an effect of its own with another result is a duplicate.
-- Returns the seqs that were written, and whether one was found to be a second effect. Index: queue_pkey.
WITH gone AS (
    DELETE FROM outbox.queue q
     USING unnest($1::bigint[], $2::integer[], $3::text[], $4::jsonb[], $5::jsonb[], $6::integer[],
                  $7::text[])
           AS d (seq, epoch, outcome, result, error, attempts_delta, attention)
     WHERE q.seq = d.seq AND q.lease_epoch = d.epoch
    RETURNING q.seq, q.lease_epoch + 1 AS lease_epoch, q.attempt_epoch, q.started_at, q.leased_by,
              q.request_hash, q.ambiguous, q.attempts + d.attempts_delta AS attempts, d.outcome,
              d.result, d.error, d.attention, q.attention = 'late_effect' AS late,
              q.status AS was, q.result AS late_result
), ended AS (
    INSERT INTO outbox.outcome (seq, outcome, attempts, lease_epoch, attempt_epoch, result, error,
                                started_at, request_hash, ambiguous, attention)
    SELECT g.seq,
           CASE WHEN g.late THEN 'succeeded' ELSE g.outcome END,
           g.attempts, g.lease_epoch, g.attempt_epoch,
           CASE WHEN g.late AND g.outcome <> 'succeeded' THEN g.late_result ELSE g.result END,
           CASE WHEN g.late THEN NULL ELSE g.error END,
           g.started_at, g.request_hash, g.ambiguous,
           CASE WHEN g.late IS NOT TRUE THEN g.attention
                WHEN g.outcome = 'succeeded' AND g.was = 'attempting'
                     AND g.result IS DISTINCT FROM g.late_result THEN 'duplicate_effect'
                ELSE 'late_effect' END
      FROM gone g
    RETURNING seq, attention
), told AS (
    INSERT INTO outbox.event (operation_id, kind, epoch, worker, detail)
    SELECT e.operation_id, e.kind, g.lease_epoch, g.leased_by, e.detail
      FROM unnest($8::bigint[], $9::text[], $10::text[], $11::jsonb[])
           AS e (seq, operation_id, kind, detail)
      JOIN gone g ON g.seq = e.seq
)
SELECT seq, attention IS NOT DISTINCT FROM 'duplicate_effect' AS duplicate FROM ended
