-- outbox.get for the command line. $1 operation_id. No row: unknown id.
SELECT row_to_json(g)::text AS operation FROM outbox.get($1) g
