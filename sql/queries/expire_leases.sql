-- Declares attempts ended whose lease ran out, and at once those of workers without a heartbeat
-- for 15 s: a write becomes unknown and is probed now, a read is tried again. Every tool of the
-- catalogue, served here or not. $1 rows per tool and call, $2 also judge workers (the caller's own
-- connection was healthy for 15 s). Index: queue_due, then a TID scan.
WITH stale AS MATERIALIZED (
    SELECT array_agg(w.worker) AS workers
      FROM outbox.worker w
     WHERE $2::boolean AND w.stopped_at IS NULL
       AND w.heartbeat_at < now() - interval '15 seconds'
    HAVING count(*) > 0
), expired AS (
    UPDATE outbox.queue q
       SET status = CASE t.effect WHEN 'read' THEN 'scheduled' ELSE 'unknown' END,
           lease_epoch = q.lease_epoch + 1,
           due_at = now(),
           ambiguous = q.ambiguous OR t.effect <> 'read',
           accepted = false,
           unknown_since = CASE WHEN t.effect <> 'read' THEN now() END,
           probes = 0, absent_count = 0, last_absent_at = NULL, asked = false,
           error = jsonb_build_object('code', 'lease_expired', 'message',
                       'Nobody reported how the attempt ended; its worker may have died.')
      FROM outbox.tool t
     WHERE t.tool = q.tool
       AND q.ctid = ANY (ARRAY (
               SELECT due.tid
                 FROM outbox.tool w
                CROSS JOIN LATERAL (
                    SELECT r.ctid AS tid
                      FROM outbox.queue r
                     WHERE r.tool = w.tool
                       AND r.status IN ('scheduled', 'attempting', 'unknown')
                       AND r.status = 'attempting'
                       AND r.due_at <= now()
                     ORDER BY r.due_at
                     LIMIT $1::integer
                       FOR UPDATE SKIP LOCKED) due
               UNION ALL
               SELECT due.tid
                 FROM stale s
                CROSS JOIN outbox.tool w
                CROSS JOIN LATERAL (
                    SELECT r.ctid AS tid
                      FROM outbox.queue r
                     WHERE r.tool = w.tool
                       AND r.status IN ('scheduled', 'attempting', 'unknown')
                       AND r.status = 'attempting'
                       AND r.leased_by = ANY (s.workers)
                     LIMIT $1::integer
                       FOR UPDATE SKIP LOCKED) due))
    RETURNING q.seq, q.tool, q.lease_epoch, q.leased_by, q.status, t.effect
), told AS (
    INSERT INTO outbox.event (operation_id, kind, epoch, worker, detail)
    SELECT o.operation_id, 'lease_expired', e.lease_epoch, e.leased_by,
           jsonb_build_object('to', e.status)
      FROM expired e JOIN outbox.operation o ON o.seq = e.seq
), judged AS (
    -- Nothing of theirs is left when the page was not full: they are not looked at again unless
    -- they come back with a heartbeat, which clears stopped_at.
    UPDATE outbox.worker w SET stopped_at = now()
      FROM stale s
     WHERE w.worker = ANY (s.workers)
       AND w.heartbeat_at < now() - interval '15 seconds'
       AND NOT EXISTS (SELECT FROM expired e WHERE e.leased_by = w.worker)
)
SELECT e.tool, e.status, e.effect, count(*) AS expired FROM expired e GROUP BY 1, 2, 3
