-- What waits for a person, per tool and reason; beyond ten thousand of either kind it is said as
-- that many. Indexes: queue_attention and outcome_flagged, which hold flagged rows alone.
-- Each as JSON, and its parts beside it.
SELECT row_to_json(c)::text AS json, c.tool, c.attention AS reason, c.count
  FROM (SELECT f.tool, f.attention, count(*) AS count
          FROM (SELECT q.tool, q.attention
                  FROM (SELECT q.tool, q.attention FROM outbox.queue q
                         WHERE q.attention IS NOT NULL LIMIT 10000) q
                 UNION ALL
                SELECT o.tool, e.attention
                  FROM (SELECT e.seq, e.attention FROM outbox.outcome e
                         WHERE e.attention IS NOT NULL LIMIT 10000) e
                  JOIN outbox.operation o ON o.seq = e.seq) f
         GROUP BY 1, 2 ORDER BY 1, 2) c
