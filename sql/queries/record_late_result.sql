-- Files the answer of a fenced attempt as evidence and lets it count (contract: Evidence).
-- $1 seq, $2 operation_id, $3 epoch of that attempt, $4 effect | no_effect | none, $5 result,
-- $6 error, $7 status it would have set, $8 due in ms, $9 attempts delta, $10 worker.
-- An effect settles what is open (attention late_effect where it had been declared without effect),
-- marks an attempt that is in flight, overturns failed and cancelled, and is compared with an
-- earlier success. A second one beside an attempt in flight ends the operation at once: nothing
-- that attempt may say could make it one effect again. A read has none: its answer ends what is
-- open, and is otherwise just stored. What was sent decides, not what the tool is now
-- (outbox.request); what nobody recorded counts as a write.
-- "No effect" settles unknown only when that attempt is the only unresolved one.
-- Returns one row: settled · flagged · duplicate · stored, and whether the operation ended, or ended
-- another way now; no row when it moved meanwhile: then the statement is run again. Indexes: queue_pkey, outcome_pkey, operation_pkey, event_operation.
WITH open AS MATERIALIZED (
    SELECT q.* FROM outbox.queue q WHERE q.seq = $1::bigint FOR UPDATE
), closed AS MATERIALIZED (
    SELECT c.* FROM outbox.outcome c WHERE c.seq = $1::bigint FOR UPDATE
), plan AS MATERIALIZED (
    SELECT coalesce(q.lease_epoch, c.lease_epoch) AS epoch,
           CASE WHEN $4 = 'effect' THEN
                    CASE WHEN NOT d.doubt AND (q.seq IS NULL OR q.status = 'attempting')
                             THEN 'store'
                         WHEN q.status = 'attempting' AND q.attention IS DISTINCT FROM 'late_effect'
                             THEN 'mark'
                         WHEN q.status = 'attempting' AND q.result IS NOT DISTINCT FROM $5::jsonb
                             THEN 'store'
                         WHEN q.seq IS NOT NULL THEN 'settle'
                         WHEN c.outcome <> 'succeeded' THEN 'overturn'
                         WHEN c.result IS DISTINCT FROM $5::jsonb AND NOT c.result_expired
                             THEN 'duplicate'
                         ELSE 'store' END
                WHEN $4 = 'no_effect' AND q.status = 'unknown' AND q.attempt_epoch = $3::integer
                     AND NOT EXISTS (
                         SELECT FROM outbox.event e
                          WHERE e.operation_id = $2 AND e.epoch <= $3::integer
                            AND e.kind IN ('unknown', 'lease_expired', 'timeline', 'probe')
                            AND NOT e.detail ? 'handle')  -- what it can be asked by: no doubt
                    THEN CASE WHEN $7 = 'failed' THEN 'fail' ELSE 'again' END
                ELSE 'store' END AS action,
           -- A row that an earlier late answer proved already, in doubt again: its flag stays, and
           -- another result is another effect.
           CASE WHEN q.attention = 'late_effect' AND q.result IS DISTINCT FROM $5::jsonb
                THEN 'duplicate_effect'
                WHEN q.attention = 'late_effect' THEN 'late_effect'
                WHEN q.status IN ('pending', 'scheduled') AND d.doubt
                THEN 'late_effect' END AS attention
      FROM (SELECT) one
      LEFT JOIN open q ON true
      LEFT JOIN closed c ON true
      LEFT JOIN outbox.operation o ON o.seq = $1::bigint
     CROSS JOIN LATERAL (
           SELECT coalesce((SELECT r.leaves_doubt FROM outbox.request r
                             WHERE r.tool = o.tool
                               AND r.request_hash = coalesce(q.request_hash, c.request_hash)),
                           true)) d (doubt)
     WHERE q.seq IS NOT NULL OR c.seq IS NOT NULL
), marked AS (
    UPDATE outbox.queue q SET attention = 'late_effect', result = $5::jsonb, ambiguous = true
      FROM plan p
     WHERE q.seq = $1::bigint AND q.lease_epoch = p.epoch AND p.action = 'mark'
    RETURNING q.lease_epoch
), moved AS (
    UPDATE outbox.queue q
       SET status = $7, lease_epoch = q.lease_epoch + 1,
           due_at = CASE WHEN $7 = 'scheduled'
                         THEN now() + coalesce($8::bigint, 0) * interval '1 millisecond' END,
           attempts = greatest(q.attempts + $9::integer, 0), ambiguous = false, accepted = false,
           unknown_since = NULL, probes = 0, absent_count = 0, last_absent_at = NULL,
           attention = NULL, asked = false, leased_by = NULL, error = $6::jsonb
      FROM plan p
     WHERE q.seq = $1::bigint AND q.lease_epoch = p.epoch AND p.action = 'again'
    RETURNING q.lease_epoch
), gone AS (
    DELETE FROM outbox.queue q USING plan p
     WHERE q.seq = $1::bigint AND q.lease_epoch = p.epoch AND p.action IN ('settle', 'fail')
    RETURNING q.*, p.action, p.attention AS flag
), ended AS (
    INSERT INTO outbox.outcome (seq, outcome, attempts, lease_epoch, attempt_epoch, result, error,
                                started_at, request_hash, ambiguous, attention)
    SELECT g.seq, CASE g.action WHEN 'settle' THEN 'succeeded' ELSE 'failed' END, g.attempts,
           g.lease_epoch + 1, g.attempt_epoch,
           CASE WHEN g.action = 'settle' AND g.attention = 'late_effect' THEN g.result
                WHEN g.action = 'settle' THEN $5::jsonb END,
           CASE g.action WHEN 'fail' THEN $6::jsonb END,
           g.started_at, g.request_hash, g.ambiguous AND g.action = 'settle', g.flag
      FROM gone g
    RETURNING lease_epoch
), overturned AS (
    UPDATE outbox.outcome c
       SET outcome = CASE p.action WHEN 'overturn' THEN 'succeeded' ELSE c.outcome END,
           result = CASE p.action WHEN 'overturn' THEN $5::jsonb ELSE c.result END,
           error = CASE p.action WHEN 'overturn' THEN NULL ELSE c.error END,
           lease_epoch = c.lease_epoch + 1,
           attention = CASE p.action WHEN 'overturn' THEN 'late_effect' ELSE 'duplicate_effect' END
      FROM plan p
     WHERE c.seq = $1::bigint AND c.lease_epoch = p.epoch
       AND p.action IN ('overturn', 'duplicate')
    RETURNING c.lease_epoch
), written AS (
    SELECT lease_epoch FROM marked UNION ALL SELECT lease_epoch FROM moved
    UNION ALL SELECT lease_epoch FROM ended UNION ALL SELECT lease_epoch FROM overturned
    UNION ALL SELECT epoch FROM plan WHERE action = 'store'
), told AS (
    INSERT INTO outbox.event (operation_id, kind, epoch, worker, detail)
    SELECT $2, 'late_result', w.lease_epoch, $10::uuid,
           jsonb_strip_nulls(jsonb_build_object(
               'attempt_epoch', $3::integer, 'evidence', $4, 'did', p.action,
               'error', $6::jsonb))
           || CASE WHEN $4 = 'effect' THEN jsonb_build_object('result', $5::jsonb) ELSE '{}' END
      FROM written w CROSS JOIN plan p
)
SELECT CASE WHEN p.action = 'duplicate'
                 OR p.action = 'settle' AND p.attention = 'duplicate_effect' THEN 'duplicate'
            WHEN p.action IN ('overturn', 'mark') OR p.attention IS NOT NULL
                 AND p.action = 'settle' THEN 'flagged'
            WHEN p.action IN ('settle', 'again', 'fail') THEN 'settled'
            ELSE 'stored' END AS fate,
       p.action IN ('settle', 'fail', 'overturn') AS ended
  FROM plan p CROSS JOIN written
