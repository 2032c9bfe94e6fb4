-- Claims due unknown operations for one prober each; the claim moves the epoch and lasts as long as
-- the probe may. $1 worker uuid, $2 margin ms, per lane: $3 tool, $4 limit, $5 time-out ms, $6
-- whether its probes are attempts (resend): those wait while the tool is paused.
-- Indexes: queue_due, then a TID scan; event_operation.
WITH lane AS MATERIALIZED (
    SELECT w.tool, w.lim, w.timeout_ms * interval '1 millisecond' AS timeout
      FROM unnest($3::text[], $4::integer[], $5::bigint[], $6::boolean[])
           AS w (tool, lim, timeout_ms, resend)
     WHERE NOT (w.resend AND EXISTS (
               SELECT FROM outbox.tool t WHERE t.tool = w.tool AND t.paused_at IS NOT NULL))
), claimed AS (
    UPDATE outbox.queue q
       SET lease_epoch = q.lease_epoch + 1,
           leased_by = $1::uuid,
           due_at = now() + l.timeout + $2::bigint * interval '1 millisecond'
      FROM lane l
     WHERE l.tool = q.tool
       AND q.ctid = ANY (ARRAY (
               SELECT due.tid
                 FROM lane w
                CROSS JOIN LATERAL (
                    SELECT r.ctid AS tid
                      FROM outbox.queue r
                     WHERE r.tool = w.tool
                       AND r.status IN ('scheduled', 'attempting', 'unknown')
                       AND r.status = 'unknown'
                       AND r.due_at <= now()
                     ORDER BY r.due_at
                     LIMIT w.lim
                       FOR UPDATE SKIP LOCKED) due))
    RETURNING q.seq, q.expires_at, q.lease_epoch, q.attempt_epoch, q.attempts, q.request_hash, q.deadline_at,
              q.started_at, q.unknown_since, q.probes, q.absent_count, q.last_absent_at, q.asked,
              q.attention IS NOT NULL AS flagged
)
SELECT t.seq, o.operation_id, o.tool, o.arguments::text AS arguments, o.run_id, o.max_attempts,
       o.traceparent, o.priority, t.lease_epoch, t.attempt_epoch, t.attempts, t.request_hash,
       t.probes, t.absent_count, t.asked, t.flagged,
       t.attempts > 1 AND (SELECT true FROM outbox.event e
                            WHERE e.operation_id = o.operation_id
                              AND e.kind = 'probe' AND e.detail ? 'believed'
                            LIMIT 1) IS TRUE AS absent_believed,
       CASE WHEN t.expires_at IS NOT NULL  -- the queue's: cleared by a retry; least() passes over nulls
            THEN (extract(epoch FROM least(t.expires_at, '9999-12-31Z')) * 1000000)::bigint
       END AS expires_at,
       (extract(epoch FROM o.created_at) * 1000000)::bigint AS created_at,
       (extract(epoch FROM now()) * 1000000)::bigint AS probe_started_at,
       (extract(epoch FROM t.deadline_at) * 1000000)::bigint AS deadline_at,
       (extract(epoch FROM t.started_at) * 1000000)::bigint AS first_attempt_at,
       (extract(epoch FROM t.unknown_since) * 1000000)::bigint AS unknown_since,
       (extract(epoch FROM t.last_absent_at) * 1000000)::bigint AS last_absent_at,
       o.compensates,
       CASE WHEN o.compensates IS NOT NULL
            THEN (SELECT p.arguments::text FROM outbox.operation p
                   WHERE p.operation_id = o.compensates AND p.pruned_at IS NULL)
       END AS original_arguments,
       CASE WHEN o.compensates IS NOT NULL
            THEN (SELECT c.result::text FROM outbox.operation p
                    JOIN outbox.outcome c ON c.seq = p.seq
                   WHERE p.operation_id = o.compensates)
       END AS original_result
  FROM claimed t
  JOIN outbox.operation o ON o.seq = t.seq
 ORDER BY t.seq
