-- Which of these are tables of the outbox, in the order in which planners touch them. $1 names, with commas.
SELECT quote_ident(c.relname)
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE n.nspname = 'outbox' AND c.relkind = 'r'
   AND c.relname = ANY (string_to_array($1, ','))
 ORDER BY array_position(ARRAY['tool', 'operation', 'queue', 'outcome', 'event'], c.relname::text), c.relname
