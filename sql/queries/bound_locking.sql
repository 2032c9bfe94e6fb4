-- For the statement that locks ($1 true), and no longer ($1 false). It ends before deadlock_timeout, so of
-- two that wait for each other it is the migrator who gives way, never a planner.
SELECT set_config('statement_timeout', CASE WHEN $1::boolean
           THEN (extract(epoch FROM current_setting('deadlock_timeout')::interval) * 600)::integer::text
           ELSE '0' END, true)
