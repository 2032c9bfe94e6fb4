-- The roles of the outbox that this cluster does not have.
SELECT r.name
  FROM unnest(ARRAY['outbox_planner', 'outbox_worker', 'outbox_reader', 'outbox_operator']) AS r (name)
 WHERE NOT EXISTS (SELECT FROM pg_roles p WHERE p.rolname = r.name)
