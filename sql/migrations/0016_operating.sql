-- What a person on call asks for beside 0006: a list that stays quick on a million rows, and a look
-- at the other side now.

-- What ended otherwise than most is found without walking past those; and what waits for a person.
-- Neither is touched on the clean path.
CREATE INDEX outcome_without_effect ON outbox.outcome (seq) WHERE outcome <> 'succeeded';
CREATE INDEX queue_attention ON outbox.queue (seq) WHERE attention IS NOT NULL;

-- A tool that is seldom used is found by which blocks may hold it; a common one by walking back from
-- the newest. 70 KiB for a million rows, and no measurable cost for an insert.
CREATE INDEX operation_tool ON outbox.operation USING brin (tool text_bloom_ops)
    WITH (pages_per_range = 64, autosummarize = on);

-- Operations are numbered in the order in which they are inserted, and created_at, the start of the
-- planner's transaction, grows with that but for the time a transaction lasts. So an age is a number,
-- found by halving: a dozen or two look-ups in the primary key instead of a walk past all that is younger.
CREATE FUNCTION outbox.last_seq_before(at timestamptz) RETURNS bigint
    LANGUAGE plpgsql STABLE SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    -- Rows up to low are older; rows above high are not.
    low    bigint := coalesce((SELECT o.seq FROM outbox.operation o ORDER BY o.seq LIMIT 1), 1) - 1;
    high   bigint := coalesce((SELECT o.seq FROM outbox.operation o ORDER BY o.seq DESC LIMIT 1), 0);
    middle bigint;
    probed record;
BEGIN
    WHILE low < high LOOP
        middle := low + (high - low + 1) / 2;
        SELECT o.seq, o.created_at INTO probed FROM outbox.operation o
         WHERE o.seq > low AND o.seq <= middle ORDER BY o.seq DESC LIMIT 1;
        IF NOT FOUND OR probed.created_at < at THEN
            low := middle;
        ELSE
            high := probed.seq - 1;
        END IF;
    END LOOP;
    RETURN low;
END $$;
COMMENT ON FUNCTION outbox.last_seq_before(timestamptz) IS 'Operations with a larger seq were created later, but for those of longer transactions';

-- Newest first, a page at a time. What is looked for decides which table is walked; the states of a
-- page's rows are joined afterwards. Planned anew each time, with the filters known.
CREATE FUNCTION outbox.list(
    statuses text[] DEFAULT NULL, tool text DEFAULT NULL, older_than interval DEFAULT NULL,
    attention boolean DEFAULT false, after bigint DEFAULT NULL, page integer DEFAULT 100)
    RETURNS SETOF outbox.operations
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, outbox, pg_temp SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
DECLARE
    before constant timestamptz := now() - older_than;
    upto   bigint := coalesce(after - 1, 9223372036854775807);
    seqs   bigint[];
BEGIN
    IF older_than IS NOT NULL THEN
        -- With room for those whose planner's transaction was open for long.
        upto := least(upto, outbox.last_seq_before(before + interval '1 hour') + 10000);
    END IF;
    -- o.tool || '': where few rows are candidates, each is looked up by its seq, not by its tool.
    IF attention THEN
        seqs := ARRAY (
            SELECT f.seq
              FROM (SELECT q.seq, q.status FROM outbox.queue q WHERE q.attention IS NOT NULL
                     UNION ALL
                    SELECT e.seq, e.outcome FROM outbox.outcome e WHERE e.attention IS NOT NULL) f
              JOIN outbox.operation o ON o.seq = f.seq
             WHERE f.seq <= upto
               AND (statuses IS NULL OR f.status = ANY (statuses))
               AND (list.tool IS NULL OR o.tool || '' = list.tool)
               AND coalesce(o.created_at < before, true)
             ORDER BY f.seq DESC LIMIT page);
    ELSIF statuses IS NULL THEN
        seqs := ARRAY (
            SELECT o.seq FROM outbox.operation o
             WHERE o.seq <= upto
               AND (list.tool IS NULL OR o.tool = list.tool)
               AND coalesce(o.created_at < before, true)
             ORDER BY o.seq DESC LIMIT page);
    ELSE
        seqs := ARRAY (
            SELECT f.seq FROM (
                (SELECT q.seq FROM outbox.queue q JOIN outbox.operation o ON o.seq = q.seq
                  WHERE 'pending' = ANY (statuses) AND q.status = 'pending'
                    AND q.seq <= upto AND o.seq <= upto
                    AND (list.tool IS NULL OR q.tool = list.tool)
                    AND coalesce(o.created_at < before, true)
                  ORDER BY q.seq DESC LIMIT page)
                UNION ALL
                (SELECT q.seq FROM outbox.queue q JOIN outbox.operation o ON o.seq = q.seq
                  WHERE statuses && '{scheduled,attempting,unknown}'
                    AND q.status IN ('scheduled', 'attempting', 'unknown')
                    AND q.status = ANY (statuses)
                    AND q.seq <= upto AND o.seq <= upto
                    AND (list.tool IS NULL OR q.tool = list.tool)
                    AND coalesce(o.created_at < before, true)
                  ORDER BY q.seq DESC LIMIT page)
                UNION ALL
                (SELECT e.seq FROM outbox.outcome e JOIN outbox.operation o ON o.seq = e.seq
                  WHERE 'succeeded' = ANY (statuses) AND e.outcome = 'succeeded'
                    AND e.seq <= upto AND o.seq <= upto
                    AND (list.tool IS NULL OR o.tool = list.tool)
                    AND coalesce(o.created_at < before, true)
                  ORDER BY e.seq DESC LIMIT page)
                UNION ALL
                (SELECT e.seq FROM outbox.outcome e JOIN outbox.operation o ON o.seq = e.seq
                  WHERE statuses && '{failed,cancelled}'
                    AND e.outcome <> 'succeeded' AND e.outcome = ANY (statuses)
                    AND e.seq <= upto AND o.seq <= upto
                    AND (list.tool IS NULL OR o.tool || '' = list.tool)
                    AND coalesce(o.created_at < before, true)
                  ORDER BY e.seq DESC LIMIT page)) f
             ORDER BY f.seq DESC LIMIT page);
    END IF;
    RETURN QUERY
    SELECT v.* FROM outbox.operations v WHERE v.seq = ANY (seqs) ORDER BY v.seq DESC;
END $$;
COMMENT ON FUNCTION outbox.list(text[], text, interval, boolean, bigint, integer)
    IS 'Operations, newest first; the next page is what comes after the last row''s seq';

-- A probe now, whatever the schedule: also of what waits for a person and is not probed any more.
CREATE FUNCTION outbox.probe(operation_id text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, outbox, pg_temp SET enable_seqscan = off AS $$
DECLARE
    known bigint;
    work  outbox.queue;
BEGIN
    SELECT o.seq INTO known FROM outbox.operation o WHERE o.operation_id = probe.operation_id;
    IF NOT FOUND THEN
        RETURN 'not_found';
    END IF;
    -- Read before it is locked, and by seq alone, as in outbox.resolve.
    SELECT q.* INTO work FROM outbox.queue q WHERE q.seq = known;
    IF NOT FOUND OR work.status <> 'unknown' THEN
        RETURN 'not_unknown';
    END IF;
    SELECT q.* INTO work FROM outbox.queue q WHERE q.seq = known FOR UPDATE;
    IF NOT FOUND OR work.status <> 'unknown' THEN
        RETURN 'not_unknown';
    ELSIF work.leased_by IS NOT NULL AND work.due_at > clock_timestamp()
        AND work.due_at < 'infinity' THEN
        RETURN 'probing';  -- one prober at a time; until when is in due_at
    END IF;
    UPDATE outbox.queue q
       SET lease_epoch = q.lease_epoch + 1, due_at = clock_timestamp(), asked = true, leased_by = NULL
     WHERE q.seq = known;
    INSERT INTO outbox.event (operation_id, kind, epoch, actor, detail)
    VALUES (probe.operation_id, 'probe', work.lease_epoch + 1, session_user, '{"asked": true}');
    RETURN 'asked';
END $$;
COMMENT ON FUNCTION outbox.probe(text) IS 'Asks the other side now: asked, probing, not_unknown, not_found';

ALTER FUNCTION outbox.grant_rights() RENAME TO grant_rights_before_operating;
COMMENT ON FUNCTION outbox.grant_rights_before_operating() IS 'Part of outbox.grant_rights';
CREATE FUNCTION outbox.grant_rights() RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    role text;
BEGIN
    PERFORM outbox.grant_rights_before_operating();
    FOR role IN
        SELECT r.rolname FROM pg_roles r
         WHERE r.rolname IN ('outbox_reader', 'outbox_operator', 'outbox_worker') ORDER BY 1
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION '
            'outbox.list(text[], text, interval, boolean, bigint, integer) TO %I', role);
        IF role <> 'outbox_reader' THEN
            EXECUTE format('GRANT EXECUTE ON FUNCTION outbox.probe(text) TO %I', role);
        END IF;
    END LOOP;
END $$;
COMMENT ON FUNCTION outbox.grant_rights() IS 'Grants the rights of the outbox roles that exist; takes PUBLIC''s away';

DO $$ BEGIN
    PERFORM outbox.grant_rights();
    IF (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = current_user) THEN
        PERFORM outbox.disown();
    END IF;
END $$;
