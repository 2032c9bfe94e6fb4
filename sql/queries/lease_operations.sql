-- Takes ready rows of several tools and journals the attempts. One autocommit statement, which
-- sees to its own flush: synchronous_commit of the session, of the role or of a pooler's server
-- connection may be weaker than "on"; the attempt must be on disk before its first byte leaves.
-- $1 worker uuid, $2 lease margin ms, and one element per lane: $3 tool, $4 limit, $5 time-out ms,
-- $6 request_hash, $7 priority and $8 seq of the mark behind which to look.
-- Index: queue_ready, then a TID scan. No outer condition on status: the rows are locked and
-- rechecked, and statistics of an empty table would turn it into a scan of everything pending.
-- request_hash says what is in doubt once this attempt is: "absent" counts only for it. The key is
-- always the first attempt's. So where daemons run different configurations, it becomes this
-- attempt's hash only if that means the same key, and no earlier attempt was ever in doubt;
-- otherwise it is the first one's with its bits inverted, which is no configuration's (key_settings
-- finds the key all the same): then only "found" counts.
-- The rows come in no order. Times are read as double: exact to the microsecond until the year 2100,
-- and a third of the cost of numeric.
WITH lane AS MATERIALIZED (
    SELECT w.tool, w.lim, w.after_priority, w.after_seq, w.request_hash,
           w.timeout_ms * interval '1 millisecond' AS timeout
      FROM unnest($3::text[], $4::integer[], $5::bigint[], $6::bigint[], $7::smallint[],
                  $8::bigint[])
           AS w (tool, lim, timeout_ms, request_hash, after_priority, after_seq)
     WHERE NOT EXISTS (
               SELECT FROM outbox.tool t WHERE t.tool = w.tool AND t.paused_at IS NOT NULL)
), durable AS MATERIALIZED (
    SELECT set_config('synchronous_commit',
               CASE current_setting('synchronous_commit')
                   WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true) AS flush
), term AS MATERIALIZED (
    -- Worked out once per lane instead of once per row.
    SELECT l.tool, l.request_hash, now() + l.timeout AS deadline_at,
           now() + l.timeout + $2::bigint * interval '1 millisecond' AS due_at
      FROM lane l
), taken AS (
    UPDATE outbox.queue q
       SET status = 'attempting',
           lease_epoch = q.lease_epoch + 1,
           attempt_epoch = q.lease_epoch + 1,
           attempts = q.attempts + 1,
           leased_by = $1::uuid,
           attempted_at = now(),
           started_at = coalesce(q.started_at, now()),
           deadline_at = l.deadline_at,
           due_at = l.due_at,
           request_hash = CASE
               WHEN q.request_hash IS NULL OR q.request_hash = l.request_hash THEN l.request_hash
               WHEN NOT q.ambiguous AND EXISTS (
                        SELECT FROM outbox.request was
                          JOIN outbox.request is_now ON is_now.tool = was.tool
                                                    AND is_now.key_settings = was.key_settings
                         WHERE was.tool = q.tool
                           AND was.request_hash IN (q.request_hash, ~q.request_hash)
                           AND is_now.request_hash = l.request_hash)
                   THEN l.request_hash
               WHEN EXISTS (SELECT FROM outbox.request was
                             WHERE was.tool = q.tool AND was.request_hash = q.request_hash)
                   THEN ~q.request_hash
               ELSE q.request_hash END
      FROM term l
     WHERE l.tool = q.tool
       AND q.ctid = ANY (ARRAY (
               SELECT ready.tid
                 FROM lane w
                CROSS JOIN LATERAL (
                    SELECT r.ctid AS tid
                      FROM outbox.queue r
                     WHERE r.tool = w.tool
                       AND r.status = 'pending'
                       AND (r.priority, r.seq) > (w.after_priority, w.after_seq)
                       AND (r.expires_at IS NULL OR r.expires_at > now())
                     ORDER BY r.priority, r.seq
                     LIMIT w.lim
                       FOR UPDATE SKIP LOCKED) ready))
    RETURNING q.seq, q.expires_at, q.priority, q.lease_epoch, q.attempts, q.ambiguous, q.request_hash,
              q.deadline_at, q.started_at
)
SELECT t.seq, o.operation_id, o.tool, o.arguments::text AS arguments, o.run_id, o.max_attempts,
       o.traceparent, t.priority, t.lease_epoch, t.attempts, t.ambiguous, t.request_hash,
       CASE WHEN t.expires_at IS NOT NULL  -- the queue's: cleared by a retry; least() passes over nulls
            THEN (extract(epoch FROM least(t.expires_at, '9999-12-31Z')) * 1000000)::bigint
       END AS expires_at,
       (date_part('epoch', o.created_at) * 1000000)::bigint AS created_at,
       (SELECT (extract(epoch FROM now()) * 1000000)::bigint) AS leased_at,
       (date_part('epoch', t.deadline_at) * 1000000)::bigint AS deadline_at,
       CASE WHEN t.started_at = now() THEN (SELECT (extract(epoch FROM now()) * 1000000)::bigint)
            ELSE (date_part('epoch', t.started_at) * 1000000)::bigint
       END AS first_attempt_at,
       CASE WHEN t.started_at = now()
            THEN (date_part('epoch', greatest(o.created_at, CASE WHEN o.run_at IS NOT NULL
                      THEN least(o.run_at, '9999-12-31Z') END)) * 1000000)::bigint
       END AS eligible_since,
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
  FROM taken t
 CROSS JOIN LATERAL (  -- by key, also in a plan of a time when there was no operation
     SELECT i.* FROM outbox.operation i WHERE i.seq = t.seq LIMIT 1) o
 WHERE (SELECT d.flush FROM durable d) IS NOT NULL
