-- Where tools that are about to be published do not agree with work under way: operations that are
-- still open and were sent under another request (kind "key" where its key differs, else
-- "request"), and tools that a running daemon has published otherwise ("revision").
-- $1 a JSON array as for publish_tools, $2 workers of the asking process, $3 how many operations
-- are told at most per tool. Run at a start and at a reload: one scan of the queue for all tools
-- together.
WITH present AS MATERIALIZED (
    SELECT *
      FROM jsonb_to_recordset($1::jsonb) AS p (
               tool text, revision text, request_hash bigint, key_settings jsonb)
), other AS MATERIALIZED (
    SELECT q.tool, q.request_hash, count(*) AS operations
      FROM outbox.queue q
      JOIN present p ON p.tool = q.tool AND p.request_hash <> q.request_hash
     WHERE q.request_hash IS NOT NULL
     GROUP BY q.tool, q.request_hash
)
SELECT p.tool, CASE WHEN sent.other_key THEN 'key' ELSE 'request' END AS kind,
       sent.operations AS open, '' AS worker
  FROM present p
 CROSS JOIN LATERAL (
     SELECT least(coalesce(sum(o.operations), 0), $3::bigint)::bigint AS operations,
            bool_or(p.key_settings IS DISTINCT FROM (
                SELECT r.key_settings FROM outbox.request r
                 WHERE r.tool = p.tool AND r.request_hash IN (o.request_hash, ~o.request_hash)
                 LIMIT 1)) AS other_key
       FROM other o
      WHERE o.tool = p.tool) sent
 WHERE sent.operations > 0
UNION ALL
SELECT p.tool, 'revision', 0, w.name
  FROM present p
  JOIN outbox.tool t ON t.tool = p.tool AND t.revision <> p.revision
  JOIN outbox.worker w ON w.worker = t.published_by
 WHERE w.stopped_at IS NULL AND w.heartbeat_at > now() - interval '15 seconds'
   AND w.worker <> ALL ($2::uuid[])
 ORDER BY 1, 2
