-- Moves operations that go on: to pending, scheduled or unknown, with their events.
-- One element per operation: $1 seq, $2 epoch, $3 status, $4 due in ms (null: pending has none,
-- unknown waits for a person), $5 attempts delta, $6 ambiguous, $7 accepted, $8 attention,
-- $9 result, $10 error, $11 probes, $12 absent_count, $13 last_absent_at (epoch µs), $14 written
-- by a probe, $15 events (as in finish_operations; empty when there are none); $16 the worker for the
-- events.
-- A row whose effect is already proved by a late answer (attention late_effect) is not touched:
-- read_fates says so, and it ends through finish_operations.
-- Returns the seqs that were written. Index: queue_pkey.
WITH moved AS (
    UPDATE outbox.queue q
       SET status = m.status,
           lease_epoch = q.lease_epoch + 1,
           due_at = CASE WHEN m.status = 'pending' THEN NULL
                         WHEN m.due_in_ms IS NULL THEN 'infinity'
                         ELSE now() + m.due_in_ms * interval '1 millisecond' END,
           attempts = greatest(q.attempts + m.attempts_delta, 0),
           ambiguous = q.ambiguous OR m.ambiguous,
           accepted = m.status = 'unknown' AND (m.accepted OR (q.accepted AND m.probed)),
           leased_by = NULL,
           unknown_since = CASE WHEN m.status <> 'unknown' THEN NULL
                                WHEN m.probed THEN coalesce(q.unknown_since, now())
                                ELSE now() END,
           probes = coalesce(m.probes, 0),
           absent_count = coalesce(m.absent_count, 0),
           last_absent_at = 'epoch'::timestamptz + m.last_absent_us * interval '1 microsecond',
           attention = CASE WHEN m.status = 'unknown' THEN
                            CASE WHEN m.probed THEN coalesce(m.attention, q.attention)
                                 ELSE m.attention END END,
           asked = false,
           result = CASE WHEN m.status = 'unknown' THEN coalesce(m.result, q.result) END,
           error = coalesce(m.error, q.error)
      FROM unnest($1::bigint[], $2::integer[], $3::text[], $4::bigint[], $5::integer[],
                  $6::boolean[], $7::boolean[], $8::text[], $9::jsonb[], $10::jsonb[],
                  $11::integer[], $12::integer[], $13::bigint[], $14::boolean[], $15::jsonb[])
           AS m (seq, epoch, status, due_in_ms, attempts_delta, ambiguous, accepted, attention,
                 result, error, probes, absent_count, last_absent_us, probed, events)
     WHERE q.seq = m.seq AND q.lease_epoch = m.epoch
       AND q.attention IS DISTINCT FROM 'late_effect'
    RETURNING q.seq, q.lease_epoch, m.events
), told AS (
    INSERT INTO outbox.event (operation_id, kind, epoch, worker, detail)
    SELECT e.operation_id, e.kind, m.lease_epoch, $16::uuid, coalesce(e.detail, 'null')
      FROM moved m
     CROSS JOIN LATERAL jsonb_to_recordset(m.events)
           AS e (operation_id text, kind text, detail jsonb)
     WHERE $15::jsonb[] <> '{}' AND m.events IS NOT NULL
)
SELECT seq FROM moved
