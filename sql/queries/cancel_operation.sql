-- outbox.cancel for the command line. $1 operation_id, $2 reason.
SELECT outbox.cancel($1, $2) AS answer
