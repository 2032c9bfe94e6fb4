-- Journals a resend of an unknown operation that this worker has claimed: one attempt more, under
-- an epoch of its own, with a hard deadline of its own. Like a lease: one autocommit statement that
-- sees to its own flush, and nothing is sent before it was acknowledged. No row: the epoch moved.
-- $1 worker uuid, $2 seq, $3 epoch of the claim, $4 time-out ms, $5 lease margin ms.
-- Index: queue_pkey.
WITH durable AS MATERIALIZED (
    SELECT set_config('synchronous_commit',
               CASE current_setting('synchronous_commit')
                   WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true) AS flush
), sent AS (
    UPDATE outbox.queue q
       SET lease_epoch = q.lease_epoch + 1,
           attempt_epoch = q.lease_epoch + 1,
           attempts = q.attempts + 1,
           leased_by = $1::uuid,
           attempted_at = now(),
           deadline_at = now() + $4::bigint * interval '1 millisecond',
           due_at = now() + ($4::bigint + $5::bigint) * interval '1 millisecond'
     WHERE q.seq = $2::bigint AND q.lease_epoch = $3::integer
    RETURNING q.seq, q.lease_epoch, q.attempts
), told AS (
    INSERT INTO outbox.event (operation_id, kind, epoch, worker, detail)
    SELECT o.operation_id, 'probe', s.lease_epoch, $1::uuid,
           jsonb_build_object('resend', s.attempts)
      FROM sent s JOIN outbox.operation o ON o.seq = s.seq
)
SELECT s.lease_epoch, s.attempts FROM sent s CROSS JOIN durable
