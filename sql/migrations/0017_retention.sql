-- Retention. Payloads and results are pruned in small transactions; what stays is a tombstone that
-- still replays. Forgetting a key is something else: it allows the effect again.

-- Pruning walks the operations in their order, once each: a mark says how far it came, and what could
-- not be pruned when the mark passed (open, flagged, ended too late) is noted. No index on the clean
-- path is needed for that, and no walk over old tombstones.
CREATE TABLE outbox.retention (
    only_row  boolean CONSTRAINT retention_pkey PRIMARY KEY DEFAULT true
              CONSTRAINT retention_only_row CHECK (only_row),
    pruned_to bigint NOT NULL DEFAULT 0
);
COMMENT ON TABLE outbox.retention IS 'How far outbox.prune_payloads came; whoever locks the row prunes';
COMMENT ON COLUMN outbox.retention.pruned_to IS 'Operations up to this seq are pruned, or noted in outbox.unpruned';
INSERT INTO outbox.retention DEFAULT VALUES;

CREATE TABLE outbox.unpruned (seq bigint CONSTRAINT unpruned_pkey PRIMARY KEY);
COMMENT ON TABLE outbox.unpruned IS 'Operations up to retention.pruned_to that still have their payload';

-- Planned anew, and along the primary keys whatever the statistics say: a bitmap of all that is behind the
-- page is what a table never analysed would get, and a plan that avoids a scan looks so dear that it is compiled.
--
-- One page. What is pruned: final operations that ended longer ago than that, without a flag, and not
-- the original of a compensation that is still open. `after` is 0 for the first page of a run, then
-- the `next` of the page before. busy: somebody else prunes at this moment.
CREATE FUNCTION outbox.prune_payloads(older_than interval, after bigint, page integer DEFAULT 200)
    RETURNS TABLE (pruned bigint, next bigint, more boolean, busy boolean)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, outbox, pg_temp SET enable_seqscan = off
    SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    before  constant timestamptz := now() - older_than;
    mark    bigint;
    last    bigint;
    seqs    bigint[];
    ready   bigint[];
BEGIN
    SELECT r.pruned_to INTO mark FROM outbox.retention r WHERE r.only_row FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN QUERY SELECT 0::bigint, prune_payloads.after, true, true;
        RETURN;
    END IF;
    IF prune_payloads.after < mark THEN
        seqs := ARRAY (SELECT u.seq FROM outbox.unpruned u
                        WHERE u.seq > prune_payloads.after ORDER BY u.seq LIMIT page);
        next := CASE WHEN cardinality(seqs) < page THEN mark ELSE seqs[page] END;
        more := true;
    ELSE
        -- A few more are looked at, in case a planner's transaction was open for long.
        last := outbox.last_seq_before(before);
        seqs := ARRAY (SELECT o.seq FROM outbox.operation o
                        WHERE o.seq > prune_payloads.after AND o.seq <= last + 1000
                        ORDER BY o.seq LIMIT page);
        next := coalesce(seqs[cardinality(seqs)], prune_payloads.after);
        more := cardinality(seqs) >= page;
        IF prune_payloads.after = mark THEN
            -- The mark stays behind what an open transaction may still commit: the roll-up knows.
            mark := greatest(mark, least(next, last,
                (SELECT r.counted FROM outbox.rollup r WHERE r.source = 'operation')));
            UPDATE outbox.retention r SET pruned_to = mark WHERE r.only_row AND r.pruned_to < mark;
        END IF;
    END IF;

    -- Locked first, so that nobody arms, compensates or forgets them meanwhile; then looked at with a
    -- new snapshot.
    ready := ARRAY (SELECT e.seq FROM outbox.outcome e
                     WHERE e.seq = ANY (seqs) AND e.finished_at < before AND e.attention IS NULL
                       FOR UPDATE SKIP LOCKED);
    ready := ARRAY (SELECT o.seq FROM outbox.operation o
                     WHERE o.seq = ANY (ready) AND o.pruned_at IS NULL
                       AND NOT EXISTS (SELECT FROM outbox.operation c JOIN outbox.queue q ON q.seq = c.seq
                                        WHERE c.compensates = o.operation_id));
    -- The digest's own statements are planned once, not for every row.
    PERFORM set_config('plan_cache_mode', 'auto', true);
    UPDATE outbox.operation o
       SET arguments_digest = outbox.arguments_digest(o.arguments), arguments = '{}', pruned_at = now()
     WHERE o.seq = ANY (ready);
    PERFORM set_config('plan_cache_mode', 'force_custom_plan', true);
    -- Also where there is no result: a transaction with an older snapshot must notice (arm_again).
    UPDATE outbox.outcome e
       SET result_expired = e.result_expired OR e.result IS NOT NULL, result = NULL
     WHERE e.seq = ANY (ready);
    DELETE FROM outbox.unpruned u
     WHERE u.seq = ANY (seqs)
       AND NOT EXISTS (SELECT FROM outbox.operation o WHERE o.seq = u.seq AND o.pruned_at IS NULL);
    INSERT INTO outbox.unpruned (seq)
    SELECT o.seq FROM outbox.operation o
     WHERE o.seq = ANY (seqs) AND o.seq <= mark AND o.pruned_at IS NULL
        ON CONFLICT DO NOTHING;
    pruned := cardinality(ready);
    busy := false;
    RETURN NEXT;
END $$;
COMMENT ON FUNCTION outbox.prune_payloads(interval, bigint, integer)
    IS 'One page of pruning: arguments and results go, the key, the digest and the times stay';

-- One page. Events of what is open or flagged stay: the story is not over. Daemons that have not been
-- heard of for as long go with the first page.
CREATE FUNCTION outbox.prune_events(older_than interval, after bigint, page integer DEFAULT 500)
    RETURNS TABLE (pruned bigint, next bigint, more boolean)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, outbox, pg_temp SET enable_seqscan = off
    SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    before constant timestamptz := now() - older_than;
    ids    bigint[];
    old    boolean;
BEGIN
    IF prune_events.after = 0 THEN
        DELETE FROM outbox.worker w
         WHERE w.heartbeat_at < least(before, now() - interval '1 day');
    END IF;
    SELECT coalesce(array_agg(p.id ORDER BY p.id), '{}'), coalesce(bool_or(p.at < before), false)
      INTO ids, old
      FROM (SELECT e.id, e.at FROM outbox.event e
             WHERE e.id > prune_events.after ORDER BY e.id LIMIT page) p;
    DELETE FROM outbox.event e
     WHERE e.id = ANY (ids) AND e.at < before
       AND (e.kind <> 'replayed'
            OR e.id <= (SELECT r.counted FROM outbox.rollup r WHERE r.source = 'event'))
       AND NOT EXISTS (SELECT FROM outbox.operation o JOIN outbox.queue q ON q.seq = o.seq
                        WHERE o.operation_id = e.operation_id)
       AND NOT EXISTS (SELECT FROM outbox.operation o JOIN outbox.outcome c ON c.seq = o.seq
                        WHERE o.operation_id = e.operation_id AND c.attention IS NOT NULL);
    GET DIAGNOSTICS pruned = ROW_COUNT;
    next := coalesce(ids[cardinality(ids)], prune_events.after);
    more := old AND cardinality(ids) >= page;
    RETURN NEXT;
END $$;
COMMENT ON FUNCTION outbox.prune_events(interval, bigint, integer) IS 'One page of pruning the events';

-- Operations with all their traces, and their compensations with them.
CREATE FUNCTION outbox.forget(seqs bigint[]) RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    family bigint[];
    ids    text[];
BEGIN
    ids := ARRAY (SELECT o.operation_id FROM outbox.operation o WHERE o.seq = ANY (seqs));
    SELECT seqs || array_agg(c.seq), ids || array_agg(c.operation_id) INTO family, ids
      FROM outbox.operation c WHERE c.compensates = ANY (ids);
    DELETE FROM outbox.operation o WHERE o.seq = ANY (family);
    DELETE FROM outbox.outcome e WHERE e.seq = ANY (family);
    DELETE FROM outbox.unpruned u WHERE u.seq = ANY (family);
    DELETE FROM outbox.event e WHERE e.operation_id = ANY (ids);
END $$;
COMMENT ON FUNCTION outbox.forget(bigint[]) IS 'Part of outbox.forget_keys, which decides what may be forgotten';

-- One page of forgetting: with the row of the intent goes the knowledge that it ever ran. Kept are open
-- and flagged ones, and an original goes only together with its compensations: one without the other
-- would answer wrongly. What a planner's table points at is kept and counted. One row per tool, and one
-- without a tool for the page. With dry_run nothing is changed, and references are not tried.
CREATE FUNCTION outbox.forget_keys(
    older_than interval, after bigint, page integer DEFAULT 200, dry_run boolean DEFAULT false)
    RETURNS TABLE (tool text, forgotten bigint, referenced bigint, next bigint, more boolean)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, outbox, pg_temp SET enable_seqscan = off
    SET enable_bitmapscan = off SET jit = off SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    before  constant timestamptz := now() - older_than;
    seqs    bigint[];
    ready   bigint[];
    tools   text[];
    ids     text[];
    undoing bigint[];
    held    bigint[] := '{}';
    one     bigint;
BEGIN
    seqs := ARRAY (SELECT o.seq FROM outbox.operation o
                    WHERE o.seq > forget_keys.after AND o.seq <= outbox.last_seq_before(before) + 1000
                    ORDER BY o.seq LIMIT page);
    ready := ARRAY (SELECT e.seq FROM outbox.outcome e
                     WHERE e.seq = ANY (seqs) AND e.finished_at < before AND e.attention IS NULL
                       FOR UPDATE SKIP LOCKED);
    SELECT coalesce(array_agg(o.seq), '{}'), array_agg(o.operation_id) INTO ready, ids
      FROM outbox.operation o WHERE o.seq = ANY (ready) AND o.compensates IS NULL;
    undoing := ARRAY (SELECT c.seq FROM outbox.operation c WHERE c.compensates = ANY (ids));
    undoing := ARRAY (SELECT e.seq FROM outbox.outcome e
                       WHERE e.seq = ANY (undoing) AND e.finished_at < before AND e.attention IS NULL
                         FOR UPDATE SKIP LOCKED);
    -- A new snapshot: what became of them while they were not locked yet.
    ids := ARRAY (SELECT c.compensates FROM outbox.operation c
                   WHERE c.compensates = ANY (ids) AND c.seq <> ALL (undoing));
    SELECT coalesce(array_agg(o.seq), '{}'), coalesce(array_agg(o.tool), '{}') INTO ready, tools
      FROM outbox.operation o WHERE o.seq = ANY (ready) AND o.operation_id <> ALL (ids);
    IF NOT dry_run THEN
        SET CONSTRAINTS ALL IMMEDIATE;  -- also of those who would ask at the commit only
        BEGIN
            PERFORM outbox.forget(ready);
        EXCEPTION WHEN foreign_key_violation THEN
            FOREACH one IN ARRAY ready LOOP
                BEGIN
                    PERFORM outbox.forget(ARRAY[one]);
                EXCEPTION WHEN foreign_key_violation THEN
                    held := held || one;
                END;
            END LOOP;
        END;
    END IF;
    RETURN QUERY
    SELECT r.name, count(*) FILTER (WHERE r.seq <> ALL (held)),
           count(*) FILTER (WHERE r.seq = ANY (held)), NULL::bigint, NULL::boolean
      FROM unnest(ready, tools) r (seq, name) GROUP BY r.name;
    RETURN QUERY
    SELECT NULL::text, 0::bigint, 0::bigint,
           coalesce(seqs[cardinality(seqs)], forget_keys.after), cardinality(seqs) >= page;
END $$;
COMMENT ON FUNCTION outbox.forget_keys(interval, bigint, integer, boolean)
    IS 'One page of forgetting: the same id may be executed again afterwards';

-- A failed operation whose arguments were pruned must not run with what is left of them. Whoever asks
-- with the arguments at hand (enqueue with retry_failed) brings them back; the digest says whether
-- they are the same. OB410 for everybody else.
CREATE FUNCTION outbox.restore_arguments(seq bigint, arguments jsonb) RETURNS void
    LANGUAGE plpgsql AS $$
DECLARE
    known outbox.operation;
BEGIN
    SELECT o.* INTO known FROM outbox.operation o WHERE o.seq = restore_arguments.seq;
    IF known.pruned_at IS NULL THEN
        RETURN;
    END IF;
    IF known.arguments_digest IS DISTINCT FROM
        outbox.arguments_digest(coalesce(restore_arguments.arguments, '{}')) THEN
        PERFORM outbox.refuse('OB410',
            format('the arguments of operation "%s" were pruned', known.operation_id),
            'It is failed, which means no effect, and cannot run without its arguments.',
            'Enqueue it again as it was, with retry_failed => true: that brings them back.');
    END IF;
    UPDATE outbox.operation o
       SET arguments = coalesce(restore_arguments.arguments, '{}'), arguments_digest = NULL,
           pruned_at = NULL
     WHERE o.seq = restore_arguments.seq;
    INSERT INTO outbox.unpruned (seq) VALUES (restore_arguments.seq) ON CONFLICT DO NOTHING;
END $$;
COMMENT ON FUNCTION outbox.restore_arguments(bigint, jsonb) IS 'Brings pruned arguments back, or raises OB410';

DROP FUNCTION outbox.arm_again(bigint, jsonb, text);
CREATE FUNCTION outbox.arm_again(
    seq bigint, detail jsonb, ended_as text DEFAULT 'failed', arguments jsonb DEFAULT NULL)
    RETURNS boolean
    LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    ended    outbox.outcome;
    intent   record;
    original bigint;
BEGIN
    DELETE FROM outbox.outcome e WHERE e.seq = arm_again.seq AND e.outcome = arm_again.ended_as
       AND (e.outcome = 'failed' OR e.error ->> 'code' = 'nothing_to_compensate')
    RETURNING e.* INTO ended;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    -- Whoever pruned it had the row locked: what became of the arguments is seen here.
    PERFORM outbox.restore_arguments(arm_again.seq, arm_again.arguments);
    SELECT o.operation_id, o.tool, o.priority, o.compensates INTO intent
      FROM outbox.operation o WHERE o.seq = arm_again.seq;
    IF intent.compensates IS NOT NULL THEN
        SELECT w.seq INTO original FROM outbox.operation w WHERE w.operation_id = intent.compensates;
        PERFORM FROM outbox.outcome c WHERE c.seq = original AND c.outcome = 'succeeded';
        IF FOUND THEN
            original := NULL;
        END IF;
    END IF;
    INSERT INTO outbox.queue (seq, tool, priority, status, due_at, waits_for, lease_epoch,
                              attempt_epoch, ambiguous, request_hash)
    VALUES (arm_again.seq, intent.tool, intent.priority,
            CASE WHEN original IS NULL THEN 'pending' ELSE 'scheduled' END,
            CASE WHEN original IS NOT NULL THEN 'infinity'::timestamptz END, original,
            ended.lease_epoch + 1, ended.attempt_epoch, ended.ambiguous, ended.request_hash);
    INSERT INTO outbox.event (operation_id, kind, epoch, actor, detail)
    VALUES (intent.operation_id, 'retried', ended.lease_epoch + 1, session_user,
            arm_again.detail
            || jsonb_build_object('error', ended.error, 'attempts', ended.attempts));
    PERFORM outbox.cancel_waiting(arm_again.seq);
    PERFORM outbox.wake(intent.tool);
    RETURN true;
END $$;
COMMENT ON FUNCTION outbox.arm_again(bigint, jsonb, text, jsonb)
    IS 'failed → pending, the one way a failed operation runs again; cancelled only for compensations';

-- enqueue with retry_failed hands the arguments over; all else of the function is as it was.
DO $$
DECLARE
    was    constant text := pg_get_functiondef(
        'outbox.replay(text, boolean, text, jsonb, boolean)'::regprocedure);
    mended constant text := replace(was, 'outbox.arm_again(known.seq, ''{"by": "enqueue"}'')',
        'outbox.arm_again(known.seq, ''{"by": "enqueue"}'', ''failed'', replay.arguments)');
BEGIN
    IF was = mended THEN
        RAISE EXCEPTION 'outbox.replay does not arm as expected';
    END IF;
    EXECUTE mended;
END $$;

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
EXCEPTION WHEN SQLSTATE 'OB410' THEN
    RETURN 'pruned';
END $$;
COMMENT ON FUNCTION outbox.retry(text, text)
    IS 'failed (no effect) → pending: armed, not_failed, not_found, pruned (its arguments are gone)';

-- Asked after the state was read: the lock keeps away whoever prunes or forgets, and what they did
-- before is seen with a new snapshot (hence no longer STABLE).
CREATE OR REPLACE FUNCTION outbox.check_original(
    operation_id text, tool text, arguments_pruned boolean, result_expired boolean) RETURNS void
    LANGUAGE plpgsql VOLATILE AS $$
DECLARE
    needed text[];
BEGIN
    PERFORM FROM outbox.outcome e
      WHERE e.seq = (SELECT o.seq FROM outbox.operation o
                      WHERE o.operation_id = check_original.operation_id)
        FOR KEY SHARE;
    SELECT o.pruned_at IS NOT NULL, coalesce(e.result_expired, false)
      INTO arguments_pruned, result_expired
      FROM outbox.operation o LEFT JOIN outbox.outcome e ON e.seq = o.seq
     WHERE o.operation_id = check_original.operation_id;
    IF NOT FOUND THEN
        PERFORM outbox.refuse('OB404', format('there is no operation "%s"', operation_id),
            'Its key was forgotten at this moment.', 'Undo it by hand.');
    END IF;
    IF NOT arguments_pruned AND NOT result_expired THEN
        RETURN;
    END IF;
    SELECT t.needs_original INTO needed FROM outbox.tool t WHERE t.tool = check_original.tool;
    needed := coalesce(needed, '{arguments,result}');
    IF result_expired AND 'result' = ANY (needed) OR arguments_pruned AND 'arguments' = ANY (needed) THEN
        PERFORM outbox.refuse('OB410',
            format('what the compensation needs of operation "%s" was pruned', operation_id),
            format('"%s" uses the original''s %s.', tool, array_to_string(needed, ' and ')),
            'Undo it by hand, or with an ordinary operation that names what to undo.');
    END IF;
END $$;

ALTER FUNCTION outbox.grant_rights() RENAME TO grant_rights_before_retention;
COMMENT ON FUNCTION outbox.grant_rights_before_retention() IS 'Part of outbox.grant_rights';
CREATE FUNCTION outbox.grant_rights() RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    role text;
BEGIN
    PERFORM outbox.grant_rights_before_retention();
    FOR role IN
        SELECT r.rolname FROM pg_roles r
         WHERE r.rolname IN ('outbox_operator', 'outbox_worker') ORDER BY 1
    LOOP
        EXECUTE format('GRANT EXECUTE ON FUNCTION outbox.prune_payloads(interval, bigint, integer), '
            'outbox.prune_events(interval, bigint, integer), '
            'outbox.forget_keys(interval, bigint, integer, boolean) TO %I', role);
    END LOOP;
END $$;
COMMENT ON FUNCTION outbox.grant_rights() IS 'Grants the rights of the outbox roles that exist; takes PUBLIC''s away';

DO $$ BEGIN
    PERFORM outbox.grant_rights();
    IF (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = current_user) THEN
        PERFORM outbox.disown();
    END IF;
END $$;
