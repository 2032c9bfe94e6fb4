-- What was enqueued and replayed in each of the last 24 hours, per tool; hours without either are
-- left out. Index: tally_pkey, by time.
SELECT row_to_json(h)::text AS hour
  FROM (SELECT t.tool, date_bin('1 hour', t.at, '2000-01-01Z') AS at,
               sum(t.enqueued)::bigint AS enqueued, sum(t.replayed)::bigint AS replayed
          FROM outbox.tally t
         WHERE t.at >= date_bin('1 hour', now() - interval '23 hours', '2000-01-01Z')
         GROUP BY 1, 2 ORDER BY 1, 2) h
