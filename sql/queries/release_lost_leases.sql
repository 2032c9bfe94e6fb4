-- Gives back what an unacknowledged lease took and nobody dispatched.
-- $1 worker uuid, $2 seqs this worker really has in flight. Index: queue_due (by its predicate).
WITH released AS (
    UPDATE outbox.queue q
       SET status = 'pending', lease_epoch = q.lease_epoch + 1, attempts = q.attempts - 1,
           due_at = NULL, leased_by = NULL
     WHERE q.ctid = ANY (ARRAY (
               SELECT r.ctid FROM outbox.queue r
                WHERE r.status = 'attempting' AND r.leased_by = $1::uuid
                  AND r.seq <> ALL ($2::bigint[])
                  FOR UPDATE SKIP LOCKED))
    RETURNING q.seq, q.lease_epoch
), told AS (
    INSERT INTO outbox.event (operation_id, kind, epoch, worker, detail)
    SELECT o.operation_id, 'released', r.lease_epoch, $1::uuid, '{"why": "lease_not_acknowledged"}'
      FROM released r JOIN outbox.operation o ON o.seq = r.seq
)
SELECT count(*) AS released FROM released
