-- Takes hold of one attempt's queue row until the end of the transaction: meanwhile its lease
-- cannot expire, and nobody else can move its epoch. $1 seq, $2 epoch, $3 when it was leased
-- (epoch µs). No row, or `ours` false: the attempt belongs to nobody or to somebody else now.
-- What is compared stands in the SELECT list, so that the planner cannot take another index.
-- Index: queue_pkey.
SELECT q.lease_epoch = $2::integer
       AND q.status = 'attempting'
       AND (extract(epoch FROM q.attempted_at) * 1000000)::bigint = $3::bigint
       AND q.attention IS DISTINCT FROM 'late_effect' AS ours
  FROM outbox.queue q
 WHERE q.seq = $1::bigint
   FOR UPDATE
