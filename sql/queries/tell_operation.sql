-- The whole story of one operation but for its events, for the admin server. $1 operation_id.
-- No row: unknown id. work: null once it is final. Indexes: operation_id_key and the primary keys.
SELECT row_to_json(s)::text AS operation,
       row_to_json(i)::text AS intent,
       row_to_json(w)::text AS work,
       o.arguments::text AS arguments,
       (extract(epoch FROM o.created_at) * 1000000)::bigint AS created_us,
       (extract(epoch FROM coalesce(s.started_at, o.created_at)) * 1000000)::bigint AS first_us,
       coalesce(s.attempts, 0) AS attempts,
       o.tool,
       o.pruned_at IS NOT NULL AS pruned,
       first.tool AS original_tool,
       first.arguments::text AS original_arguments,
       first_end.result::text AS original_result,
       coalesce(to_json(t.compensations), '[]')::text AS compensations,
       (SELECT coalesce(json_agg(c ORDER BY c.seq), '[]')::text
          FROM (SELECT v.operation_id, v.status, v.created_at, v.seq FROM outbox.operations v
                 WHERE v.compensates = o.operation_id ORDER BY v.seq LIMIT 100) c) AS undone_by
  FROM outbox.operation o
  JOIN outbox.operations s ON s.operation_id = o.operation_id
  LEFT JOIN outbox.tool t ON t.tool = o.tool
  LEFT JOIN LATERAL (
       SELECT o.operation_id, o.tool, o.run_id, o.priority, o.run_at, o.expires_at,
              o.max_attempts, o.traceparent, o.labels, o.compensates, o.created_at,
              o.arguments_digest, o.pruned_at) i ON true
  LEFT JOIN LATERAL (
       SELECT q.lease_epoch, q.attempt_epoch, q.due_at, q.leased_by, k.name AS leased_by_name,
              q.attempted_at, q.deadline_at, q.deadline_at + t.settle AS settled_at, q.ambiguous,
              q.accepted, q.unknown_since, q.probes, q.absent_count, q.last_absent_at, q.asked
         FROM outbox.queue q LEFT JOIN outbox.worker k ON k.worker = q.leased_by
        WHERE q.seq = o.seq) w ON true
  LEFT JOIN outbox.operation first ON first.operation_id = o.compensates
  LEFT JOIN outbox.outcome first_end ON first_end.seq = first.seq
 WHERE o.operation_id = $1
