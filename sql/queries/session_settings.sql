-- Time-outs, a flush for every commit, no compiling of queries (none of ours lasts long enough to
-- earn it back), and a search_path on which nothing of the database, the role or a pooler's server
-- connection stands before the server's own names. So this statement qualifies all of its own.
-- $1 statement_timeout, $2 lock_timeout, $3 for this transaction only (through a pooler).
SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', $3::boolean),
       pg_catalog.set_config('statement_timeout', $1, $3::boolean),
       pg_catalog.set_config('lock_timeout', $2, $3::boolean),
       pg_catalog.set_config('idle_in_transaction_session_timeout', '10s', $3::boolean),
       pg_catalog.set_config('jit', 'off', $3::boolean),
       pg_catalog.set_config('synchronous_commit',
           CASE WHEN pg_catalog.current_setting('synchronous_commit')
                     OPERATOR(pg_catalog.=) 'remote_apply'
                THEN 'remote_apply' ELSE 'on' END, $3::boolean)
