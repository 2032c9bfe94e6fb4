-- One chunk of what a filter matches, armed again. Parameters as in list_operations; $7 reason.
SELECT l.seq, outbox.retry(l.operation_id, $7::text) AS answer
  FROM outbox.list($1::text[], $2::text, $3::bigint * interval '1 millisecond', $4::boolean,
                   $5::bigint, $6::integer) l
