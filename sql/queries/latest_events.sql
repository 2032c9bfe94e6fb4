-- The latest events of one operation, newest first: an operation that is asked for again and again
-- may have very many. $1 operation_id, $2 rows. Index: event_operation.
SELECT row_to_json(e)::text AS event
  FROM (SELECT v.id, v.at, v.kind, v.epoch, v.worker, k.name AS worker_name, v.actor, v.detail
          FROM outbox.event v LEFT JOIN outbox.worker k ON k.worker = v.worker
         WHERE v.operation_id = $1 ORDER BY v.id DESC LIMIT $2::integer) e
