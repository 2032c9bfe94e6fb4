-- Whether an attempt whose end nobody saw may have had an effect is a matter of what was sent, not
-- of what the tool's name stands for now: so it is kept with the request.
-- NULL: published by a daemon older than this column; counts as true.
ALTER TABLE outbox.request ADD COLUMN leaves_doubt boolean;
COMMENT ON COLUMN outbox.request.leaves_doubt IS 'An attempt whose end nobody saw may have had an effect; false for reads, and where effect and record are one transaction';

-- What is a read now was one: until now that was what told.
UPDATE outbox.request r SET leaves_doubt = false
  FROM outbox.tool t WHERE t.tool = r.tool AND t.effect = 'read';
