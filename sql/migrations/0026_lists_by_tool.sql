-- Every list of the operator page by an index in its own order, whatever the filter and however few match.

-- Found by walking the stretches now.
DROP INDEX outbox.operation_tool;

-- The newest of one tool: what is not counted yet row by row, the rest stretch by stretch. Planned once:
-- there is one way to read each, and a hundred stretches must not be planned a hundred times.
CREATE FUNCTION outbox.newest_of_tool(
    tool text, succeeded boolean, upto bigint, before timestamptz, page integer) RETURNS bigint[]
    LANGUAGE plpgsql STABLE
    SET search_path = pg_catalog, outbox, pg_temp SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off SET enable_bitmapscan = off SET max_parallel_workers_per_gather = 0 SET jit = off AS $$
#variable_conflict use_column
DECLARE
    counted bigint := (SELECT r.counted FROM outbox.rollup r WHERE r.source = 'operation');
    low     bigint := counted + 1;
    high    bigint := upto;
    ended   bigint;
    found   bigint[] := '{}';
    piece   record;
    pieces  CURSOR FOR
        SELECT t.first, t.last, t.operations FROM outbox.stretch t
         WHERE t.tool = newest_of_tool.tool AND t.first <= upto AND t.block <= upto / 2048
         ORDER BY t.block DESC;
BEGIN
    OPEN pieces;
    LOOP
        IF succeeded AND low <= high THEN
            -- Past what has no end yet, at once.
            ended := (SELECT e.seq FROM outbox.outcome e WHERE e.seq <= high ORDER BY e.seq DESC LIMIT 1);
            EXIT WHEN ended IS NULL;
            high := least(high, ended);
        END IF;
        IF low <= high THEN
            found := found || ARRAY (
                SELECT o.seq FROM outbox.operation o
                 WHERE o.seq >= low AND o.seq <= high AND o.tool = newest_of_tool.tool
                   AND (before IS NULL OR o.created_at < before)
                   AND (NOT succeeded OR EXISTS (
                            SELECT FROM outbox.outcome e WHERE e.seq = o.seq AND e.outcome = 'succeeded'))
                 ORDER BY o.seq DESC LIMIT page - cardinality(found));
        END IF;
        EXIT WHEN cardinality(found) >= page;
        LOOP
            FETCH pieces INTO piece;
            EXIT WHEN piece IS NULL;
            -- A stretch in which nothing succeeded is known by its failures, which have an index.
            EXIT WHEN NOT succeeded OR piece.operations > (
                SELECT count(*) FROM outbox.outcome e
                 WHERE e.outcome IN ('failed', 'cancelled') AND e.outcome <> 'succeeded'
                   AND e.tool = newest_of_tool.tool AND e.seq >= piece.first AND e.seq <= piece.last);
        END LOOP;
        EXIT WHEN piece IS NULL;
        low := piece.first;
        high := least(piece.last, upto, counted);
    END LOOP;
    CLOSE pieces;
    RETURN found;
END $$;
COMMENT ON FUNCTION outbox.newest_of_tool(text, boolean, bigint, timestamptz, integer)
    IS 'Part of outbox.list: the newest operations of a tool, or of its succeeded ones';

-- Newest first, a page at a time. Each status is read from the index that has it by tool and seq: of every
-- tool a page, from which the newest are taken. The tools are found by jumping from one to the next, from
-- the far end, where an index that is worked off from its head has no dead entries. Rows are compared, not
-- column by column: then only that index has the order, and statistics of another time cannot talk the
-- planner into walking the table from its newest row until a page of a rare tool is found.
CREATE OR REPLACE FUNCTION outbox.list(
    statuses text[] DEFAULT NULL, tool text DEFAULT NULL, older_than interval DEFAULT NULL,
    attention boolean DEFAULT false, after bigint DEFAULT NULL, page integer DEFAULT 100)
    RETURNS SETOF outbox.operations
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, outbox, pg_temp SET plan_cache_mode = force_custom_plan
    SET enable_seqscan = off SET enable_bitmapscan = off SET max_parallel_workers_per_gather = 0 SET jit = off AS $$
#variable_conflict use_column
DECLARE
    before constant timestamptz := now() - older_than;
    upto   bigint := coalesce(after - 1, 9223372036854775807);
    state  text;
    seqs   bigint[] := '{}';
BEGIN
    IF older_than IS NOT NULL THEN
        -- With room for those whose planner's transaction was open for long.
        upto := least(upto, outbox.last_seq_before(before + interval '1 hour') + 10000);
    END IF;
    IF attention THEN
        -- || '': what is flagged is little, and no other index is worth a look.
        seqs := ARRAY (
            SELECT f.seq
              FROM ((SELECT q.seq FROM outbox.queue q
                      WHERE q.attention IS NOT NULL AND q.seq <= upto
                        AND (list.tool IS NULL OR q.tool || '' = list.tool)
                        AND (statuses IS NULL OR q.status || '' = ANY (statuses))
                        AND (before IS NULL OR (SELECT o.created_at < before FROM outbox.operation o
                                                 WHERE o.seq = q.seq))
                      ORDER BY q.seq DESC LIMIT page)
                     UNION ALL
                    (SELECT e.seq FROM outbox.outcome e
                      WHERE e.attention IS NOT NULL AND e.seq <= upto
                        AND (list.tool IS NULL OR e.tool || '' = list.tool)
                        AND (statuses IS NULL OR e.outcome || '' = ANY (statuses))
                        AND (before IS NULL OR (SELECT o.created_at < before FROM outbox.operation o
                                                 WHERE o.seq = e.seq))
                      ORDER BY e.seq DESC LIMIT page)) f
             ORDER BY f.seq DESC LIMIT page);
    ELSIF statuses IS NULL AND list.tool IS NULL THEN
        seqs := ARRAY (
            SELECT o.seq FROM outbox.operation o
             WHERE o.seq <= upto AND (before IS NULL OR o.created_at < before)
             ORDER BY o.seq DESC LIMIT page);
    ELSIF statuses IS NULL THEN
        seqs := outbox.newest_of_tool(list.tool, false, upto, before, page);
    ELSE
        FOREACH state IN ARRAY statuses LOOP
            IF state = 'pending' THEN
                seqs := seqs || ARRAY (
                    WITH RECURSIVE lane AS (
                        (SELECT q.tool, q.priority FROM outbox.queue q
                          WHERE q.status = 'pending' AND (list.tool IS NULL OR q.tool = list.tool)
                          ORDER BY q.tool DESC, q.priority DESC, q.seq DESC LIMIT 1)
                        UNION ALL
                        SELECT n.tool, n.priority
                          FROM lane l, LATERAL (
                               SELECT q.tool, q.priority FROM outbox.queue q
                                WHERE q.status = 'pending' AND (list.tool IS NULL OR q.tool = list.tool)
                                  AND (q.tool, q.priority) < (l.tool, l.priority)
                                ORDER BY q.tool DESC, q.priority DESC, q.seq DESC LIMIT 1) n
                    )
                    SELECT n.seq
                      FROM lane l, LATERAL (
                           SELECT q.seq FROM outbox.queue q
                            WHERE q.status = 'pending'
                              AND (q.tool, q.priority, q.seq) <= (l.tool, l.priority, upto)
                              AND (q.tool, q.priority) >= (l.tool, l.priority)
                              AND (before IS NULL OR (SELECT o.created_at < before
                                                        FROM outbox.operation o WHERE o.seq = q.seq))
                            ORDER BY q.tool DESC, q.priority DESC, q.seq DESC LIMIT page) n
                     ORDER BY n.seq DESC LIMIT page);
            ELSIF state IN ('scheduled', 'unknown') THEN
                seqs := seqs || ARRAY (
                    WITH RECURSIVE lane AS (
                        (SELECT q.tool FROM outbox.queue q
                          WHERE q.status = state AND q.status IN ('scheduled', 'unknown')
                            AND (list.tool IS NULL OR q.tool = list.tool)
                          ORDER BY q.tool DESC, q.seq DESC LIMIT 1)
                        UNION ALL
                        SELECT n.tool
                          FROM lane l, LATERAL (
                               SELECT q.tool FROM outbox.queue q
                                WHERE q.status = state AND q.status IN ('scheduled', 'unknown')
                                  AND list.tool IS NULL AND q.tool < l.tool
                                ORDER BY q.tool DESC, q.seq DESC LIMIT 1) n
                    )
                    SELECT n.seq
                      FROM lane l, LATERAL (
                           SELECT q.seq FROM outbox.queue q
                            WHERE q.status = state AND q.status IN ('scheduled', 'unknown')
                              AND (q.tool, q.seq) <= (l.tool, upto) AND q.tool >= l.tool
                              AND (before IS NULL OR (SELECT o.created_at < before
                                                        FROM outbox.operation o WHERE o.seq = q.seq))
                            ORDER BY q.tool DESC, q.seq DESC LIMIT page) n
                     ORDER BY n.seq DESC LIMIT page);
            ELSIF state = 'attempting' THEN
                -- As many as daemons have slots, among what waits. No index has them alone: it would
                -- cost every lease an entry. seq + 0: not by walking the queue from its newest row.
                seqs := seqs || ARRAY (
                    SELECT q.seq FROM outbox.queue q
                     WHERE q.status = 'attempting' AND q.status IN ('scheduled', 'attempting', 'unknown')
                       AND q.seq + 0 <= upto AND (list.tool IS NULL OR q.tool = list.tool)
                       AND (before IS NULL OR (SELECT o.created_at < before FROM outbox.operation o
                                                WHERE o.seq = q.seq))
                     ORDER BY q.seq + 0 DESC LIMIT page);
            ELSIF state IN ('failed', 'cancelled') THEN
                seqs := seqs || ARRAY (
                    WITH RECURSIVE lane AS (
                        (SELECT e.tool FROM outbox.outcome e
                          WHERE e.outcome = state AND e.outcome <> 'succeeded'
                            AND (list.tool IS NULL OR e.tool = list.tool)
                          ORDER BY e.tool DESC, e.seq DESC LIMIT 1)
                        UNION ALL
                        SELECT n.tool
                          FROM lane l, LATERAL (
                               SELECT e.tool FROM outbox.outcome e
                                WHERE e.outcome = state AND e.outcome <> 'succeeded'
                                  AND list.tool IS NULL AND e.tool < l.tool
                                ORDER BY e.tool DESC, e.seq DESC LIMIT 1) n
                    )
                    SELECT n.seq
                      FROM lane l, LATERAL (
                           SELECT e.seq FROM outbox.outcome e
                            WHERE e.outcome = state AND e.outcome <> 'succeeded'
                              AND (e.tool, e.seq) <= (l.tool, upto) AND e.tool >= l.tool
                              AND (before IS NULL OR (SELECT o.created_at < before
                                                        FROM outbox.operation o WHERE o.seq = e.seq))
                            ORDER BY e.tool DESC, e.seq DESC LIMIT page) n
                     ORDER BY n.seq DESC LIMIT page);
            ELSIF state = 'succeeded' AND list.tool IS NULL THEN
                seqs := seqs || ARRAY (
                    SELECT e.seq FROM outbox.outcome e
                     WHERE e.outcome = 'succeeded' AND e.seq <= upto
                       AND (before IS NULL OR (SELECT o.created_at < before FROM outbox.operation o
                                                WHERE o.seq = e.seq))
                     ORDER BY e.seq DESC LIMIT page);
            ELSIF state = 'succeeded' THEN
                seqs := seqs || outbox.newest_of_tool(list.tool, true, upto, before, page);
            END IF;
        END LOOP;
        seqs := ARRAY (SELECT DISTINCT s.seq FROM unnest(seqs) s (seq) ORDER BY s.seq DESC LIMIT page);
    END IF;
    RETURN QUERY
    SELECT v.* FROM outbox.operations v WHERE v.seq = ANY (seqs) ORDER BY v.seq DESC;
END $$;

DO $$ BEGIN
    PERFORM outbox.grant_rights();
    IF (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = current_user) THEN
        PERFORM outbox.disown();
    END IF;
END $$;
