-- One page of pruning events. $1 older than (ms), $2 where the page before ended, 0 at first; $3 rows.
-- Indexes: event_pkey, operation_id_key, queue_pkey, outcome_pkey.
SELECT p.pruned, p.next, p.more
  FROM outbox.prune_events($1::bigint * interval '1 millisecond', $2::bigint, $3::integer) p
