-- What an attempt can be asked about by (an MCP task's id), as an event of the attempt: a probe that
-- knows it asks by it first. Not fenced by the epoch: it stays true whoever has the operation now.
-- One autocommit statement that sees to its own flush: after a crash it is all that is known.
-- $1 operation_id, $2 epoch of the attempt, $3 the handle.
WITH durable AS MATERIALIZED (
    SELECT set_config('synchronous_commit',
               CASE current_setting('synchronous_commit')
                   WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true) AS flush
)
INSERT INTO outbox.event (operation_id, kind, epoch, detail)
SELECT o.operation_id, 'probe', $2::integer, jsonb_build_object('handle', $3::text)
  FROM outbox.operation o CROSS JOIN durable
 WHERE o.operation_id = $1::text
