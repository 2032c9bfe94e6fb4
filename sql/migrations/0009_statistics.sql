-- How much was enqueued, how much of it was a replay, and what waits. A planner's transaction writes
-- nothing for this: daemons count the rows of the append-only tables afterwards, once each.

CREATE TABLE outbox.tally (
    at       timestamptz NOT NULL,
    tool     text        NOT NULL,
    enqueued bigint      NOT NULL DEFAULT 0,
    replayed bigint      NOT NULL DEFAULT 0,
    CONSTRAINT tally_pkey PRIMARY KEY (at, tool)
);
-- Minutes that are still to be folded into their hour.
CREATE INDEX tally_minutes ON outbox.tally (at)
    WHERE at <> date_bin('1 hour', at, '2000-01-01Z');
COMMENT ON TABLE outbox.tally IS 'What was enqueued and replayed, by the minute for two hours, then by the hour';
COMMENT ON COLUMN outbox.tally.at IS 'Start of the minute or hour in which the planner''s transaction began';
COMMENT ON COLUMN outbox.tally.enqueued IS 'Operations that were inserted, by either road';
COMMENT ON COLUMN outbox.tally.replayed IS 'Calls of enqueue that were answered with an earlier operation';

-- How far each table is counted. Numbers of a sequence are drawn in one order and committed in
-- another, so a row with a smaller number may appear after one with a larger. Hence two steps:
-- note the last number drawn (mark) and, after that, who is writing to the table at that moment
-- (writers); once none of those is left, every row up to the mark is there or never will be.
CREATE TABLE outbox.rollup (
    source  text   CONSTRAINT rollup_pkey PRIMARY KEY,
    counted bigint NOT NULL,
    mark    bigint NOT NULL,
    writers text[] NOT NULL DEFAULT '{}',
    CONSTRAINT rollup_source CHECK (source IN ('operation', 'event')),
    CONSTRAINT rollup_mark CHECK (counted <= mark)
);
COMMENT ON TABLE outbox.rollup IS 'How far outbox.roll_up has counted';
COMMENT ON COLUMN outbox.rollup.counted IS 'Rows up to this number are counted';
COMMENT ON COLUMN outbox.rollup.mark IS 'Rows up to this number are counted next, once the writers are gone';
COMMENT ON COLUMN outbox.rollup.writers IS 'Virtual transactions that may still commit a row up to the mark';

-- The last number that was drawn, by whatever transaction.
CREATE FUNCTION outbox.last_number(source text) RETURNS bigint
    LANGUAGE sql VOLATILE AS $$
    SELECT CASE WHEN source = 'operation'
        THEN (SELECT CASE WHEN s.is_called THEN s.last_value ELSE 0 END FROM outbox.operation_seq_seq s)
        ELSE (SELECT CASE WHEN s.is_called THEN s.last_value ELSE 0 END FROM outbox.event_id_seq s)
    END
$$;
COMMENT ON FUNCTION outbox.last_number(text) IS 'The last number drawn for a row of outbox.operation or outbox.event';

-- An INSERT locks its table before it draws a number, and keeps the lock until its end is visible.
-- A transaction prepared for two-phase commit keeps it under another name, -1/xid.
CREATE FUNCTION outbox.writers(source text) RETURNS text[]
    LANGUAGE sql VOLATILE AS $$
    SELECT coalesce(array_agg(DISTINCT l.virtualtransaction), '{}')
      FROM pg_locks l
     WHERE l.locktype = 'relation' AND l.granted AND l.mode = 'RowExclusiveLock'
       AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
       AND l.relation = CASE WHEN source = 'operation' THEN 'outbox.operation'::regclass
                             ELSE 'outbox.event'::regclass END
$$;
COMMENT ON FUNCTION outbox.writers(text) IS 'Virtual transactions that may have written to the table and have not ended';

-- Who of the noted writers is left. One that is gone may have been prepared since, so before anybody
-- is believed gone, all that are prepared at that moment take the place of the ordinary ones.
CREATE FUNCTION outbox.writers_left(noted text[], source text) RETURNS text[]
    LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    present  constant text[] := CASE WHEN noted = '{}' THEN '{}'::text[] ELSE outbox.writers(source) END;
    ordinary constant text[] := ARRAY (SELECT w FROM unnest(noted) w WHERE w NOT LIKE '-1/%');
BEGIN
    IF ordinary && present THEN
        RETURN noted;
    ELSIF ordinary <> '{}' THEN
        RETURN ARRAY (SELECT w FROM unnest(present) w WHERE w LIKE '-1/%');
    END IF;
    RETURN ARRAY (SELECT w FROM unnest(noted) w WHERE w = ANY (present));
END $$;
COMMENT ON FUNCTION outbox.writers_left(text[], text) IS 'The noted writers that have not ended, under the name they have now';

-- One page into the tally; what it added, per tool.
CREATE FUNCTION outbox.count_page(source text, first bigint, last bigint)
    RETURNS TABLE (tool text, enqueued bigint, replayed bigint)
    LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH found AS (
        SELECT o.tool, o.created_at AS at, 1 AS enqueued, 0 AS replayed
          FROM outbox.operation o
         WHERE count_page.source = 'operation' AND o.seq > first AND o.seq <= last
         UNION ALL
        SELECT coalesce((SELECT o.tool FROM outbox.operation o WHERE o.operation_id = e.operation_id),
                        'other'), e.at, 0, 1
          FROM outbox.event e
         WHERE count_page.source = 'event' AND e.id > first AND e.id <= last AND e.kind = 'replayed'
    ), summed AS (
        SELECT date_bin(CASE WHEN f.at > now() - interval '2 hours' THEN interval '1 minute'
                             ELSE interval '1 hour' END, f.at, '2000-01-01Z') AS at,
               f.tool, sum(f.enqueued)::bigint AS enqueued, sum(f.replayed)::bigint AS replayed
          FROM found f GROUP BY 1, 2
    ), added AS (
        INSERT INTO outbox.tally AS t (at, tool, enqueued, replayed)
        SELECT s.at, s.tool, s.enqueued, s.replayed FROM summed s
            ON CONFLICT ON CONSTRAINT tally_pkey DO UPDATE
           SET enqueued = t.enqueued + excluded.enqueued, replayed = t.replayed + excluded.replayed
    )
    SELECT s.tool, sum(s.enqueued)::bigint, sum(s.replayed)::bigint FROM summed s GROUP BY 1;
END $$;
COMMENT ON FUNCTION outbox.count_page(text, bigint, bigint) IS 'Counts the rows with first < number <= last';

-- Run by daemons every few seconds; one at a time, any of them. What it answers is what this very
-- call counted, so the sum over the daemons is the database's figure. A tool that is not in the
-- catalogue is `other`, and every tool of the catalogue is named, if only with zero.
CREATE FUNCTION outbox.roll_up(page integer DEFAULT 20000)
    RETURNS TABLE (tool text, enqueued bigint, replayed bigint, more boolean)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, outbox, pg_temp SET enable_seqscan = off AS $$
#variable_conflict use_column
DECLARE
    state   outbox.rollup;
    further boolean := false;
    upto    bigint;
BEGIN
    IF current_setting('transaction_isolation') NOT IN ('read committed', 'read uncommitted') THEN
        -- An older snapshot would not show what the writers committed meanwhile.
        RAISE SQLSTATE '25001' USING MESSAGE = 'outbox.roll_up runs at READ COMMITTED only';
    END IF;
    -- Nothing new: nothing is written either.
    PERFORM FROM outbox.rollup r WHERE r.counted < outbox.last_number(r.source);
    IF FOUND THEN
        -- Whoever holds this row does all of it; two would wait for each other over the tally.
        PERFORM FROM outbox.rollup r WHERE r.source = 'event' FOR UPDATE SKIP LOCKED;
    END IF;
    IF FOUND THEN
        FOR state IN SELECT r.* FROM outbox.rollup r ORDER BY r.source FOR UPDATE LOOP
            LOOP
                state.writers := outbox.writers_left(state.writers, state.source);
                EXIT WHEN state.writers <> '{}';
                IF state.counted = state.mark THEN
                    state.mark := outbox.last_number(state.source);
                    EXIT WHEN state.counted = state.mark;
                    state.writers := outbox.writers(state.source);  -- after the mark
                    CONTINUE;
                END IF;
                upto := least(state.counted + page, state.mark);
                RETURN QUERY
                SELECT CASE WHEN c.tool IN (SELECT k.tool FROM outbox.tool k) THEN c.tool ELSE 'other' END,
                       c.enqueued, c.replayed, false
                  FROM outbox.count_page(state.source, state.counted, upto) c;
                state.counted := upto;
                further := further OR upto < state.mark;
                EXIT;
            END LOOP;
            UPDATE outbox.rollup r
               SET counted = state.counted, mark = state.mark, writers = state.writers
             WHERE r.source = state.source
               AND (r.counted, r.mark, r.writers) IS DISTINCT FROM
                   (state.counted, state.mark, state.writers);
        END LOOP;
        WITH minutes AS (
            DELETE FROM outbox.tally t
             WHERE t.at <> date_bin('1 hour', t.at, '2000-01-01Z')
               AND t.at < date_bin('1 hour', now() - interval '2 hours', '2000-01-01Z')
            RETURNING t.*
        )
        INSERT INTO outbox.tally AS t (at, tool, enqueued, replayed)
        SELECT date_bin('1 hour', m.at, '2000-01-01Z'), m.tool, sum(m.enqueued), sum(m.replayed)
          FROM minutes m GROUP BY 1, 2
            ON CONFLICT ON CONSTRAINT tally_pkey DO UPDATE
           SET enqueued = t.enqueued + excluded.enqueued, replayed = t.replayed + excluded.replayed;
        DELETE FROM outbox.tally t WHERE t.at < now() - interval '90 days';
    END IF;
    RETURN QUERY SELECT k.tool, 0::bigint, 0::bigint, further
                   FROM (SELECT t.tool FROM outbox.tool t UNION SELECT 'other') k;
END $$;
COMMENT ON FUNCTION outbox.roll_up(integer) IS 'Counts what was enqueued and replayed since; what this call added, per tool';

-- From here on: what was there before is not counted, what is being written now is.
INSERT INTO outbox.rollup (source, counted, mark)
SELECT s.source, outbox.last_number(s.source), outbox.last_number(s.source)
  FROM (VALUES ('operation'), ('event')) s (source);

-- The queue is as small as the backlog; nothing else is read whole.
CREATE VIEW outbox.backlog AS
SELECT s.tool, s.status, s.count,
       CASE WHEN s.status IN ('pending', 'scheduled')
            THEN least(s.since, CASE WHEN s.first IS NOT NULL THEN
                     (SELECT o.created_at FROM outbox.operation o WHERE o.seq = s.first) END)
            ELSE s.since END AS since,
       s.served
  FROM (SELECT g.tool, g.status, g.count, g.since, g.first,
               EXISTS (SELECT FROM outbox.worker w
                        WHERE g.tool = ANY (w.tools) AND w.stopped_at IS NULL
                          AND w.heartbeat_at > now() - interval '1 minute') AS served
          FROM (SELECT q.tool, q.status, count(*) AS count,
                       min(CASE q.status
                               WHEN 'pending' THEN q.due_at
                               WHEN 'attempting' THEN q.attempted_at
                               -- Taken by the other side (202) is no doubt, until it is flagged.
                               WHEN 'unknown' THEN
                                   CASE WHEN NOT q.accepted OR q.attention IS NOT NULL
                                        THEN q.unknown_since END
                           END) AS since,
                       min(CASE WHEN q.status = 'scheduled'
                                  OR q.status = 'pending' AND q.due_at IS NULL THEN q.seq END) AS first
                  FROM outbox.queue q GROUP BY q.tool, q.status) g) s;
COMMENT ON VIEW outbox.backlog IS 'What is open, per tool and status, and since when';
COMMENT ON COLUMN outbox.backlog.tool IS 'Name of the tool';
COMMENT ON COLUMN outbox.backlog.status IS 'pending, scheduled, attempting, unknown';
COMMENT ON COLUMN outbox.backlog.count IS 'Operations in this status';
COMMENT ON COLUMN outbox.backlog.since IS 'pending: since when the oldest could run; scheduled: since when it is recorded; attempting, unknown: since when it is that; null: only accepted ones';
COMMENT ON COLUMN outbox.backlog.served IS 'A daemon that is alive runs this tool';

CREATE FUNCTION outbox.stats() RETURNS TABLE (
    tool text, status text, count bigint, oldest_age interval,
    enqueued_1h bigint, replayed_1h bigint, replay_rate_1h numeric,
    enqueued_30d bigint, replayed_30d bigint, replay_rate_30d numeric)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, outbox, pg_temp SET plan_cache_mode = force_custom_plan AS $$
    WITH backlog AS MATERIALIZED (
        SELECT b.tool, b.status, b.count, greatest(now() - b.since, interval '0') AS age
          FROM outbox.backlog b
    ), tallied AS (
        SELECT t.tool,
               coalesce(sum(t.enqueued) FILTER (WHERE t.at > now() - interval '1 hour'), 0)::bigint AS e1,
               coalesce(sum(t.replayed) FILTER (WHERE t.at > now() - interval '1 hour'), 0)::bigint AS r1,
               sum(t.enqueued)::bigint AS e30, sum(t.replayed)::bigint AS r30
          FROM outbox.tally t WHERE t.at > now() - interval '30 days' GROUP BY 1
    ), tools AS (
        SELECT k.tool FROM outbox.tool k UNION SELECT b.tool FROM backlog b UNION SELECT t.tool FROM tallied t
    )
    SELECT b.tool, b.status, b.count, b.age, NULL::bigint, NULL::bigint, NULL::numeric,
           NULL::bigint, NULL::bigint, NULL::numeric
      FROM backlog b
     UNION ALL
    SELECT k.tool, NULL,
           coalesce((SELECT sum(b.count) FROM backlog b WHERE b.tool = k.tool), 0)::bigint,
           (SELECT max(b.age) FROM backlog b WHERE b.tool = k.tool),
           coalesce(t.e1, 0), coalesce(t.r1, 0), round(t.r1::numeric / nullif(t.e1 + t.r1, 0), 4),
           coalesce(t.e30, 0), coalesce(t.r30, 0), round(t.r30::numeric / nullif(t.e30 + t.r30, 0), 4)
      FROM tools k LEFT JOIN tallied t ON t.tool = k.tool
     ORDER BY 1, 2 NULLS FIRST
$$;
COMMENT ON FUNCTION outbox.stats() IS 'Per tool (status null): all that is open, and what was enqueued and replayed; replay_rate is the replays'' share of both. Per tool and status: how many are open, and the age of the oldest';

-- Rights: what was granted before, and the above.
ALTER FUNCTION outbox.grant_rights() RENAME TO grant_rights_before_statistics;
COMMENT ON FUNCTION outbox.grant_rights_before_statistics() IS 'Part of outbox.grant_rights';
CREATE FUNCTION outbox.grant_rights() RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    role text;
BEGIN
    PERFORM outbox.grant_rights_before_statistics();
    FOR role IN
        SELECT r.rolname FROM pg_roles r
         WHERE r.rolname IN ('outbox_reader', 'outbox_operator', 'outbox_worker') ORDER BY 1
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION outbox.stats() TO %I', role);
        EXECUTE format('GRANT SELECT ON outbox.backlog TO %I', role);
        IF role = 'outbox_worker' THEN
            EXECUTE format('GRANT EXECUTE ON FUNCTION outbox.roll_up(integer) TO %I', role);
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
