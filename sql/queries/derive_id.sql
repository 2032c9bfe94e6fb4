-- The id that enqueue would derive. $1 tool, $2 arguments, $3 run_id, $4 occurrence.
SELECT outbox.derive_id($1, $2::jsonb, $3, $4::integer) AS operation_id
