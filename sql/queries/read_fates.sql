-- What became of writes that found no row under their epoch: after a lost acknowledgement "my
-- epoch + 1 with my values" means that they were done.
-- One element per write: $1 seq, $2 epoch it compared, $3 status it sets, $4 result (final ones).
-- Returns per seq: applied · settle (still mine, but a late answer proved an effect meanwhile:
-- end it) · fenced. Indexes: queue_pkey, outcome_pkey.
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
  LEFT JOIN outbox.queue q ON q.seq = w.seq
  LEFT JOIN outbox.outcome c ON c.seq = w.seq
