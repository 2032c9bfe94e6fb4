-- outbox.retry for the command line. $1 operation_id, $2 reason.
SELECT outbox.retry($1, $2) AS answer
