-- Upserts this daemon's tools into the catalogue and what their attempts ask (outbox.request);
-- other daemons' tools and pauses are left alone. $1 worker uuid, $2 a JSON array of
-- {tool, description, effect, revision, dedup_fields, compensations, max_attempts, timeout_ms,
--  settle_ms, arguments_schema, needs_original, request_hash, key_settings, leaves_doubt}. In name
-- order: no deadlocks. A request that one configuration calls a write stays one, also where
-- another, or the next, calls the same request a read.
WITH published AS MATERIALIZED (
    SELECT *
      FROM jsonb_to_recordset($2::jsonb) AS p (
               tool text, description text, effect text, revision text, dedup_fields jsonb,
               compensations jsonb, max_attempts integer, timeout_ms bigint, settle_ms bigint,
               arguments_schema jsonb, needs_original jsonb, request_hash bigint,
               key_settings jsonb, leaves_doubt boolean)
     ORDER BY tool
), asked AS (
    INSERT INTO outbox.request AS r (tool, request_hash, key_settings, leaves_doubt)
    SELECT tool, request_hash, key_settings, leaves_doubt FROM published
        ON CONFLICT (tool, request_hash) DO UPDATE
       SET leaves_doubt = excluded.leaves_doubt
     WHERE r.leaves_doubt IS NULL OR excluded.leaves_doubt AND NOT r.leaves_doubt
)
INSERT INTO outbox.tool AS t (tool, description, effect, revision, dedup_fields, compensations,
                              max_attempts, timeout, settle, arguments_schema, needs_original,
                              published_by)
SELECT tool, description, effect, revision,
       ARRAY (SELECT jsonb_array_elements_text(dedup_fields)),
       ARRAY (SELECT jsonb_array_elements_text(compensations)),
       max_attempts, timeout_ms * interval '1 millisecond', settle_ms * interval '1 millisecond',
       nullif(arguments_schema, 'null'),
       ARRAY (SELECT jsonb_array_elements_text(needs_original)), $1::uuid
  FROM published
    ON CONFLICT (tool) DO UPDATE
   SET description = excluded.description, effect = excluded.effect,
       revision = excluded.revision, dedup_fields = excluded.dedup_fields,
       compensations = excluded.compensations, max_attempts = excluded.max_attempts,
       timeout = excluded.timeout, settle = excluded.settle,
       arguments_schema = excluded.arguments_schema, needs_original = excluded.needs_original,
       published_at = now(), published_by = excluded.published_by
