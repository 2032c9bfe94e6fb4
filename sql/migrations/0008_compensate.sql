-- outbox.compensate: the one sanctioned way to a second effect. A compensation is an operation of its
-- own, ID:compensate:NAME with tool TOOL:NAME; it runs only once its original is known to have had
-- its effect, and until then it waits: scheduled, with waits_for set.
ALTER TABLE outbox.operation ADD COLUMN reason text;
COMMENT ON COLUMN outbox.operation.reason IS 'Why it was asked for; compensations only';

ALTER TABLE outbox.queue ADD COLUMN waits_for bigint;
COMMENT ON COLUMN outbox.queue.waits_for IS
    'seq of the original that a compensation waits for; null: it may run. Only maintenance clears it';
CREATE INDEX queue_waits ON outbox.queue (waits_for, seq) WHERE waits_for IS NOT NULL;

-- A daemon that does not say so may need both.
ALTER TABLE outbox.tool ADD COLUMN needs_original text[] NOT NULL DEFAULT '{arguments,result}';
COMMENT ON COLUMN outbox.tool.needs_original IS
    'For a compensation: which of the original''s arguments and result its templates name';

CREATE OR REPLACE FUNCTION outbox.status_message(
    status text, replayed boolean, derived boolean, error jsonb, attention text,
    compensated_by text, compensation_status text, result_expired boolean) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE
        WHEN compensated_by IS NOT NULL AND compensation_status = 'succeeded' THEN
            format('This action was performed and then undone by the compensation "%s".', compensated_by)
        WHEN compensated_by IS NOT NULL AND status <> 'succeeded' THEN
            format('This action is in progress, and if it happens or has happened, the compensation '
                   '"%s" will undo it. Do not send it again, and do not report failure.', compensated_by)
        WHEN compensated_by IS NOT NULL THEN
            format('This action was performed and is being undone by the compensation "%s" (%s).',
                   compensated_by, compensation_status)
        WHEN status = 'succeeded' THEN
            CASE WHEN NOT coalesce(replayed, false) THEN 'This action was performed.'
                 ELSE 'This action was already performed'
                      || CASE WHEN derived THEN ' in this run' ELSE ' under this operation id' END
                      || CASE WHEN result_expired THEN '; its result is no longer kept.'
                              ELSE '; returning the earlier result.' END END
        WHEN status = 'failed' THEN
            format('The previous attempt of this action failed and had no effect (%s%s).',
                   coalesce(error ->> 'code', 'failed'), coalesce(': ' || (error ->> 'message'), ''))
        WHEN status = 'cancelled' AND error ->> 'code' = 'nothing_to_compensate' THEN
            'This compensation was not carried out: the action it was to undo had no effect.'
        WHEN status = 'cancelled' THEN
            'This action was cancelled before it was carried out; it had no effect.'
        WHEN status = 'unknown' AND attention IS NOT NULL THEN
            'This action is in progress: it may have happened already, and a person has been asked. '
            || 'Do not send it again, and do not report failure.'
        WHEN status = 'unknown' THEN
            'This action is in progress: it may have happened already, and we are asking the other side. '
            || 'Do not send it again, and do not report failure.'
        WHEN status = 'attempting' THEN
            'This action is in progress: it is being carried out at this moment. '
            || 'Do not send it again, and do not assume failure.'
        WHEN status = 'scheduled' THEN
            'This action is in progress: it is recorded and waits for its time. '
            || 'Do not send it again, and do not assume failure.'
        ELSE
            'This action is in progress: it is recorded and waits to be carried out. '
            || 'Do not send it again, and do not assume failure.'
        END
        || CASE WHEN replayed THEN ' Nothing was executed again.' ELSE '' END
$$;

CREATE OR REPLACE VIEW outbox.operations AS
SELECT o.operation_id,
       s.status,
       NULL::boolean AS replayed,
       e.result,
       e.error,
       CASE WHEN q.waits_for IS NOT NULL AND q.status = 'scheduled' THEN
                'This compensation is recorded. It waits until it is known whether the action it is '
                'to undo happened, and is carried out only if it did.'
            ELSE outbox.status_message(s.status, NULL, o.run_id IS NOT NULL, e.error,
                coalesce(e.attention, q.attention), c.operation_id, c.status,
                coalesce(e.result_expired, false)) END AS message,
       o.created_at,
       c.operation_id AS compensated_by,
       coalesce(e.result_expired, false) AS result_expired,
       o.tool,
       o.run_id,
       coalesce(e.attempts, q.attempts) AS attempts,
       CASE WHEN e.seq IS NULL THEN q.attempt_epoch ELSE e.attempt_epoch END AS attempt_epoch,
       CASE WHEN e.seq IS NULL THEN q.started_at ELSE e.started_at END AS started_at,
       e.finished_at,
       o.compensates,
       CASE WHEN e.seq IS NULL THEN q.attention ELSE e.attention END AS attention,
       o.seq,
       o.priority,
       q.due_at,
       q.leased_by,
       CASE WHEN e.seq IS NULL THEN q.started_at ELSE e.started_at END
           - greatest(o.created_at, o.run_at) AS waited,
       e.finished_at - e.started_at AS took,
       coalesce(e.attention, q.attention) IS NOT NULL AS needs_attention,
       c.status AS compensation_status,
       q.error AS last_error,
       q.unknown_since,
       q.deadline_at,
       o.labels,
       o.pruned_at,
       o.reason
  FROM outbox.operation o
  LEFT JOIN outbox.queue q ON q.seq = o.seq
  LEFT JOIN outbox.outcome e ON e.seq = o.seq
 CROSS JOIN LATERAL (SELECT coalesce(e.outcome, q.status) AS status) s
  LEFT JOIN LATERAL (
       -- The compensation that counts: a finished one before one under way, failed ones never.
       SELECT u.operation_id, coalesce(ue.outcome, uq.status) AS status
         FROM outbox.operation u
         LEFT JOIN outbox.queue uq ON uq.seq = u.seq
         LEFT JOIN outbox.outcome ue ON ue.seq = u.seq
        WHERE u.compensates = o.operation_id
          AND (ue.outcome IS NULL OR ue.outcome = 'succeeded')
        ORDER BY ue.outcome NULLS LAST, u.seq
        LIMIT 1) c ON true;
COMMENT ON COLUMN outbox.operations.reason IS 'Why the compensation was asked for';

-- OB404 as before, and compensations are not enqueued: they have an original.
CREATE OR REPLACE FUNCTION outbox.check_tool(tool text) RETURNS void
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    nearest text;
    known   text;
BEGIN
    IF position(':' IN tool) > 0 AND EXISTS (
        SELECT FROM outbox.tool t WHERE t.tool = split_part(check_tool.tool, ':', 1)
           AND split_part(check_tool.tool, ':', 2) = ANY (t.compensations)) THEN
        PERFORM outbox.refuse('OB400', format('"%s" is a compensation, not a tool', tool),
            'A compensation undoes an operation that is recorded.',
            format('Call outbox.compensate(operation_id, ''%s'').', split_part(tool, ':', 2)));
    END IF;
    IF EXISTS (SELECT FROM outbox.tool t WHERE t.tool = check_tool.tool)
        OR NOT EXISTS (SELECT FROM outbox.tool) THEN
        RETURN;
    END IF;
    SELECT string_agg(format('"%s"', n.name), ', ' ORDER BY n.distance, n.name) INTO nearest
      FROM (SELECT t.tool AS name,
                   outbox.edit_distance(lower(t.tool), lower(check_tool.tool)) AS distance
              FROM outbox.tool t WHERE position(':' IN t.tool) = 0 ORDER BY 2, 1 LIMIT 3) n
     WHERE n.distance <= CASE WHEN length(check_tool.tool) < 4 THEN 1
                             ELSE greatest(2, length(check_tool.tool) / 3) END;
    SELECT string_agg(format('"%s"', t.tool), ', ' ORDER BY t.tool) INTO known
      FROM (SELECT c.tool FROM outbox.tool c WHERE position(':' IN c.tool) = 0
             ORDER BY 1 LIMIT 20) t;
    PERFORM outbox.refuse('OB404', format('there is no tool "%s"', check_tool.tool),
        format('Tools that daemons have published: %s.', known),
        coalesce('Did you mean ' || nearest || '?',
                 'Name one of the published tools, or add this one to the daemon''s configuration.'));
END $$;

-- What waited to undo an operation ends when that operation, which had no effect, is armed again:
-- a later effect is a new wish. Maintenance does the same for what ended (settle_compensations).
CREATE FUNCTION outbox.cancel_waiting(original bigint) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    WITH taken AS (
        DELETE FROM outbox.queue q WHERE q.waits_for = original AND q.status = 'scheduled'
        RETURNING q.*
    ), ended AS (
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
      FROM taken t JOIN outbox.operation o ON o.seq = t.seq;
END $$;
COMMENT ON FUNCTION outbox.cancel_waiting(bigint) IS 'Ends the compensations that wait for an operation without effect';

-- Back to pending with a fresh budget of attempts; the epoch goes on. False: it did not end so, or
-- not any more: of two callers one finds the outcome row gone. A compensation whose original has no
-- recorded effect waits for it (again).
DROP FUNCTION outbox.arm_again(bigint, jsonb);
CREATE FUNCTION outbox.arm_again(seq bigint, detail jsonb, ended_as text DEFAULT 'failed')
    RETURNS boolean
    LANGUAGE plpgsql AS $$
DECLARE
    armed text;
BEGIN
    WITH ended AS (
        DELETE FROM outbox.outcome e WHERE e.seq = arm_again.seq AND e.outcome = arm_again.ended_as
           AND (e.outcome = 'failed' OR e.error ->> 'code' = 'nothing_to_compensate')
        RETURNING e.*
    ), queued AS (
        INSERT INTO outbox.queue AS q (seq, tool, priority, status, due_at, waits_for, lease_epoch,
                                       attempt_epoch, ambiguous, request_hash)
        SELECT o.seq, o.tool, o.priority,
               CASE WHEN p.seq IS NULL THEN 'pending' ELSE 'scheduled' END,
               CASE WHEN p.seq IS NOT NULL THEN 'infinity'::timestamptz END, p.seq,
               e.lease_epoch + 1, e.attempt_epoch, e.ambiguous, e.request_hash
          FROM ended e JOIN outbox.operation o ON o.seq = e.seq
          LEFT JOIN LATERAL (
               SELECT w.seq FROM outbox.operation w
                WHERE w.operation_id = o.compensates
                  AND NOT EXISTS (SELECT FROM outbox.outcome c
                                   WHERE c.seq = w.seq AND c.outcome = 'succeeded')
                LIMIT 1) p ON true
        RETURNING q.tool, q.lease_epoch
    ), told AS (
        INSERT INTO outbox.event (operation_id, kind, epoch, actor, detail)
        SELECT o.operation_id, 'retried', q.lease_epoch, session_user,
               arm_again.detail || jsonb_build_object('error', e.error, 'attempts', e.attempts)
          FROM queued q, ended e JOIN outbox.operation o ON o.seq = e.seq
    )
    SELECT q.tool INTO armed FROM queued q;
    IF armed IS NULL THEN
        RETURN false;
    END IF;
    PERFORM outbox.cancel_waiting(arm_again.seq);
    PERFORM outbox.wake(armed);
    RETURN true;
END $$;
COMMENT ON FUNCTION outbox.arm_again(bigint, jsonb, text)
    IS 'failed → pending, the one way a failed operation runs again; cancelled only for compensations';

-- The one compensation that is meant; OB404 with the names where there is none of that name.
CREATE FUNCTION outbox.find_compensation(tool text, name text) RETURNS text
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    names   text[];
    listed  text;
    nearest text;
BEGIN
    SELECT t.compensations INTO names FROM outbox.tool t WHERE t.tool = find_compensation.tool;
    IF name = ANY (names) THEN
        RETURN name;
    ELSIF name IS NULL AND cardinality(names) = 1 THEN
        RETURN names[1];
    END IF;
    SELECT string_agg(format('"%s"', n), ', ' ORDER BY n) INTO listed FROM unnest(names) n;
    IF listed IS NULL THEN
        PERFORM outbox.refuse('OB404', format('tool "%s" has no compensations', tool),
            'No daemon has published any for it.',
            'Add compensate: to the tool in the daemon''s configuration, or undo it by hand.');
    ELSIF name IS NULL THEN
        PERFORM outbox.refuse('OB400', format('which compensation of tool "%s"?', tool),
            format('It has %s: %s.', cardinality(names), listed), 'Pass one of these as name.');
    END IF;
    SELECT format('"%s"', n) INTO nearest FROM unnest(names) n
     WHERE outbox.edit_distance(lower(n), lower(left(name, 64))) <= greatest(2, length(n) / 3)
     ORDER BY outbox.edit_distance(lower(n), lower(left(name, 64))), n LIMIT 1;
    PERFORM outbox.refuse('OB404', format('tool "%s" has no compensation "%s"', tool, name),
        format('Its compensations: %s.', listed),
        coalesce('Did you mean ' || nearest || '?', 'Pass one of these: ' || listed || '.'));
END $$;
COMMENT ON FUNCTION outbox.find_compensation(text, text) IS 'The compensation that is meant; raises OB404 with the names';

CREATE FUNCTION outbox.check_compensation(
    operation_id text, name text, arguments jsonb, reason text) RETURNS void
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    detail  text;
    way_out text;
BEGIN
    IF coalesce(operation_id, '') = '' THEN
        detail := 'No operation_id is given.';
        way_out := 'Pass the id of the operation to undo.';
    ELSIF octet_length(name) NOT BETWEEN 1 AND 64 THEN
        detail := format('name has %s bytes; 1 to 64 are allowed.', octet_length(name));
        way_out := 'Pass the name of a compensation of the tool.';
    ELSIF name ~ E'[\\u0001-\\u001f\\u007f-\\u009f]' THEN
        detail := 'name contains a control character.';
        way_out := 'Pass the name of a compensation of the tool.';
    ELSIF jsonb_typeof(arguments) <> 'object' THEN
        detail := format('arguments is a JSON %s.', jsonb_typeof(arguments));
        way_out := 'Pass a JSON object, e.g. {"note": "wrong queue"}.';
    ELSIF octet_length(reason) > 2000 THEN
        detail := format('reason has %s bytes; 2000 are allowed.', octet_length(reason));
        way_out := 'Say it in fewer words.';
    ELSE
        PERFORM outbox.check_size(arguments || '{}');
        RETURN;
    END IF;
    PERFORM outbox.refuse('OB400', 'the compensation cannot be recorded as it is', detail, way_out);
END $$;
COMMENT ON FUNCTION outbox.check_compensation(text, text, jsonb, text) IS 'Raises OB400 or OB413 for bad input of outbox.compensate';

-- OB410. Arguments and result are pruned together or apart; only what the templates name matters.
CREATE FUNCTION outbox.check_original(
    operation_id text, tool text, arguments_pruned boolean, result_expired boolean) RETURNS void
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    needed text[];
BEGIN
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
COMMENT ON FUNCTION outbox.check_original(text, text, boolean, boolean) IS 'Raises OB410 when a compensation needs what was pruned';

-- The answer for a compensation that is recorded already.
CREATE FUNCTION outbox.replay_compensation(id text, arguments jsonb) RETURNS outbox.receipt
    LANGUAGE plpgsql AS $$
DECLARE
    known record;
BEGIN
    SELECT v.*, o.arguments, o.arguments_digest INTO known
      FROM outbox.operations v JOIN outbox.operation o ON o.seq = v.seq WHERE v.operation_id = id;
    IF NOT outbox.same_arguments(known.arguments, known.arguments_digest,
                                 known.pruned_at IS NOT NULL, replay_compensation.arguments) THEN
        PERFORM outbox.refuse('OB422', format('"%s" is recorded with other arguments', id),
            'An operation is undone once by one compensation.',
            'Repeat the call as it was recorded; outbox.get tells what became of it.');
    END IF;
    INSERT INTO outbox.event (operation_id, kind, epoch, actor, detail)
    VALUES (id, 'replayed', known.attempt_epoch, session_user,
            jsonb_build_object('status', known.status));
    RETURN (id, known.status, true, known.result, known.error,
            CASE WHEN known.status = 'succeeded'
                 THEN 'This compensation was already carried out; returning its result.'
                 ELSE known.message END || ' Nothing was executed again.',
            known.created_at, known.compensated_by, known.result_expired)::outbox.receipt;
END $$;
COMMENT ON FUNCTION outbox.replay_compensation(text, jsonb) IS 'The receipt of a compensation that is recorded already';

-- Files the compensation, waiting unless its original has succeeded, which nothing can undo. The
-- insert waits for another transaction's compensation of the same name; false: that one is recorded.
CREATE FUNCTION outbox.record_compensation(
    original outbox.operation, name text, arguments jsonb, reason text, waiting boolean)
    RETURNS boolean
    LANGUAGE plpgsql AS $$
DECLARE
    filed bigint;
BEGIN
    INSERT INTO outbox.operation AS o (operation_id, tool, arguments, run_id, priority, traceparent,
                                       labels, compensates, reason)
    VALUES (original.operation_id || ':compensate:' || name, original.tool || ':' || name, arguments,
            original.run_id, original.priority, original.traceparent, original.labels,
            original.operation_id, record_compensation.reason)
        ON CONFLICT ON CONSTRAINT operation_id_key DO NOTHING
    RETURNING o.seq INTO filed;
    IF filed IS NULL THEN
        RETURN false;
    END IF;
    IF waiting THEN
        UPDATE outbox.queue q
           SET status = 'scheduled', due_at = 'infinity', waits_for = original.seq
         WHERE q.seq = filed;
    END IF;
    RETURN true;
END $$;
COMMENT ON FUNCTION outbox.record_compensation(outbox.operation, text, jsonb, text, boolean)
    IS 'Inserts a compensation; false when it is recorded already';

-- Called seldom: planned anew each time, so that no plan made for small tables walks large ones.
CREATE FUNCTION outbox.compensate(
    operation_id text, name text DEFAULT NULL, arguments jsonb DEFAULT '{}',
    reason text DEFAULT NULL) RETURNS outbox.receipt
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, outbox, pg_temp SET enable_seqscan = off
    SET plan_cache_mode = force_custom_plan AS $$
DECLARE
    original outbox.operation;
    state    record;
    known    record;
    id       text;
    filed    boolean;
BEGIN
    arguments := coalesce(arguments, '{}');
    PERFORM outbox.check_compensation(operation_id, name, arguments, reason);
    SELECT o.* INTO original FROM outbox.operation o WHERE o.operation_id = compensate.operation_id;
    IF NOT FOUND THEN
        PERFORM outbox.refuse('OB404', format('there is no operation "%s"', operation_id),
            'Only what is recorded can be compensated.', 'Pass the operation_id that enqueue returned.');
    END IF;
    IF name IS NULL THEN
        name := outbox.find_compensation(original.tool, NULL);
    END IF;
    id := operation_id || ':compensate:' || name;
    LOOP
        SELECT v.seq, v.status, v.error INTO known FROM outbox.operations v WHERE v.operation_id = id;
        -- What maintenance cancelled because there was nothing to undo may be asked for again: there
        -- may be something since. What somebody cancelled stays cancelled, like any operation.
        IF known.seq IS NOT NULL
            AND (known.status <> 'cancelled'
                 OR known.error ->> 'code' IS DISTINCT FROM 'nothing_to_compensate') THEN
            RETURN outbox.replay_compensation(id, arguments);
        ELSIF known.seq IS NULL THEN
            PERFORM outbox.find_compensation(original.tool, name);
        END IF;

        SELECT v.status, v.error, v.created_at, v.pruned_at, v.result_expired INTO state
          FROM outbox.operations v WHERE v.operation_id = compensate.operation_id;
        IF state.status IN ('pending', 'scheduled') THEN
            CONTINUE WHEN outbox.cancel(operation_id,
                format('compensate %s%s', name, ': ' || reason)) <> 'cancelled';
            RETURN (operation_id, 'cancelled', false, NULL, NULL,
                    'This action had not been carried out. It was cancelled instead of compensated, '
                    'and had no effect.', state.created_at, NULL, false)::outbox.receipt;
        ELSIF state.status IN ('failed', 'cancelled') THEN
            RETURN (operation_id, state.status, true, NULL, state.error,
                    format('There is nothing to compensate: this action %s and had no effect.',
                           CASE state.status WHEN 'failed' THEN 'failed' ELSE 'was cancelled' END),
                    state.created_at, NULL, false)::outbox.receipt;
        END IF;

        PERFORM outbox.check_original(operation_id, original.tool || ':' || name,
            state.pruned_at IS NOT NULL, state.result_expired);
        IF known.seq IS NULL THEN
            filed := outbox.record_compensation(original, name, arguments, reason,
                                                state.status <> 'succeeded');
        ELSE
            IF NOT outbox.same_arguments((SELECT o.arguments FROM outbox.operation o
                    WHERE o.seq = known.seq), NULL, false, arguments) THEN
                PERFORM outbox.refuse('OB422', format('"%s" is recorded with other arguments', id),
                    'It was cancelled because there was nothing to undo, and is asked for again.',
                    'Repeat the call as it was recorded.');
            END IF;
            filed := outbox.arm_again(known.seq, jsonb_strip_nulls(jsonb_build_object(
                'by', 'compensate', 'reason', reason)), 'cancelled');
        END IF;
        CONTINUE WHEN NOT filed;
        RETURN (SELECT (v.operation_id, v.status, false, NULL, NULL,
                        CASE v.status WHEN 'pending'
                             THEN 'The compensation is recorded and will be carried out.'
                             ELSE v.message END, v.created_at, NULL, false)::outbox.receipt
                  FROM outbox.operations v WHERE v.operation_id = id);
    END LOOP;
END $$;
COMMENT ON FUNCTION outbox.compensate(text, text, jsonb, text)
    IS 'Undoes an operation by a named compensation of its tool, once: new, or replayed with what is recorded';

CREATE OR REPLACE FUNCTION outbox.grant_rights() RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    planning constant text := 'outbox.enqueue(text, jsonb, text, text, integer, smallint, '
        'timestamptz, timestamptz, integer, text, jsonb, boolean), outbox.enqueue_many(jsonb), '
        'outbox.derive_id(text, jsonb, text, integer), '
        'outbox.operation_key(text, jsonb, text, integer), outbox.get(text), '
        'outbox.cancel(text, text), outbox.compensate(text, text, jsonb, text)';
    operating constant text := 'outbox.retry(text, text), '
        'outbox.resolve(text, text, text, text, integer, jsonb), '
        'outbox.acknowledge(text, text, text), outbox.pause_tool(text, text), '
        'outbox.resume_tool(text)';
    role text;
BEGIN
    REVOKE ALL ON SCHEMA outbox FROM PUBLIC;
    REVOKE ALL ON ALL TABLES IN SCHEMA outbox FROM PUBLIC;
    REVOKE ALL ON ALL FUNCTIONS IN SCHEMA outbox FROM PUBLIC;
    FOR role IN
        SELECT r.rolname FROM pg_roles r WHERE r.rolname IN
            ('outbox_planner', 'outbox_worker', 'outbox_reader', 'outbox_operator')
         ORDER BY 1
    LOOP
        EXECUTE format('GRANT USAGE ON SCHEMA outbox TO %I', role);
        -- The daemon acts for people through its admin server and for agents through MCP.
        IF role IN ('outbox_planner', 'outbox_operator', 'outbox_worker') THEN
            EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', planning, role);
            EXECUTE format('GRANT INSERT (operation_id, tool, arguments, run_id, priority, run_at, '
                'expires_at, max_attempts, traceparent, labels), SELECT (operation_id), '
                'REFERENCES (operation_id) ON outbox.operation TO %I', role);
        END IF;
        IF role IN ('outbox_operator', 'outbox_worker') THEN
            EXECUTE format('GRANT EXECUTE ON FUNCTION %s TO %I', operating, role);
        END IF;
        -- A view's functions are called with the rights of whoever reads it.
        IF role <> 'outbox_planner' THEN
            EXECUTE format('GRANT EXECUTE ON FUNCTION outbox.status_message(text, boolean, boolean, '
                'jsonb, text, text, text, boolean) TO %I', role);
        END IF;
        IF role IN ('outbox_reader', 'outbox_operator') THEN
            EXECUTE format('GRANT SELECT ON outbox.operations, outbox.attention, outbox.event, '
                'outbox.tool, outbox.worker TO %I', role);
        END IF;
        IF role = 'outbox_worker' THEN
            EXECUTE format('GRANT SELECT ON ALL TABLES IN SCHEMA outbox TO %I', role);
            EXECUTE format('GRANT INSERT, UPDATE, DELETE ON outbox.queue, outbox.outcome, '
                'outbox.worker TO %I', role);
            EXECUTE format('GRANT INSERT, DELETE ON outbox.event TO %I', role);
            EXECUTE format('GRANT INSERT, UPDATE ON outbox.tool, outbox.request, outbox.setting '
                'TO %I', role);
            EXECUTE format('GRANT UPDATE (arguments, arguments_digest, pruned_at) '
                'ON outbox.operation TO %I', role);
            EXECUTE format('GRANT EXECUTE ON FUNCTION outbox.arguments_digest(jsonb), '
                'outbox.wake(text) TO %I', role);
        END IF;
    END LOOP;
END $$;

DO $$ BEGIN
    PERFORM outbox.grant_rights();
    IF (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = current_user) THEN
        PERFORM outbox.disown();
    END IF;
END $$;
