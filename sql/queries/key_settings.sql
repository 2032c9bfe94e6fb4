-- The key settings under which an operation's first attempt was sent.
-- $1 tool, $2 request_hash, inverted where a later attempt asked otherwise (lease_operations).
-- Index: request_pkey.
SELECT key_settings::text AS key_settings
  FROM outbox.request WHERE tool = $1 AND request_hash IN ($2::bigint, ~$2::bigint)
 ORDER BY request_hash <> $2::bigint LIMIT 1
