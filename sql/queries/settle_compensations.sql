-- What becomes of compensations that wait for their original: it succeeded, so they may run; it ended
-- without effect, so there is nothing to undo, and they are cancelled. An original that goes back to
-- pending or scheduled meanwhile (an absent was believed, an attempt was not sent) is cancelled
-- instead, as outbox.compensate would have done: it must not run only to be undone.
-- Reads one page of what waits, in the order of the originals; most have to go on waiting, so the
-- next page begins where this one ended, and moves only what it may. $1 rows per page; $2 waits_for
-- and $3 seq of the row behind which to look. Succeeded never changes, and whoever arms a failed
-- original again ends what waits for it first (outbox.arm_again), so a judgement cannot be outdated.
-- Returns the counts, and the last row of a full page (nulls: begin at the head), once for each id
-- that ended, and once where none did.
-- Indexes: queue_waits, outcome_pkey, queue_pkey, then TID scans.
WITH page AS MATERIALIZED (
    SELECT w.seq, w.waits_for
      FROM outbox.queue w
     WHERE w.waits_for IS NOT NULL AND (w.waits_for, w.seq) > ($2::bigint, $3::bigint)
     ORDER BY w.waits_for, w.seq
     LIMIT $1::integer
), judged AS MATERIALIZED (
    SELECT p.seq, e.outcome
      FROM page p
     CROSS JOIN LATERAL (
         SELECT o.outcome FROM outbox.outcome o WHERE o.seq = p.waits_for LIMIT 1) e
), withdrawn AS (
    DELETE FROM outbox.queue q
     WHERE q.ctid = ANY (ARRAY (
               SELECT r.tid
                 FROM (SELECT DISTINCT p.waits_for FROM page p) p
                CROSS JOIN LATERAL (
                    SELECT o.ctid AS tid FROM outbox.queue o
                     WHERE o.seq = p.waits_for AND o.status IN ('pending', 'scheduled')
                       FOR UPDATE SKIP LOCKED) r))
    RETURNING q.*
), armed AS (
    UPDATE outbox.queue q
       SET status = 'pending', lease_epoch = q.lease_epoch + 1, waits_for = NULL, due_at = now()
     WHERE q.ctid = ANY (ARRAY (
               SELECT r.tid
                 FROM judged j
                CROSS JOIN LATERAL (
                    SELECT w.ctid AS tid FROM outbox.queue w
                     WHERE w.seq = j.seq AND w.status = 'scheduled' AND w.waits_for IS NOT NULL
                       FOR UPDATE SKIP LOCKED) r
                WHERE j.outcome = 'succeeded'))
    RETURNING q.seq
), gone AS (
    DELETE FROM outbox.queue q
     WHERE q.ctid = ANY (ARRAY (
               SELECT r.tid
                 FROM judged j
                CROSS JOIN LATERAL (
                    SELECT w.ctid AS tid FROM outbox.queue w
                     WHERE w.seq = j.seq AND w.status = 'scheduled' AND w.waits_for IS NOT NULL
                       FOR UPDATE SKIP LOCKED) r
                WHERE j.outcome <> 'succeeded'))
    RETURNING q.*
), ended AS (
    INSERT INTO outbox.outcome (seq, outcome, attempts, lease_epoch, attempt_epoch, error,
                                started_at, request_hash, ambiguous)
    SELECT g.seq, 'cancelled', g.attempts, g.lease_epoch + 1, g.attempt_epoch,
           '{"code": "nothing_to_compensate", "message": "The original had no effect."}'::jsonb,
           g.started_at, g.request_hash, g.ambiguous
      FROM gone g
     UNION ALL
    SELECT w.seq, 'cancelled', w.attempts, w.lease_epoch + 1, w.attempt_epoch, NULL,
           w.started_at, w.request_hash, w.ambiguous
      FROM withdrawn w
), told AS (
    INSERT INTO outbox.event (operation_id, kind, epoch, detail)
    SELECT o.operation_id, 'cancelled', c.lease_epoch + 1, c.detail
      FROM (SELECT g.seq, g.lease_epoch, jsonb_build_object('from', g.status,
                       'code', 'nothing_to_compensate') AS detail
              FROM gone g
             UNION ALL
            SELECT w.seq, w.lease_epoch, jsonb_build_object('from', w.status, 'by', 'compensate')
              FROM withdrawn w) c
      JOIN outbox.operation o ON o.seq = c.seq
    RETURNING operation_id
), last AS (
    SELECT p.waits_for, p.seq
      FROM page p
     WHERE (SELECT count(*) FROM page) >= $1::integer
     ORDER BY p.waits_for DESC, p.seq DESC
     LIMIT 1
)
SELECT (SELECT count(*) FROM armed) AS armed,
       (SELECT count(*) FROM gone) + (SELECT count(*) FROM withdrawn) AS cancelled,
       (SELECT l.waits_for FROM last l) AS waits_for, (SELECT l.seq FROM last l) AS seq,
       t.operation_id AS ended
  FROM (SELECT) one LEFT JOIN told t ON true
