-- What this worker leased and has not in flight: rows of a lease whose acknowledgement was lost.
-- Read first and given back by epoch, so that the giving back is fenced like every other write,
-- however late it is carried out. A row whose effect a late answer has proved is left to expire.
-- $1 worker uuid, $2 seqs this worker really has in flight. Index: queue_due (by its predicate).
SELECT q.seq, q.lease_epoch
  FROM outbox.queue q
 WHERE q.status = 'attempting' AND q.leased_by = $1::uuid
   AND q.seq <> ALL ($2::bigint[])
   AND q.attention IS DISTINCT FROM 'late_effect'
