-- Operations for people, newest first. $1 statuses (null: all), $2 tool, $3 created longer than this
-- many ms ago, $4 only those that need attention, $5 seq behind which to go on, $6 rows.
SELECT l.seq, row_to_json(l)::text AS operation
  FROM outbox.list($1::text[], $2::text, $3::bigint * interval '1 millisecond', $4::boolean,
                   $5::bigint, $6::integer) l
