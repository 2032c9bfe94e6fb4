-- Time-outs of one effect's transaction, a flush for its commit, and the search_path of our own
-- statements (session_settings); the effect's statement has that of its own role and database
-- instead. Nothing of it outlives the transaction, so a pooler may stand between.
-- $1 statement_timeout, $2 idle_in_transaction_session_timeout: a daemon that stands still gives its
-- locks back.
SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true),
       pg_catalog.set_config('statement_timeout', $1, true),
       pg_catalog.set_config('lock_timeout', $1, true),
       pg_catalog.set_config('idle_in_transaction_session_timeout', $2, true),
       pg_catalog.set_config('synchronous_commit',
           CASE WHEN pg_catalog.current_setting('synchronous_commit')
                     OPERATOR(pg_catalog.=) 'remote_apply'
                THEN 'remote_apply' ELSE 'on' END, true)
