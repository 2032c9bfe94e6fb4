-- Tells who listens on outbox_done which operations ended; a hint, in a transaction of its own that
-- need not be flushed, and skipped while the notification queue is over half full.
-- $1 a JSON array of operation ids, below 8000 bytes.
SELECT pg_notify('outbox_done', $1), set_config('synchronous_commit', 'off', true)
 WHERE pg_notification_queue_usage() < 0.5
