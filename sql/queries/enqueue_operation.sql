-- outbox.enqueue for the command line; absent parameters take the function's defaults.
-- $1 tool, $2 arguments, $3 operation_id, $4 run_id, $5 occurrence, $6 priority, $7 run_at,
-- $8 expires_at, $9 max_attempts, $10 traceparent, $11 labels, $12 retry_failed.
SELECT row_to_json(r)::text AS receipt
  FROM outbox.enqueue(
           tool => $1, arguments => $2::jsonb, operation_id => $3, run_id => $4,
           occurrence => coalesce($5::integer, 1), priority => coalesce($6::smallint, 0::smallint),
           run_at => $7::timestamptz, expires_at => $8::timestamptz, max_attempts => $9::integer,
           traceparent => $10, labels => $11::jsonb,
           retry_failed => coalesce($12::boolean, false)) r
