-- One page of what a timeline change (failover, restore) asks for: every older pending or scheduled
-- operation of a write tool goes to unknown, because an attempt of it may have been lost with the
-- end of the old timeline. $1 rows per page. Run until settled; at the first start it records where
-- the outbox is. A tool that no daemon has published counts as a write; and so does one that is a
-- read now, for what was sent as a write (outbox.request). Indexes: queue_pkey, request_pkey.
--
-- Why nothing slips through, with any number of daemons:
-- * No lease is taken on a session before check_timeline has said yes on it (through a pooler: in
--   the lease's own transaction), and it does so only once the last page is committed here. A
--   server's timeline never changes under a session: a primary starts anew, and a session that a
--   standby had before its promotion cannot have passed the check.
-- * The row 'timeline' of outbox.setting holds the identity that is settled, or "was now after
--   until" while pages are made: it is the lock, the compare-and-set and the cursor in one. Locked,
--   it is read as it is now, however long somebody else held it; so each seq up to the highest one
--   at the change is in exactly one page, and newer operations are in none. A second change starts
--   from the beginning.
-- * One UPDATE over all statuses: whatever a row turns into under it (a probe's verdict, a
--   promotion), it is the present row that is judged. What becomes pending or scheduled behind the
--   cursor was seen there as attempting, and goes by a report of that very attempt; as unknown, and
--   its prober is fenced; or as failed, and somebody armed it again on this side.
-- * Row locks are waited for, not skipped: a page with a locked row fails as a whole and is made
--   again.
-- Epochs that were given out on the lost end must not come back: they leap. The hard end of an
-- attempt that nobody remembers is the change + the tool's time-out, also where an older attempt is
-- recorded or a probe is under way. An attempt under way stays one, for its worker's report is as
-- good as before; but it is nobody's any more, so that its worker cannot take it for a lease that
-- was never acknowledged and give it back as unsent.
WITH here AS MATERIALIZED (
    SELECT c.system_identifier || ':' || d.oid || ':'
               || left(pg_walfile_name(pg_current_wal_lsn()), 8) AS timeline
      FROM pg_control_system() c CROSS JOIN pg_database d
     WHERE d.datname = current_database() AND NOT pg_is_in_recovery()
), first AS (
    INSERT INTO outbox.setting (name, value) SELECT 'timeline', h.timeline FROM here h
        ON CONFLICT (name) DO NOTHING
    RETURNING value
), known AS MATERIALIZED (
    SELECT s.value FROM outbox.setting s WHERE s.name = 'timeline' FOR UPDATE
), change AS MATERIALIZED (
    SELECT h.timeline, split_part(k.value, ' ', 1) AS was,
           CASE WHEN split_part(k.value, ' ', 2) = h.timeline
                THEN split_part(k.value, ' ', 3)::bigint ELSE 0 END AS after,
           CASE WHEN split_part(k.value, ' ', 2) = h.timeline
                THEN split_part(k.value, ' ', 4)::bigint
                ELSE (SELECT coalesce(max(q.seq), 0) FROM outbox.queue q) END AS until
      FROM here h CROSS JOIN known k
     WHERE k.value <> h.timeline
), page AS MATERIALIZED (
    SELECT coalesce(
               (SELECT r.seq FROM outbox.queue r WHERE r.seq > c.after AND r.seq <= c.until
                 ORDER BY r.seq OFFSET $1::integer - 1 LIMIT 1), c.until) AS upto
      FROM change c
), moved AS (
    UPDATE outbox.queue q
       SET status = CASE q.status WHEN 'attempting' THEN 'attempting' ELSE 'unknown' END,
           lease_epoch = q.lease_epoch + CASE q.status WHEN 'attempting' THEN 0 ELSE 1000 END,
           attempt_epoch = coalesce(q.attempt_epoch, 0),
           due_at = CASE WHEN q.status IN ('pending', 'scheduled') THEN now() ELSE q.due_at END,
           leased_by = CASE q.status WHEN 'attempting'
                            THEN '00000000-0000-0000-0000-000000000000'::uuid END,
           deadline_at = greatest(q.deadline_at, now() + coalesce(
               (SELECT t.timeout FROM outbox.tool t WHERE t.tool = q.tool), interval '20 s')),
           ambiguous = q.ambiguous OR q.status <> 'attempting',
           unknown_since = CASE WHEN q.status IN ('pending', 'scheduled')
                                THEN now() ELSE q.unknown_since END,
           probes = 0, absent_count = 0, last_absent_at = NULL,
           error = CASE WHEN q.status IN ('pending', 'scheduled')
                        THEN jsonb_build_object('code', 'timeline', 'message',
                            'The database came back on another timeline; an attempt may have been '
                            'lost with the old one.')
                        ELSE q.error END
      FROM change c CROSS JOIN page p
     WHERE q.seq > c.after AND q.seq <= p.upto
       AND ((SELECT t.effect FROM outbox.tool t WHERE t.tool = q.tool) IS DISTINCT FROM 'read'
            OR (SELECT r.leaves_doubt FROM outbox.request r
                 WHERE r.tool = q.tool AND r.request_hash = q.request_hash) IS TRUE)
    RETURNING q.seq, q.tool, q.lease_epoch,
              q.status = 'unknown' AND q.unknown_since = now() AS became_unknown
), told AS (
    INSERT INTO outbox.event (operation_id, kind, epoch, detail)
    SELECT o.operation_id, 'timeline', m.lease_epoch,
           jsonb_build_object('was', c.was, 'now', c.timeline)
      FROM moved m JOIN outbox.operation o ON o.seq = m.seq CROSS JOIN change c
     WHERE m.became_unknown
), written AS (
    UPDATE outbox.setting s
       SET value = CASE WHEN p.upto >= c.until THEN c.timeline
                        ELSE concat_ws(' ', c.was, c.timeline, p.upto, c.until) END
      FROM change c CROSS JOIN page p
     WHERE s.name = 'timeline'
    RETURNING s.value
)
SELECT h.timeline, c.was, m.tool, coalesce(m.moved, 0) AS moved,
       coalesce((SELECT w.value FROM written w), (SELECT f.value FROM first f),
                (SELECT k.value FROM known k)) IS NOT DISTINCT FROM h.timeline AS settled
  FROM here h
  LEFT JOIN change c ON true
  LEFT JOIN (SELECT tool, count(*) AS moved FROM moved WHERE became_unknown GROUP BY tool) m
         ON true
