-- outbox.pause_tool for the command line. $1 tool, $2 reason.
SELECT outbox.pause_tool($1, $2) AS answer
