-- One page of forgetting keys. $1 older than (ms), $2 where the page before ended, 0 at first; $3 rows,
-- $4 only count. A row per tool, and one without a tool for the page itself.
SELECT f.tool, f.forgotten, f.referenced, f.next, f.more
  FROM outbox.forget_keys($1::bigint * interval '1 millisecond', $2::bigint, $3::integer,
                          $4::boolean) f
