-- What a filter matches, for a dry run. Parameters as in list_operations.
SELECT l.seq, 'matched' AS answer
  FROM outbox.list($1::text[], $2::text, $3::bigint * interval '1 millisecond', $4::boolean,
                   $5::bigint, $6::integer) l
