-- A person asks for what failed of one tool. The end did not say whose it was, so each failure was looked
-- up in the big table, newest first, until enough were of the tool. Now an end says so itself, but only one
-- that is not the usual: what simply succeeded keeps its size, and pays a comparison for it.
-- Migrations of their own for the column, the rows that are there, and each of the tables that what is built
-- on them locks: none holds a lock over a table while it reads it or waits for another one.
ALTER TABLE outbox.outcome ADD COLUMN tool text;
COMMENT ON COLUMN outbox.outcome.tool IS 'Copy of the intent''s, where there was no effect or a person must look; else null';

-- Names and operators are qualified: this runs in the session of whoever ends the operation.
CREATE FUNCTION outbox.name_tool() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    NEW.tool := (SELECT o.tool FROM outbox.operation o WHERE o.seq OPERATOR(pg_catalog.=) NEW.seq);
    RETURN NEW;
END $$;
COMMENT ON FUNCTION outbox.name_tool() IS 'Writes the tool into an end that is not the usual one';
CREATE TRIGGER name_tool BEFORE INSERT OR UPDATE OF outcome, attention ON outbox.outcome
    FOR EACH ROW WHEN (NEW.tool IS NULL AND (NEW.outcome <> 'succeeded' OR NEW.attention IS NOT NULL))
    EXECUTE FUNCTION outbox.name_tool();

DO $$ BEGIN
    PERFORM outbox.grant_rights();
    IF (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = current_user) THEN
        PERFORM outbox.disown();
    END IF;
END $$;
