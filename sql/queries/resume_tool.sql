-- outbox.resume_tool for the command line. $1 tool.
SELECT outbox.resume_tool($1) AS answer
