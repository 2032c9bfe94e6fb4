-- The open operations per tool and status, with the age of the oldest. A scan of the queue, which
-- is as small as the backlog; run every few seconds, never in a planner's transaction.
SELECT s.tool, s.status, s.count,
       greatest(extract(epoch FROM now() - o.created_at), 0)::float8 AS oldest_seconds
  FROM (SELECT tool, status, count(*) AS count, min(seq) AS oldest
          FROM outbox.queue GROUP BY tool, status) s
  JOIN outbox.operation o ON o.seq = s.oldest
