-- The server process that answers. When it is not the one the protocol introduced, a pooler stands
-- between.
SELECT pg_backend_pid() AS pid
