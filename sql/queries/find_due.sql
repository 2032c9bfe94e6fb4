-- Whether maintenance has anything to do: one look while nothing is due, instead of the four statements.
-- Says yes a little too often (an unknown operation that waits for its prober is due), never too seldom.
-- $1 also judge workers. Indexes: queue_due, queue_expires, queue_waits, by the order that is asked for:
-- without it a queue that was never analysed is read as a whole, twice a second.
SELECT EXISTS (
           SELECT FROM outbox.tool t
            CROSS JOIN LATERAL (
                SELECT FROM outbox.queue r
                 WHERE r.tool = t.tool
                   AND r.status IN ('scheduled', 'attempting', 'unknown')
                   AND r.due_at <= now()
                 ORDER BY r.due_at LIMIT 1) d)
       OR (SELECT true FROM outbox.queue r
            WHERE r.expires_at <= now() AND r.expires_at IS NOT NULL
              AND r.status IN ('pending', 'scheduled')
            ORDER BY r.expires_at LIMIT 1) IS TRUE
       OR (SELECT true FROM outbox.queue r
            WHERE r.waits_for IS NOT NULL
            ORDER BY r.waits_for, r.seq LIMIT 1) IS TRUE
       OR ($1::boolean AND EXISTS (
           SELECT FROM outbox.worker w
            WHERE w.stopped_at IS NULL AND w.heartbeat_at < now() - interval '15 seconds')) AS due
