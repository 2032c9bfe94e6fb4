-- The events of one operation, oldest first. $1 operation_id. Index: event_operation.
SELECT row_to_json(e)::text AS event
  FROM outbox.event e WHERE e.operation_id = $1 ORDER BY e.id
