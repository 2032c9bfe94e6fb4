-- One migrator at a time, for one transaction; readers and writers are not disturbed by the wait.
-- What a migration calls is the server's own, whatever others have made in the database.
SELECT pg_advisory_xact_lock(1869968504, hashtext('outbox.migration')),
       set_config('search_path', 'pg_catalog, pg_temp', true),
       set_config('lock_timeout', '2s', true),
       set_config('statement_timeout', '0', true),
       set_config('client_min_messages', 'warning', true)
