-- outbox.acknowledge for the command line. $1 operation_id, $2 reason, $3 actor.
SELECT outbox.acknowledge($1, $2, $3) AS answer
