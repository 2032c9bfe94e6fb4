-- outbox.resolve for the command line. $1 operation_id, $2 verdict, $3 reason, $4 actor, $5 epoch of
-- the attempt that the person looked into, $6 result.
SELECT outbox.resolve($1, $2, $3, $4, $5::integer, $6::jsonb) AS answer
