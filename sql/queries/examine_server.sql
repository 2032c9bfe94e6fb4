-- `outboxd doctor`, what the server alone can tell. $1 the caller's time in microseconds since 1970,
-- taken right before. One row per check: name, level (ok, warn, bad), detail, fix.
WITH set_to AS (
    -- As a new session of this role gets it, not as the command's own session has set it.
    SELECT max(s.reset_val) FILTER (WHERE s.name = 'fsync') AS fsync,
           max(s.reset_val) FILTER (WHERE s.name = 'full_page_writes') AS full_page_writes,
           max(s.reset_val) FILTER (WHERE s.name = 'synchronous_commit') AS synchronous_commit,
           max(s.reset_val) FILTER (WHERE s.name = 'synchronous_standby_names') AS standbys
      FROM pg_settings s
), careless AS (
    SELECT string_agg(coalesce(r.rolname, 'every role'), ', ' ORDER BY r.rolname) AS roles
      FROM pg_db_role_setting g
     CROSS JOIN unnest(g.setconfig) c (line)
      LEFT JOIN pg_roles r ON r.oid = g.setrole
     WHERE lower(c.line) IN ('synchronous_commit=off', 'synchronous_commit=false', 'synchronous_commit=no',
                             'synchronous_commit=0')
       AND g.setdatabase IN (0, (SELECT d.oid FROM pg_database d WHERE d.datname = current_database()))
), replica AS (
    SELECT count(*) AS n FROM pg_stat_replication
), offset_by AS (
    SELECT extract(epoch FROM clock_timestamp())::numeric - $1::bigint / 1000000.0 AS seconds
), holder AS (
    SELECT h.*
      FROM (SELECT age(a.backend_xmin) AS xids, extract(epoch FROM now() - a.xact_start) AS seconds,
                   format('session %s of %s (%s, %s)', a.pid, a.usename,
                          coalesce(nullif(a.application_name, ''), 'no application_name'), a.state) AS who,
                   format('end it: SELECT pg_terminate_backend(%s); and set '
                          'idle_in_transaction_session_timeout for its role', a.pid) AS fix
              FROM pg_stat_activity a
             WHERE a.backend_xmin IS NOT NULL AND a.pid <> pg_backend_pid()
             UNION ALL
            SELECT age(p.transaction), extract(epoch FROM now() - p.prepared),
                   format('prepared transaction %L of %s in %s', p.gid, p.owner, p.database),
                   format('settle it: COMMIT PREPARED %L or ROLLBACK PREPARED %L', p.gid, p.gid)
              FROM pg_prepared_xacts p
             UNION ALL
            -- A slot does not tell since when; one without a consumer holds for ever.
            SELECT greatest(age(s.xmin), age(s.catalog_xmin)), CASE WHEN s.active THEN 0 ELSE 86400 END,
                   format('replication slot %I%s', s.slot_name,
                          CASE WHEN s.active THEN '' ELSE ', which nobody reads' END),
                   format('is it not needed any more: SELECT pg_drop_replication_slot(%L)', s.slot_name)
              FROM pg_replication_slots s WHERE s.xmin IS NOT NULL OR s.catalog_xmin IS NOT NULL) h
     ORDER BY h.seconds DESC NULLS LAST, h.xids DESC NULLS LAST
     LIMIT 1
)
SELECT 'fsync' AS name, CASE s.fsync WHEN 'on' THEN 'ok' ELSE 'bad' END AS level,
       format('fsync is %s', s.fsync) AS detail,
       CASE WHEN s.fsync <> 'on' THEN 'ALTER SYSTEM SET fsync = on; SELECT pg_reload_conf(); without it a '
           'crash loses leases, and what is lost is done twice' END AS fix
  FROM set_to s
 UNION ALL
SELECT 'full_page_writes', CASE s.full_page_writes WHEN 'on' THEN 'ok' ELSE 'bad' END,
       format('full_page_writes is %s', s.full_page_writes),
       CASE WHEN s.full_page_writes <> 'on' THEN 'ALTER SYSTEM SET full_page_writes = on; '
           'SELECT pg_reload_conf(); without it a crash may leave torn pages' END
  FROM set_to s
 UNION ALL
SELECT 'synchronous_commit',
       CASE WHEN s.synchronous_commit = 'off' OR c.roles IS NOT NULL THEN 'bad' ELSE 'ok' END,
       CASE WHEN c.roles IS NOT NULL AND s.synchronous_commit <> 'off'
            THEN format('synchronous_commit is off for %s', c.roles)
            ELSE format('synchronous_commit is %s', s.synchronous_commit) END,
       CASE WHEN s.synchronous_commit = 'off' OR c.roles IS NOT NULL THEN 'set it to on for the database '
           'and its roles (ALTER DATABASE, ALTER ROLE … SET synchronous_commit = on): a planner''s commit '
           'that is lost in a crash takes its intent along' END
  FROM set_to s CROSS JOIN careless c
 UNION ALL
SELECT 'synchronous_standbys',
       CASE WHEN s.standbys <> '' AND r.n = 0 THEN 'bad'
            WHEN r.n > 0 AND (s.standbys = '' OR s.synchronous_commit IN ('off', 'local', 'remote_write'))
            THEN 'warn' ELSE 'ok' END,
       CASE WHEN s.standbys <> '' AND r.n = 0 THEN format('synchronous_standby_names is %L and no standby '
                'is connected: commits wait', s.standbys)
            WHEN r.n > 0 AND s.standbys = '' THEN format('%s standbys, none of them synchronous', r.n)
            WHEN r.n > 0 THEN format('%s standbys, %L synchronous, synchronous_commit %s',
                                     r.n, s.standbys, s.synchronous_commit)
            ELSE 'no standby is connected' END,
       CASE WHEN s.standbys <> '' AND r.n = 0 THEN 'start the standby, or empty synchronous_standby_names'
            WHEN r.n > 0 AND s.standbys = '' THEN 'a failover may lose the last commits, and with them '
                'attempts: set synchronous_standby_names, or know docs/operators.md, "Failover"'
            WHEN r.n > 0 AND s.synchronous_commit IN ('off', 'local', 'remote_write')
            THEN 'synchronous_commit must be on or remote_apply for the standby to have what was acknowledged'
       END
  FROM set_to s CROSS JOIN replica r
 UNION ALL
SELECT 'clock', CASE WHEN abs(o.seconds) > 1 THEN 'warn' ELSE 'ok' END,
       format('the database''s clock is %s s %s of this machine''s', round(abs(o.seconds), 3),
              CASE WHEN o.seconds < 0 THEN 'behind' ELSE 'ahead' END),
       CASE WHEN abs(o.seconds) > 1 THEN 'run chrony or ntpd on both: times of people and providers are '
           'compared with the database''s' END
  FROM offset_by o
 UNION ALL
SELECT 'xmin_horizon', CASE WHEN h.seconds > 3600 THEN 'warn' ELSE 'ok' END,
       CASE WHEN h.who IS NULL THEN 'nothing holds vacuum back'
            ELSE format('%s has held it for %s s (%s transactions)', h.who, round(h.seconds), h.xids) END,
       CASE WHEN h.seconds > 3600 THEN h.fix END
  FROM (SELECT) one LEFT JOIN holder h ON true
