-- How the last attempt of an operation that is still open ended. $1 operation_id. The view is not
-- for planners.
SELECT o.last_error::text AS last_error FROM outbox.operations o WHERE o.operation_id = $1
