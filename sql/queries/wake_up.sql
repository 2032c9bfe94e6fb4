-- Gives the wake-up locks back. $1 tools.
SELECT t.tool, pg_advisory_unlock(1869968504, hashtext(t.tool)) AS unlocked
  FROM unnest($1::text[]) AS t (tool)
