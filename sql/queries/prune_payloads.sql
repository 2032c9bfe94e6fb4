-- One page of pruning arguments and results. $1 older than (ms), $2 where the page before ended, 0 at
-- first; $3 rows. Indexes: unpruned_pkey, operation_pkey, outcome_pkey, queue_pkey.
SELECT p.pruned, p.next, p.more, p.busy
  FROM outbox.prune_payloads($1::bigint * interval '1 millisecond', $2::bigint, $3::integer) p
