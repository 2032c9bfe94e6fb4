-- Operations for the command line, newest first. $1 statuses (null: all), $2 tool, $3 created
-- longer than this many ms ago, $4 only those that need attention, $5 limit.
SELECT row_to_json(o)::text AS operation
  FROM outbox.operations o
 WHERE ($1::text[] IS NULL OR o.status = ANY ($1::text[]))
   AND ($2::text IS NULL OR o.tool = $2)
   AND ($3::bigint IS NULL OR o.created_at < now() - $3::bigint * interval '1 millisecond')
   AND (NOT coalesce($4::boolean, false) OR o.needs_attention)
 ORDER BY o.seq DESC
 LIMIT coalesce($5::bigint, 100)
