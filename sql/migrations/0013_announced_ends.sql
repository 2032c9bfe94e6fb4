-- Ends that people and planners cause are told on channel outbox_done like any other, so that whoever
-- waits for the operation need not poll for them. (Daemons tell of theirs after the commit, many in one
-- payload: announce_done.sql.)

-- As part of the caller's transaction: told if that commits, and then at once. A hint: skipped while
-- the notification queue is over half full, and where the caller wants no NOTIFY (two phases).
CREATE FUNCTION outbox.announce(operation_id text) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('outbox.wakeup', true) IS DISTINCT FROM 'off'
        AND pg_notification_queue_usage() < 0.5 THEN
        PERFORM pg_notify('outbox_done', jsonb_build_array(operation_id)::text);
    END IF;
END $$;
COMMENT ON FUNCTION outbox.announce(text) IS 'Tells who listens on outbox_done that this operation has ended';

CREATE OR REPLACE FUNCTION outbox.cancel(operation_id text, reason text DEFAULT NULL) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, outbox, pg_temp SET enable_seqscan = off AS $$
DECLARE
    intent bigint;
    known  text;
BEGIN
    -- Apart from the delete: a join to a queue that the planner believes empty would walk all of it.
    SELECT o.seq INTO intent FROM outbox.operation o WHERE o.operation_id = cancel.operation_id;
    IF NOT FOUND THEN
        RETURN 'not_found';
    END IF;
    LOOP
        -- The delete waits for a lease under way and finds the row too late then; the lock it would
        -- keep on that row, to the end of the planner's transaction, goes with the sub-transaction.
        BEGIN
            WITH taken AS (
                DELETE FROM outbox.queue q
                 WHERE q.seq = intent AND q.status IN ('pending', 'scheduled')
                RETURNING q.*
            ), ended AS (
                INSERT INTO outbox.outcome (seq, outcome, attempts, lease_epoch, attempt_epoch,
                                            started_at, request_hash, ambiguous)
                SELECT t.seq, 'cancelled', t.attempts, t.lease_epoch + 1, t.attempt_epoch,
                       t.started_at, t.request_hash, t.ambiguous
                  FROM taken t
            )
            INSERT INTO outbox.event (operation_id, kind, epoch, actor, detail)
            SELECT cancel.operation_id, 'cancelled', t.lease_epoch + 1, session_user,
                   jsonb_strip_nulls(jsonb_build_object('from', t.status, 'reason', cancel.reason))
              FROM taken t;
            IF FOUND THEN
                PERFORM outbox.announce(operation_id);
                RETURN 'cancelled';
            END IF;
            RAISE SQLSTATE 'OB000';
        EXCEPTION WHEN SQLSTATE 'OB000' THEN
            NULL;  -- nothing was taken, nothing stays locked
        END;
        SELECT v.status INTO known FROM outbox.operations v WHERE v.operation_id = cancel.operation_id;
        IF known IS NULL THEN
            RETURN 'not_found';  -- its key was forgotten meanwhile
        ELSIF known = 'cancelled' THEN
            RETURN 'already_cancelled';
        ELSIF known = 'failed' THEN
            RETURN 'already_failed';
        ELSIF known IN ('attempting', 'unknown', 'succeeded') THEN
            RETURN 'too_late';
        END IF;
        -- Pending again since the delete: an attempt was released unsent.
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION outbox.cancel_waiting(original bigint) RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    ended text;
BEGIN
    FOR ended IN
        WITH taken AS (
            DELETE FROM outbox.queue q WHERE q.waits_for = original AND q.status = 'scheduled'
            RETURNING q.*
        ), filed AS (
            INSERT INTO outbox.outcome (seq, outcome, attempts, lease_epoch, attempt_epoch, error,
                                        started_at, request_hash, ambiguous)
            SELECT t.seq, 'cancelled', t.attempts, t.lease_epoch + 1, t.attempt_epoch,
                   '{"code": "nothing_to_compensate", "message": "The original had no effect."}',
                   t.started_at, t.request_hash, t.ambiguous
              FROM taken t
        )
        INSERT INTO outbox.event (operation_id, kind, epoch, actor, detail)
        SELECT o.operation_id, 'cancelled', t.lease_epoch + 1, session_user,
               '{"from": "scheduled", "code": "nothing_to_compensate"}'
          FROM taken t JOIN outbox.operation o ON o.seq = t.seq
        RETURNING event.operation_id
    LOOP
        PERFORM outbox.announce(ended);
    END LOOP;
END $$;

CREATE OR REPLACE FUNCTION outbox.resolve(
    operation_id text, verdict text, reason text, actor text, expected_epoch integer,
    result jsonb DEFAULT NULL) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, outbox, pg_temp SET enable_seqscan = off AS $$
DECLARE
    intent   outbox.operation;
    work     outbox.queue;
    settle   interval;
    allowed  integer;
    settled  text;
    failure  jsonb;
    flag     text;
BEGIN
    IF verdict IS NULL OR verdict NOT IN ('applied', 'not_applied') THEN
        PERFORM outbox.refuse('OB400', 'the verdict must be applied or not_applied',
            format('It is %s.', coalesce('"' || verdict || '"', 'null')),
            'applied: the effect happened; not_applied: it certainly did not.');
    ELSIF coalesce(btrim(reason), '') = '' OR coalesce(btrim(actor), '') = '' THEN
        PERFORM outbox.refuse('OB400', 'a verdict needs a reason and an actor',
            'Both are kept in the events of the operation.', 'Say who found out, and how.');
    END IF;
    SELECT o.* INTO intent FROM outbox.operation o WHERE o.operation_id = resolve.operation_id;
    IF NOT FOUND THEN
        RETURN 'not_found';
    END IF;
    -- Read before it is locked: a row that a worker holds is left alone. The status is no condition
    -- beside seq: with few unknown the planner would walk the due index.
    SELECT q.* INTO work FROM outbox.queue q WHERE q.seq = intent.seq;
    IF NOT FOUND OR work.status <> 'unknown' THEN
        RETURN 'not_unknown';
    END IF;
    SELECT q.* INTO work FROM outbox.queue q WHERE q.seq = intent.seq FOR UPDATE;
    IF NOT FOUND OR work.status <> 'unknown' THEN
        RETURN 'not_unknown';
    END IF;
    IF work.attempt_epoch IS DISTINCT FROM expected_epoch THEN
        RETURN 'stale';
    END IF;
    SELECT t.settle, t.max_attempts INTO settle, allowed FROM outbox.tool t WHERE t.tool = work.tool;
    IF verdict = 'not_applied' AND clock_timestamp()
        < coalesce(work.deadline_at, work.unknown_since) + coalesce(settle, interval '10 seconds') THEN
        RETURN 'too_early';
    END IF;

    IF work.attention = 'late_effect' THEN
        -- An earlier attempt's late answer has proved an effect already: this can only end succeeded.
        settled := 'succeeded';
        flag := CASE WHEN verdict = 'applied' AND result <> work.result THEN 'duplicate_effect'
                     ELSE 'late_effect' END;
        result := CASE WHEN verdict = 'applied' THEN coalesce(result, work.result)
                       ELSE work.result END;
    ELSIF verdict = 'applied' THEN
        settled := 'succeeded';
        result := coalesce(result, work.result);
    ELSIF work.attempts < coalesce(intent.max_attempts, allowed, 8) THEN
        settled := 'scheduled';
        UPDATE outbox.queue q
           SET status = 'scheduled', lease_epoch = q.lease_epoch + 1, due_at = now(),
               leased_by = NULL, accepted = false, unknown_since = NULL, probes = 0,
               absent_count = 0, last_absent_at = NULL, attention = NULL, asked = false,
               result = NULL
         WHERE q.seq = work.seq;
        PERFORM outbox.wake(work.tool);
    ELSE
        settled := 'failed';
        result := NULL;
        failure := jsonb_build_object('code', 'not_applied', 'message',
            'A person found that it did not happen, and its attempts are used up.');
    END IF;
    IF settled <> 'scheduled' THEN
        DELETE FROM outbox.queue q WHERE q.seq = work.seq;
        INSERT INTO outbox.outcome (seq, outcome, attempts, lease_epoch, attempt_epoch, result,
                                    error, started_at, request_hash, ambiguous, attention)
        VALUES (work.seq, settled, work.attempts, work.lease_epoch + 1, work.attempt_epoch,
                resolve.result, failure, work.started_at, work.request_hash, work.ambiguous,
                flag);
        PERFORM outbox.announce(operation_id);
    END IF;
    INSERT INTO outbox.event (operation_id, kind, epoch, actor, detail)
    VALUES (resolve.operation_id, 'resolved', work.lease_epoch + 1, resolve.actor,
            jsonb_build_object('verdict', verdict, 'to', settled, 'reason', reason,
                'attempt_epoch', work.attempt_epoch, 'session_user', session_user));
    RETURN 'resolved';
END $$;

-- New functions are for nobody but us; what is new belongs to whoever owns the tables.
SELECT outbox.grant_rights();
DO $$ BEGIN
    IF (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = current_user) THEN
        PERFORM outbox.disown();
    END IF;
END $$;
