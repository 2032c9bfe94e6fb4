-- `outboxd doctor`, what the outbox itself can tell; the schema fits. One row per check: name, level
-- (ok, warn, bad), detail, fix.
WITH expected AS (
    SELECT e.role, e.may, r.oid IS NOT NULL AS there
      FROM (VALUES ('outbox_planner', 'outbox.enqueue'), ('outbox_worker', 'outbox.roll_up'),
                   ('outbox_reader', 'outbox.stats'), ('outbox_operator', 'outbox.retry')) e (role, may)
      LEFT JOIN pg_roles r ON r.rolname = e.role
), role_faults AS (
    SELECT string_agg(e.role, ', ' ORDER BY e.role) FILTER (WHERE NOT e.there) AS missing,
           string_agg(format('CREATE ROLE %I NOLOGIN;', e.role), ' ' ORDER BY e.role)
               FILTER (WHERE NOT e.there) AS create_them,
           string_agg(e.role, ', ' ORDER BY e.role)
               FILTER (WHERE e.there AND NOT has_function_privilege(e.role, e.may::regproc, 'EXECUTE')) AS bare
      FROM expected e
), exposed AS (
    SELECT string_agg(DISTINCT p.proname, ', ') FILTER (
               WHERE p.prosecdef AND o.rolsuper) AS of_superuser,
           string_agg(DISTINCT p.proname, ', ') FILTER (
               WHERE has_function_privilege('public', p.oid, 'EXECUTE')) AS of_public
      FROM pg_proc p JOIN pg_roles o ON o.oid = p.proowner
     WHERE p.pronamespace = 'outbox'::regnamespace
), broken AS (
    SELECT string_agg(i.indexrelid::regclass::text, ', ' ORDER BY i.indexrelid) AS names,
           string_agg(format('REINDEX INDEX CONCURRENTLY %s;', i.indexrelid::regclass), ' '
                      ORDER BY i.indexrelid) AS mend
      FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid
     WHERE c.relnamespace = 'outbox'::regnamespace AND NOT (i.indisvalid AND i.indisready)
), doubt AS (
    SELECT coalesce(sum(b.count), 0) AS n,
           coalesce(extract(epoch FROM now() - min(b.since)), 0) AS seconds,
           string_agg(DISTINCT b.tool, ', ') FILTER (
               WHERE b.since < now() - interval '15 minutes') AS tools
      FROM outbox.backlog b WHERE b.status = 'unknown'
), flagged AS (
    SELECT count(*) AS n, string_agg(DISTINCT a.attention, ', ') AS reasons,
           bool_or(a.attention = 'duplicate_effect') AS twice
      FROM outbox.attention a
), served AS (
    SELECT string_agg(DISTINCT b.tool, ', ') AS tools FROM outbox.backlog b WHERE NOT b.served
), alive AS (
    SELECT count(*) AS n FROM outbox.worker w
     WHERE w.stopped_at IS NULL AND w.heartbeat_at > now() - interval '15 seconds'
), never AS (
    SELECT string_agg(s.tool, ', ' ORDER BY s.tool) FILTER (
               WHERE s.enqueued_30d > 1000 AND s.replayed_30d = 0) AS tools,
           coalesce(sum(s.enqueued_30d), 0) AS enqueued, coalesce(sum(s.replayed_30d), 0) AS replayed
      FROM outbox.stats() s WHERE s.status IS NULL
)
SELECT 'roles' AS name,
       CASE WHEN f.bare IS NOT NULL OR x.of_superuser IS NOT NULL OR x.of_public IS NOT NULL THEN 'bad'
            WHEN f.missing IS NOT NULL THEN 'warn' ELSE 'ok' END AS level,
       CASE WHEN x.of_superuser IS NOT NULL
            THEN format('functions that run with their owner''s rights belong to a superuser: %s',
                        x.of_superuser)
            WHEN x.of_public IS NOT NULL THEN format('everybody may call %s', x.of_public)
            WHEN f.bare IS NOT NULL THEN format('rights are missing: %s', f.bare)
            WHEN f.missing IS NOT NULL THEN format('roles are missing: %s', f.missing)
            ELSE 'the roles are there and have their rights' END AS detail,
       CASE WHEN x.of_superuser IS NOT NULL THEN 'as a superuser: SELECT outbox.disown()'
            WHEN x.of_public IS NOT NULL OR f.bare IS NOT NULL
            THEN 'as the owner of schema outbox: SELECT outbox.grant_rights()'
            WHEN f.missing IS NOT NULL
            THEN f.create_them || ' then, as the owner of schema outbox: SELECT outbox.grant_rights();'
       END AS fix
  FROM role_faults f CROSS JOIN exposed x
 UNION ALL
SELECT 'indexes', CASE WHEN b.names IS NULL THEN 'ok' ELSE 'bad' END,
       coalesce('not valid: ' || b.names, 'all indexes are valid'), b.mend
  FROM broken b
 UNION ALL
SELECT 'daemons', CASE WHEN a.n = 0 THEN 'warn' ELSE 'ok' END,
       format('%s alive', a.n),
       CASE WHEN a.n = 0 THEN 'outboxd run -c FILE; outboxd workers tells the ones there were' END
  FROM alive a
 UNION ALL
SELECT 'served', CASE WHEN s.tools IS NULL THEN 'ok' ELSE 'warn' END,
       coalesce('no daemon that is alive serves ' || s.tools, 'every tool with work is served'),
       CASE WHEN s.tools IS NOT NULL THEN 'start the daemon that has the tool in its configuration, or '
           'outboxd cancel --tool NAME --dry-run' END
  FROM served s
 UNION ALL
SELECT 'unknowns', CASE WHEN d.seconds > 86400 THEN 'bad' WHEN d.seconds > 900 THEN 'warn' ELSE 'ok' END,
       format('%s unknown, the oldest for %s s%s', d.n, round(d.seconds), coalesce(' (' || d.tools || ')', '')),
       CASE WHEN d.seconds > 900 THEN 'outboxd list --status unknown --older-than 15m, then outboxd events '
           'ID: mend the look-up, or outboxd resolve ID' END
  FROM doubt d
 UNION ALL
SELECT 'attention', CASE WHEN f.twice THEN 'bad' WHEN f.n > 0 THEN 'warn' ELSE 'ok' END,
       CASE WHEN f.n = 0 THEN 'nothing waits for a person'
            ELSE format('%s wait for a person: %s', f.n, f.reasons) END,
       CASE WHEN f.n > 0 THEN 'outboxd list --attention, then outboxd resolve or outboxd acknowledge' END
  FROM flagged f
 UNION ALL
SELECT 'replays', CASE WHEN n.tools IS NULL THEN 'ok' ELSE 'warn' END,
       CASE WHEN n.tools IS NULL THEN format('%s enqueued and %s replayed in 30 days', n.enqueued, n.replayed)
            ELSE format('not one replay in 30 days: %s', n.tools) END,
       CASE WHEN n.tools IS NOT NULL THEN 'nothing retries, or every retry gets a new id and executes again: '
           'docs/operators.md, "OutboxdNoReplays"; plain inserts leave no replay to count' END
  FROM never n
