-- outbox.probe for the command line. $1 operation_id.
SELECT outbox.probe($1) AS answer
