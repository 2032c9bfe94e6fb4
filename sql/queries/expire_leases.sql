-- Declares attempts ended whose lease ran out, and at once those of workers without a heartbeat
-- for 15 s: what may have had an effect becomes unknown and is probed now; what cannot (a read, an
-- effect in the transaction of its record) is tried again. What was sent decides, not what the tool
-- is now (outbox.request). Every tool of the catalogue, served here or not. $1 rows per tool and
-- call, $2 also judge workers (the caller's own connection was healthy for 15 s).
-- Indexes: queue_due, then a TID scan; request_pkey.
WITH stale AS MATERIALIZED (
    SELECT array_agg(w.worker) AS workers
      FROM outbox.worker w
     WHERE $2::boolean AND w.stopped_at IS NULL
       AND w.heartbeat_at < now() - interval '15 seconds'
    HAVING count(*) > 0
), expired AS (
    UPDATE outbox.queue q
       SET (status, ambiguous, unknown_since) = (
               SELECT CASE WHEN d.doubt THEN 'unknown' ELSE 'scheduled' END,
                      q.ambiguous OR d.doubt,
                      CASE WHEN d.doubt THEN now() END
                 FROM (SELECT coalesce((SELECT r.leaves_doubt FROM outbox.request r
                                         WHERE r.tool = q.tool
                                           AND r.request_hash = q.request_hash), true)) d (doubt)),
           lease_epoch = q.lease_epoch + 1,
           due_at = now(),
           accepted = false,
           probes = 0, absent_count = 0, last_absent_at = NULL, asked = false,
           error = jsonb_build_object('code', 'lease_expired', 'message',
                       'Nobody reported how the attempt ended; its worker may have died.')
     WHERE q.ctid = ANY (ARRAY (
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
    RETURNING q.seq, q.tool, q.lease_epoch, q.leased_by, q.status
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
SELECT e.tool, e.status, count(*) AS expired FROM expired e GROUP BY 1, 2
