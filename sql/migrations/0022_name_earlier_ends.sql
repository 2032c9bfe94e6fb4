-- The ends that were there before 0021. Rows of final operations: nobody waits for them but who arms one again.
UPDATE outbox.outcome e SET tool = o.tool
  FROM outbox.operation o
 WHERE o.seq = e.seq AND e.tool IS NULL AND (e.outcome <> 'succeeded' OR e.attention IS NOT NULL);
