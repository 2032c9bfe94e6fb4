-- The catalogue for the command line, in the order of names.
SELECT row_to_json(t)::text AS tool FROM outbox.tool t ORDER BY t.tool
