-- Tries the wake-up locks of idle tools, for the session: while one is held every commit that files
-- work for the tool notifies. Always tried, never waited for: a waiting exclusive lock would make
-- every planner's shared try fail. $1 tools.
SELECT t.tool, pg_try_advisory_lock(1869968504, hashtext(t.tool)) AS locked
  FROM unnest($1::text[]) AS t (tool)
