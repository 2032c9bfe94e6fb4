-- The open operations per tool and status: how many, the age of the oldest, and whether a daemon
-- that is alive runs the tool. A scan of the queue, which is as small as the backlog; run every few
-- seconds, never in a planner's transaction.
SELECT b.tool, b.status, b.count, b.served,
       coalesce(greatest(extract(epoch FROM now() - b.since), 0), 0)::float8 AS oldest_seconds
  FROM outbox.backlog b
