-- outbox.get for those who may read the view and not call the function. $1 operation_id. No row: unknown id.
SELECT row_to_json(g)::text AS operation
  FROM (SELECT v.operation_id, v.status, v.replayed, v.result, v.error, v.message, v.created_at,
               v.compensated_by, v.result_expired, v.tool, v.run_id, v.attempts, v.attempt_epoch,
               v.started_at, v.finished_at, v.compensates, v.attention
          FROM outbox.operations v WHERE v.operation_id = $1) g
