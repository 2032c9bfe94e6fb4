-- The server process that answers. When it is not the one the protocol introduced, a pooler stands
-- between. Asked before the search_path is set.
SELECT pg_catalog.pg_backend_pid() AS pid
