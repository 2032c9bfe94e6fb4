-- What became of writes that found no row under their epoch: after a lost acknowledgement "my
-- epoch + 1 with my values" means that they were done.
-- One element per write: $1 seq, $2 epoch it compared, $3 status it sets, $4 result (final ones).
-- Returns per seq: applied · settle (still mine, but a late answer proved an effect meanwhile:
-- end it) · fenced. Indexes: queue_pkey, outcome_pkey, each row
-- looked up by itself (LIMIT): a plan of a time when the outcome was empty would read all of it.
SELECT w.seq,
       CASE WHEN q.lease_epoch = w.epoch + 1 AND q.status = w.status THEN 'applied'
            WHEN c.lease_epoch = w.epoch + 1
                 AND (c.outcome = w.status OR c.attention = 'late_effect')
                 AND (w.status <> 'succeeded' OR c.result IS NOT DISTINCT FROM w.result)
                THEN 'applied'
            WHEN q.lease_epoch = w.epoch AND q.attention = 'late_effect' THEN 'settle'
            ELSE 'fenced' END AS fate
  FROM unnest($1::bigint[], $2::integer[], $3::text[], $4::jsonb[])
       AS w (seq, epoch, status, result)
  LEFT JOIN LATERAL (
      SELECT r.lease_epoch, r.status, r.attention
        FROM outbox.queue r WHERE r.seq = w.seq LIMIT 1) q ON true
  LEFT JOIN LATERAL (
      SELECT e.lease_epoch, e.outcome, e.attention, e.result
        FROM outbox.outcome e WHERE e.seq = w.seq LIMIT 1) c ON true
