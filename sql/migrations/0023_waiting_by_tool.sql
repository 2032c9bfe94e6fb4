-- For lists of the operator page (0026). Alone: a planner's transaction holds the intents and then waits for
-- the queue, so a migration never holds the queue while it waits for the intents.
-- What waits. A lease and a clean end never touch it: neither makes a row that waits.
CREATE INDEX queue_waiting ON outbox.queue (status, tool, seq) WHERE status IN ('scheduled', 'unknown');
