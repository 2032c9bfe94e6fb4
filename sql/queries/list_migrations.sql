-- What was applied, oldest first. Fails with 42P01 where there is no outbox: ask schema_exists.
SELECT number, name, checksum, breaking FROM outbox.migration ORDER BY number
