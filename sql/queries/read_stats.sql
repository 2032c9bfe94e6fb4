-- Statistics for the command line and the admin server, one JSON object per row.
SELECT row_to_json(s)::text AS stats FROM outbox.stats() s
