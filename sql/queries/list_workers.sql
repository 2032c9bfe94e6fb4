-- Daemons for the command line, the latest start first; alive is the contract's 15 s.
SELECT row_to_json(w)::text AS worker
  FROM (SELECT worker, name, version, tools, started_at, heartbeat_at, stopped_at,
               stopped_at IS NULL AND heartbeat_at > now() - interval '15 seconds' AS alive
          FROM outbox.worker
         ORDER BY started_at DESC, worker
         LIMIT 1000) w
