-- A planner's insert gets cheaper again (docs/benchmarks.md has the count); what it may do and is
-- promised stays. One insert that could only go wrong is refused now: a tool's name with a colon is a
-- compensation's.

-- Each node of a CHECK's expression costs its statement some 5,000 instructions, because the server
-- reads the expression anew every time: 190,000 for an intent and its queue row, more than their
-- four index entries and two rows together. So the same domains are asked elsewhere: the intent's by
-- the filing trigger, which every insert passes, and which keeps its expressions; the queue's where
-- its states change, on UPDATE. Its inserts are all ours (file_work, arm_again) and write constants.
ALTER TABLE outbox.operation DROP CONSTRAINT operation_valid;
ALTER TABLE outbox.queue DROP CONSTRAINT queue_valid;

-- A compensation's tool is TOOL:NAME, and only outbox.compensate may call it: the executor would
-- refuse such a row, when it is too late for the planner to be told.
ALTER DOMAIN outbox.valid_operation ADD CONSTRAINT operation_tool_reserved CHECK (
    (VALUE).compensates IS NOT NULL OR (VALUE).tool NOT LIKE '%:%');

COMMENT ON DOMAIN outbox.valid_operation IS 'The limits of an intent, asked by outbox.file_work';
COMMENT ON DOMAIN outbox.valid_work IS 'Which states a row of the queue can be in, asked by outbox.check_work';

CREATE FUNCTION outbox.check_work() RETURNS trigger
    LANGUAGE plpgsql AS $$
BEGIN
    -- The cast is the check: a domain refuses, it never answers no.
    PERFORM FROM changed q
     WHERE (ROW(q.status, q.due_at, q.leased_by, q.deadline_at, q.attempt_epoch, q.started_at,
                q.unknown_since, q.attention)::outbox.valid_work).status IS NULL;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION outbox.check_work() IS 'Refuses a state of the queue that cannot be';
CREATE TRIGGER check_work AFTER UPDATE ON outbox.queue
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION outbox.check_work();

-- The filing trigger, as before, and the limits first. What is usual is seen to be within them by a
-- few looks (each function in an expression costs every transaction some 2,000 instructions); all
-- else is asked of the domain, whose answer is the one that counts (a test holds the two equal).
-- Every name and operator is qualified instead of a pinned search_path.
CREATE OR REPLACE FUNCTION outbox.file_work() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    IF NEW.max_attempts IS NOT NULL OR NEW.traceparent IS NOT NULL OR NEW.labels IS NOT NULL
        OR NEW.run_at IS NOT NULL OR NEW.expires_at IS NOT NULL OR NEW.compensates IS NOT NULL
        OR NEW.priority OPERATOR(pg_catalog.<>) 0
        OR pg_catalog.octet_length(NEW.tool) OPERATOR(pg_catalog.>) 100
        OR NEW.tool OPERATOR(pg_catalog.~) '^$|:'
        OR pg_catalog.octet_length(NEW.operation_id OPERATOR(pg_catalog.||) coalesce(NEW.run_id, ''))
            OPERATOR(pg_catalog.>) 200
        OR (NEW.operation_id OPERATOR(pg_catalog.||) coalesce(NEW.run_id, ''))
            OPERATOR(pg_catalog.~) '[\u0001-\u001f\u007f-\u009f]|:compensate:'
        OR NEW.operation_id OPERATOR(pg_catalog.=) ''
        OR NOT NEW.arguments OPERATOR(pg_catalog.@>) '{}'
        OR pg_catalog.octet_length(NEW.arguments::pg_catalog.text) OPERATOR(pg_catalog.>) 1048576 THEN
        PERFORM ROW(NEW.operation_id, NEW.tool, NEW.arguments, NEW.run_id, NEW.priority, NEW.run_at,
            NEW.expires_at, NEW.max_attempts, NEW.traceparent, NEW.labels, NEW.compensates
            )::outbox.valid_operation;
    END IF;
    INSERT INTO outbox.queue (seq, tool, priority, status, due_at, expires_at)
    VALUES (NEW.seq, NEW.tool, NEW.priority,
            CASE WHEN NEW.run_at OPERATOR(pg_catalog.>) pg_catalog.now()
                 THEN 'scheduled' ELSE 'pending' END,
            NEW.run_at, NEW.expires_at);
    IF NOT (coalesce(pg_catalog.current_setting('outbox.wakeup', true)
                OPERATOR(pg_catalog.=) 'off', false)
            OR pg_catalog.pg_try_advisory_xact_lock_shared(
                1869968504, pg_catalog.hashtext(NEW.tool))) THEN
        PERFORM pg_catalog.pg_notify('outbox_wake', NEW.tool);
    END IF;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION outbox.file_work() IS 'Checks the intent''s limits, files the queue row in the planner''s transaction, wakes a sleeping daemon';

-- New functions are for nobody but us; what is new belongs to whoever owns the tables.
DO $$ BEGIN
    PERFORM outbox.grant_rights();
    IF (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = current_user) THEN
        PERFORM outbox.disown();
    END IF;
END $$;
