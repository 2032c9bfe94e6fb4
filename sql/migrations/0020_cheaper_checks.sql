-- Every UPDATE of the queue collected its new rows for a look at their states: a sixth of what a lease
-- costs the server. Now the row itself is asked, by an expression beside the trigger, and the function is
-- called only for what is not plainly one of the usual states. It still casts to outbox.valid_work, so the
-- domain alone decides; a test holds that the expression lets nothing pass which the domain refuses.
-- Its names are bound here, when the trigger is made: no search_path of a session changes them.
DROP TRIGGER check_work ON outbox.queue;
CREATE OR REPLACE FUNCTION outbox.check_work() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    -- The cast is the check: a domain refuses, it never answers no.
    PERFORM ROW(NEW.status, NEW.due_at, NEW.leased_by, NEW.deadline_at, NEW.attempt_epoch,
                NEW.started_at, NEW.unknown_since, NEW.attention)::outbox.valid_work;
    RETURN NULL;
END $$;
CREATE TRIGGER check_work AFTER UPDATE ON outbox.queue
    FOR EACH ROW WHEN ((
        NEW.attention IS NULL AND CASE NEW.status
            WHEN 'attempting' THEN NEW.leased_by IS NOT NULL AND NEW.deadline_at IS NOT NULL
                                   AND NEW.due_at IS NOT NULL AND NEW.attempt_epoch IS NOT NULL
                                   AND NEW.started_at IS NOT NULL
            WHEN 'pending' THEN true
            WHEN 'scheduled' THEN NEW.due_at IS NOT NULL
            WHEN 'unknown' THEN NEW.due_at IS NOT NULL AND NEW.unknown_since IS NOT NULL
        END) IS NOT TRUE)
    EXECUTE FUNCTION outbox.check_work();

DO $$ BEGIN
    PERFORM outbox.grant_rights();
    IF (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = current_user) THEN
        PERFORM outbox.disown();
    END IF;
END $$;
