-- Where in the big table a tool is found. An index over (tool, seq) would cost each planner's transaction
-- an entry; daemons count the rows afterwards anyway (outbox.roll_up), and note what they saw: one row for
-- each tool and block of 2048 numbers, half a per mille of the table for twenty tools.
CREATE TABLE outbox.stretch (
    tool       text    NOT NULL,
    block      bigint  NOT NULL,
    first      bigint  NOT NULL,
    last       bigint  NOT NULL,
    operations integer NOT NULL,
    CONSTRAINT stretch_pkey PRIMARY KEY (tool, block)
);
COMMENT ON TABLE outbox.stretch IS 'Where among the operations that are counted (outbox.rollup) a tool is found';
COMMENT ON COLUMN outbox.stretch.tool IS 'Name of the tool';
COMMENT ON COLUMN outbox.stretch.block IS 'seq / 2048';
COMMENT ON COLUMN outbox.stretch.first IS 'Smallest seq of the tool in this block';
COMMENT ON COLUMN outbox.stretch.last IS 'Largest seq of the tool in this block';
COMMENT ON COLUMN outbox.stretch.operations IS 'How many of the tool were counted in this block';

-- Whoever counts holds the row of the events first: nobody counts while this is noted.
DO $$ BEGIN
    PERFORM FROM outbox.rollup r WHERE r.source = 'event' FOR UPDATE;
END $$;
INSERT INTO outbox.stretch (tool, block, first, last, operations)
SELECT o.tool, o.seq / 2048, min(o.seq), max(o.seq), count(*)
  FROM outbox.operation o
 WHERE o.seq <= (SELECT r.counted FROM outbox.rollup r WHERE r.source = 'operation')
 GROUP BY 1, 2;

-- As before (0009), and the stretches.
CREATE OR REPLACE FUNCTION outbox.count_page(source text, first bigint, last bigint)
    RETURNS TABLE (tool text, enqueued bigint, replayed bigint)
    LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH found AS (
        SELECT o.tool, o.created_at AS at, 1 AS enqueued, 0 AS replayed, o.seq
          FROM outbox.operation o
         WHERE count_page.source = 'operation' AND o.seq > count_page.first AND o.seq <= count_page.last
         UNION ALL
        SELECT coalesce((SELECT o.tool FROM outbox.operation o WHERE o.operation_id = e.operation_id),
                        'other'), e.at, 0, 1, NULL
          FROM outbox.event e
         WHERE count_page.source = 'event' AND e.id > count_page.first AND e.id <= count_page.last
           AND e.kind = 'replayed'
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
    ), seen AS (
        INSERT INTO outbox.stretch AS t (tool, block, first, last, operations)
        SELECT f.tool, f.seq / 2048, min(f.seq), max(f.seq), count(*)
          FROM found f WHERE f.seq IS NOT NULL GROUP BY 1, 2
            ON CONFLICT ON CONSTRAINT stretch_pkey DO UPDATE
           SET first = least(t.first, excluded.first), last = greatest(t.last, excluded.last),
               operations = t.operations + excluded.operations
    )
    SELECT s.tool, sum(s.enqueued)::bigint, sum(s.replayed)::bigint FROM summed s GROUP BY 1;
END $$;

DO $$ BEGIN
    PERFORM outbox.grant_rights();
    IF (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = current_user) THEN
        PERFORM outbox.disown();
    END IF;
END $$;
