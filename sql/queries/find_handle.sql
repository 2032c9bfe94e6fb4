-- What an attempt left to be asked about by (keep_handle), if it did. Where the events were pruned
-- meanwhile there is none, and the tool's own look-up decides. $1 operation_id, $2 epoch of the
-- attempt. Index: event_operation.
SELECT e.detail ->> 'handle' AS handle
  FROM outbox.event e
 WHERE e.operation_id = $1::text AND e.kind = 'probe' AND e.epoch = $2::integer
   AND e.detail ? 'handle'
 ORDER BY e.id DESC
 LIMIT 1
