-- pending or scheduled → failed `expired` where expires_at has passed, paused tools too.
-- $1 rows per call; returns the ids of what ended. Index: queue_expires, then a TID scan.
WITH gone AS (
    DELETE FROM outbox.queue q
     WHERE q.ctid = ANY (ARRAY (
               SELECT r.ctid
                 FROM outbox.queue r
                WHERE r.expires_at <= now()
                  AND r.expires_at IS NOT NULL
                  AND r.status IN ('pending', 'scheduled')
                ORDER BY r.expires_at
                LIMIT $1::integer
                  FOR UPDATE SKIP LOCKED))
    RETURNING q.*
), ended AS (
    INSERT INTO outbox.outcome (seq, outcome, attempts, lease_epoch, attempt_epoch, error,
                                started_at, request_hash, ambiguous)
    SELECT g.seq, 'failed', g.attempts, g.lease_epoch + 1, g.attempt_epoch,
           jsonb_build_object('code', 'expired', 'message',
               'The operation was not carried out before its expires_at.'),
           g.started_at, g.request_hash, g.ambiguous
      FROM gone g
), told AS (
    INSERT INTO outbox.event (operation_id, kind, epoch, detail)
    SELECT o.operation_id, 'failed', g.lease_epoch + 1, '{"code": "expired"}'
      FROM gone g JOIN outbox.operation o ON o.seq = g.seq
    RETURNING operation_id
)
SELECT t.operation_id FROM told t
