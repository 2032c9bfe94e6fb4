-- outbox.compensate for the command line. $1 operation_id, $2 name, $3 arguments, $4 reason.
SELECT row_to_json(r)::text AS receipt
  FROM outbox.compensate($1, $2, coalesce($3::jsonb, '{}'), $4) r
