-- As list_operations, for the admin server: without what may be large or planner's text that only a
-- tool's redact: can judge (result). Of errors the code and the message. Parameters as there.
SELECT l.seq, l.tool, row_to_json(r)::text AS operation
  FROM outbox.list($1::text[], $2::text, $3::bigint * interval '1 millisecond', $4::boolean,
                   $5::bigint, $6::integer) l,
       LATERAL (SELECT l.operation_id, l.tool, l.status, l.attention, l.needs_attention, l.attempts,
                       l.attempt_epoch, l.created_at, l.started_at, l.finished_at, l.due_at,
                       l.unknown_since, l.run_id, l.labels, l.priority, l.compensates,
                       l.compensated_by, l.compensation_status, l.result_expired, l.pruned_at,
                       coalesce(l.error, l.last_error) ->> 'code' AS error_code,
                       left(coalesce(l.error, l.last_error) ->> 'message', 500) AS error_message,
                       l.seq) r
 ORDER BY l.seq DESC
