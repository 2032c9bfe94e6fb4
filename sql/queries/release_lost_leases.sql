-- Gives back what an unacknowledged lease took and nobody dispatched, as find_lost_leases read it:
-- a row that was leased again since then has another epoch and is left alone, and one that a
-- timeline change took from this worker (settle_timeline) is no longer its own.
-- $1 worker uuid, and one element per row: $2 seq, $3 epoch. Index: queue_pkey, then a TID scan.
WITH released AS (
    UPDATE outbox.queue q
       SET status = 'pending', lease_epoch = q.lease_epoch + 1, attempts = q.attempts - 1,
           due_at = NULL, leased_by = NULL
     WHERE q.ctid = ANY (ARRAY (
               SELECT r.ctid
                 FROM unnest($2::bigint[], $3::integer[]) AS m (seq, epoch)
                 JOIN outbox.queue r ON r.seq = m.seq AND r.lease_epoch = m.epoch
                WHERE r.leased_by = $1::uuid
                  AND r.attention IS DISTINCT FROM 'late_effect'
                  FOR UPDATE OF r SKIP LOCKED))
    RETURNING q.seq, q.lease_epoch
), told AS (
    INSERT INTO outbox.event (operation_id, kind, epoch, worker, detail)
    SELECT o.operation_id, 'released', r.lease_epoch, $1::uuid, '{"why": "lease_not_acknowledged"}'
      FROM released r JOIN outbox.operation o ON o.seq = r.seq
)
SELECT count(*) AS released FROM released
