-- A person who steers says why, and where somebody may ask later, who: what a verdict (resolve) has
-- needed from the beginning, retry, acknowledge and pause_tool need as well.
CREATE FUNCTION outbox.require_words(what text, VARIADIC words text[]) RETURNS void
    LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF EXISTS (SELECT FROM unnest(words) w WHERE coalesce(w, '') !~ '[^[:space:]]') THEN
        PERFORM outbox.refuse('OB400', what, 'What is given is null or blank.',
            'It is kept for whoever reads the record later: say why, in a sentence.');
    END IF;
END $$;
COMMENT ON FUNCTION outbox.require_words(text, text[]) IS 'Refuses null and blank';

CREATE OR REPLACE FUNCTION outbox.retry(operation_id text, reason text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, outbox, pg_temp SET enable_seqscan = off AS $$
DECLARE
    known bigint;
BEGIN
    PERFORM outbox.require_words('a retry needs a reason', reason);
    SELECT o.seq INTO known FROM outbox.operation o WHERE o.operation_id = retry.operation_id;
    IF NOT FOUND THEN
        RETURN 'not_found';
    END IF;
    IF outbox.arm_again(known, jsonb_build_object('by', 'operator', 'reason', retry.reason)) THEN
        RETURN 'armed';
    END IF;
    RETURN 'not_failed';
END $$;

CREATE OR REPLACE FUNCTION outbox.acknowledge(operation_id text, reason text, actor text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, outbox, pg_temp SET enable_seqscan = off AS $$
DECLARE
    known   bigint;
    flagged outbox.outcome;
BEGIN
    PERFORM outbox.require_words('an acknowledgement needs a reason and an actor', reason, actor);
    SELECT o.seq INTO known FROM outbox.operation o WHERE o.operation_id = acknowledge.operation_id;
    IF NOT FOUND THEN
        RETURN 'not_found';
    END IF;
    SELECT e.* INTO flagged FROM outbox.outcome e
     WHERE e.seq = known AND e.attention IS NOT NULL FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 'nothing_to_acknowledge';
    END IF;
    UPDATE outbox.outcome e SET attention = NULL WHERE e.seq = known;
    INSERT INTO outbox.event (operation_id, kind, epoch, actor, detail)
    VALUES (acknowledge.operation_id, 'acknowledged', flagged.lease_epoch, acknowledge.actor,
            jsonb_build_object('attention', flagged.attention, 'reason', reason,
                'session_user', session_user));
    RETURN 'acknowledged';
END $$;

CREATE OR REPLACE FUNCTION outbox.pause_tool(tool text, reason text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, outbox, pg_temp AS $$
BEGIN
    PERFORM outbox.require_words('a pause needs a reason', reason);
    UPDATE outbox.tool t SET paused_at = coalesce(t.paused_at, now()), paused_reason = pause_tool.reason
     WHERE t.tool = pause_tool.tool;
    IF NOT FOUND THEN
        PERFORM outbox.check_tool(pause_tool.tool);
        RETURN 'not_found';  -- the catalogue is empty
    END IF;
    RETURN 'paused';
END $$;

DO $$ BEGIN
    PERFORM outbox.grant_rights();
    IF (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = current_user) THEN
        PERFORM outbox.disown();
    END IF;
END $$;
