-- For this transaction: nothing of the database or the role stands before the server's own names.
-- What migrations create keeps the operators and functions that were found then.
SELECT pg_catalog.set_config('search_path', 'pg_catalog, pg_temp', true)
