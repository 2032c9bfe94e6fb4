-- Test only: the planners' own state, and a journal of every write to queue and outcome, in the
-- transaction that made it.
CREATE SCHEMA planner;
CREATE TABLE planner.intent (id text PRIMARY KEY);
CREATE TABLE planner.audit (
    id bigint GENERATED ALWAYS AS IDENTITY,
    xid bigint NOT NULL DEFAULT txid_current(),
    at timestamptz NOT NULL DEFAULT clock_timestamp(),
    place text, seq bigint, was text, epoch_was integer, status text, epoch integer,
    attempt_epoch integer, attempts integer, leased_by uuid, deadline_at timestamptz);

CREATE FUNCTION planner.audit_queue() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO planner.audit (place, seq, was, epoch_was, status, epoch, attempt_epoch, attempts, leased_by, deadline_at)
    VALUES ('queue', coalesce(NEW.seq, OLD.seq), OLD.status, OLD.lease_epoch, NEW.status, NEW.lease_epoch,
            NEW.attempt_epoch, NEW.attempts, NEW.leased_by, NEW.deadline_at);
    RETURN NULL;
END $$;
CREATE FUNCTION planner.audit_outcome() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO planner.audit (place, seq, was, epoch_was, status, epoch)
    VALUES ('outcome', coalesce(NEW.seq, OLD.seq), OLD.outcome, OLD.lease_epoch, NEW.outcome, NEW.lease_epoch);
    RETURN NULL;
END $$;
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON outbox.queue
    FOR EACH ROW EXECUTE FUNCTION planner.audit_queue();
CREATE TRIGGER audit AFTER INSERT OR UPDATE OR DELETE ON outbox.outcome
    FOR EACH ROW EXECUTE FUNCTION planner.audit_outcome();
