-- Counts what was enqueued and replayed since the last time, a page of each; returns what this call
-- added per tool, and whether there is more. Indexes: operation_pkey, event_pkey.
SELECT r.tool, sum(r.enqueued)::bigint AS enqueued, sum(r.replayed)::bigint AS replayed,
       bool_or(r.more) AS more
  FROM outbox.roll_up() r GROUP BY r.tool
