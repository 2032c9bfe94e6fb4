-- The LISTEN connection of a frozen daemon must not keep its locks: it is pinged every two seconds, and
-- the server ends it after five without one.
SELECT set_config('idle_session_timeout', '5s', false)
