-- This worker is alive. $1 worker uuid, $2 name, $3 version, $4 tools. Index: worker_pkey.
INSERT INTO outbox.worker AS w (worker, name, version, tools)
VALUES ($1::uuid, $2, $3, $4::text[])
    ON CONFLICT (worker) DO UPDATE
   SET name = excluded.name, version = excluded.version, tools = excluded.tools,
       heartbeat_at = now(), stopped_at = NULL
RETURNING (extract(epoch FROM now()) * 1000000)::bigint AS now
