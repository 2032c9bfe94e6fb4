-- Records the namespace at the first start and returns the recorded one. $1 namespace.
-- No row: another daemon is recording it at this moment; run it again.
WITH recorded AS (
    INSERT INTO outbox.setting (name, value) VALUES ('namespace', $1)
        ON CONFLICT (name) DO NOTHING
    RETURNING value
)
SELECT value FROM recorded
UNION ALL
SELECT value FROM outbox.setting WHERE name = 'namespace'
LIMIT 1
