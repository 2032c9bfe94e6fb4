-- scheduled → pending for what is due, over every tool of the catalogue, served here or not.
-- $1 rows per tool and call. Index: queue_due, then a TID scan. due_at is kept: it says since when
-- the operation could have run. A compensation that waits for its original is not promoted, whatever
-- its due_at: settle_compensations does that.
WITH promoted AS (
    UPDATE outbox.queue q
       SET status = 'pending', lease_epoch = q.lease_epoch + 1
     WHERE q.ctid = ANY (ARRAY (
               SELECT due.tid
                 FROM outbox.tool t
                CROSS JOIN LATERAL (
                    SELECT r.ctid AS tid
                      FROM outbox.queue r
                     WHERE r.tool = t.tool
                       AND r.status IN ('scheduled', 'attempting', 'unknown')
                       AND r.status = 'scheduled'
                       AND r.due_at <= now()
                       AND r.waits_for IS NULL
                       AND (r.expires_at IS NULL OR r.expires_at > now())
                     ORDER BY r.due_at
                     LIMIT $1::integer
                       FOR UPDATE SKIP LOCKED) due))
    RETURNING q.tool
)
SELECT coalesce(sum(n), 0)::bigint AS promoted, coalesce(max(n), 0) >= $1::integer AS more
  FROM (SELECT count(*) AS n FROM promoted GROUP BY tool) per_tool
