-- outbox.enqueue: the road that also derives the id, checks the tool, detects misuse, records the
-- replay and returns the result. It writes the same row as a plain insert.

-- A sleeping daemon holds the tool's advisory lock: only then is there a NOTIFY (see file_work).
CREATE FUNCTION outbox.wake(tool text) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('outbox.wakeup', true) = 'off' THEN
        RETURN;
    END IF;
    IF NOT pg_try_advisory_xact_lock_shared(1869968504, hashtext(tool)) THEN
        PERFORM pg_notify('outbox_wake', tool);
    END IF;
END $$;
COMMENT ON FUNCTION outbox.wake(text) IS 'Wakes a sleeping daemon for a row that became pending without an insert';

CREATE FUNCTION outbox.edit_distance(a text, b text) RETURNS integer
    LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    above integer[] := ARRAY (SELECT generate_series(0, length(b)));
    line  integer[];
BEGIN
    FOR i IN 1 .. length(a) LOOP
        line := ARRAY[i];
        FOR j IN 1 .. length(b) LOOP
            line[j + 1] := least(above[j + 1] + 1, line[j] + 1,
                above[j] + CASE WHEN substr(a, i, 1) = substr(b, j, 1) THEN 0 ELSE 1 END);
        END LOOP;
        above := line;
    END LOOP;
    RETURN above[length(b) + 1];
END $$;
COMMENT ON FUNCTION outbox.edit_distance(text, text) IS 'Levenshtein distance, for the hint of OB404';

-- OB404. While no daemon has published a tool there is nothing to compare with, so nothing is said.
CREATE FUNCTION outbox.check_tool(tool text) RETURNS void
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    nearest text;
    known   text;
BEGIN
    IF EXISTS (SELECT FROM outbox.tool t WHERE t.tool = check_tool.tool)
        OR NOT EXISTS (SELECT FROM outbox.tool) THEN
        RETURN;
    END IF;
    SELECT string_agg(format('"%s"', n.name), ', ' ORDER BY n.distance, n.name) INTO nearest
      FROM (SELECT t.tool AS name,
                   outbox.edit_distance(lower(t.tool), lower(check_tool.tool)) AS distance
              FROM outbox.tool t ORDER BY 2, 1 LIMIT 3) n
     WHERE n.distance <= CASE WHEN length(check_tool.tool) < 4 THEN 1
                             ELSE greatest(2, length(check_tool.tool) / 3) END;
    SELECT string_agg(format('"%s"', t.tool), ', ' ORDER BY t.tool) INTO known
      FROM (SELECT c.tool FROM outbox.tool c ORDER BY 1 LIMIT 20) t;
    PERFORM outbox.refuse('OB404', format('there is no tool "%s"', check_tool.tool),
        format('Tools that daemons have published: %s.', known),
        coalesce('Did you mean ' || nearest || '?',
                 'Name one of the published tools, or add this one to the daemon''s configuration.'));
END $$;
COMMENT ON FUNCTION outbox.check_tool(text) IS 'Raises OB404 for a tool that no daemon has published';

-- OB413. jsonb holds 1e131071 in a few bytes, its text has 131072: what could be that large is
-- summed up from the numbers' values before any text is made.
CREATE FUNCTION outbox.check_size(arguments jsonb) RETURNS void
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    allowed constant bigint := 1048576;
    bytes   bigint := 0;
BEGIN
    IF pg_column_size(arguments) > 2000 THEN  -- below, the text stays in the megabytes at worst
        SELECT coalesce(sum(scale(n.value)
                   + CASE WHEN abs(n.value) >= 1e100 THEN trunc(log(abs(n.value))) ELSE 1 END), 0)
          INTO bytes
          FROM (SELECT v::numeric AS value
                  FROM jsonb_path_query(arguments, 'strict $.** ? (@.type() == "number")') v) n;
    END IF;
    IF bytes <= allowed THEN
        bytes := octet_length(arguments::text);
    END IF;
    IF bytes > allowed THEN
        PERFORM outbox.refuse('OB413', 'the arguments are too large',
            format('They have %s bytes as text; %s are the limit.', bytes, allowed),
            'Store the payload elsewhere and pass a reference to it.');
    END IF;
END $$;
COMMENT ON FUNCTION outbox.check_size(jsonb) IS 'Raises OB413 beyond 1 MiB of text';

-- The CHECKs of outbox.operation, said so that a model can mend its call. run_id also when the id is
-- explicit. A test holds the two equal.
CREATE FUNCTION outbox.check_request(
    tool text, arguments jsonb, operation_id text, run_id text, occurrence integer,
    priority smallint, run_at timestamptz, expires_at timestamptz, max_attempts integer,
    traceparent text, labels jsonb) RETURNS void
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    control constant text := E'[\\u0001-\\u001f\\u007f-\\u009f]';
    detail  text;
    way_out text;
BEGIN
    IF operation_id IS NULL AND run_id IS NULL THEN
        detail := 'Neither operation_id nor run_id is given.';
        way_out := 'Pass run_id to derive the id from the call, or an operation_id of your own.';
    ELSIF tool IS NULL OR octet_length(tool) NOT BETWEEN 1 AND 100 THEN
        detail := format('tool has %s bytes; 1 to 100 are allowed.', coalesce(octet_length(tool), 0));
        way_out := 'Pass the name of a tool.';
    ELSIF octet_length(operation_id) NOT BETWEEN 1 AND 200 THEN
        detail := format('operation_id has %s bytes; 1 to 200 are allowed.', octet_length(operation_id));
        way_out := 'Choose a shorter id, or a hash of the long one.';
    ELSIF operation_id ~ control THEN
        detail := 'operation_id contains a control character.';
        way_out := 'Choose an id of printable characters.';
    ELSIF position(':compensate:' IN operation_id) > 0 THEN
        detail := 'operation_id contains ":compensate:", which is kept for compensations.';
        way_out := 'Call outbox.compensate to undo an operation, or choose another id.';
    ELSIF jsonb_typeof(arguments) <> 'object' THEN
        detail := format('arguments is a JSON %s.', jsonb_typeof(arguments));
        way_out := 'Pass a JSON object, e.g. {"title": "disk full"}.';
    ELSIF octet_length(run_id) > 200 THEN
        detail := format('run_id has %s bytes; 200 are allowed.', octet_length(run_id));
        way_out := 'Choose a shorter run_id, or a hash of the long one.';
    ELSIF run_id ~ control THEN
        detail := 'run_id contains a control character.';
        way_out := 'Choose a run_id of printable characters.';
    ELSIF occurrence < 1 THEN
        detail := format('occurrence is %s.', occurrence);
        way_out := 'Leave it out for the first call of a run, pass 2 for the second intended one.';
    ELSIF priority NOT BETWEEN -100 AND 100 THEN
        detail := format('priority is %s; -100 (first) to 100 are allowed.', priority);
        way_out := 'Choose a priority in that range.';
    ELSIF NOT isfinite(run_at) OR NOT isfinite(expires_at) THEN
        detail := 'run_at or expires_at is infinite.';
        way_out := 'Leave it out instead.';
    ELSIF max_attempts NOT BETWEEN 1 AND 1000 THEN
        detail := format('max_attempts is %s; 1 to 1000 are allowed.', max_attempts);
        way_out := 'Leave it out to take the tool''s own limit.';
    ELSIF traceparent !~
        '^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$' THEN
        detail := 'traceparent is not of the form that W3C Trace Context prescribes.';
        way_out := 'Pass 00-<32 hex digits>-<16 hex digits>-<2 hex digits>, or leave it out.';
    ELSIF jsonb_typeof(labels) <> 'object'
        OR jsonb_path_exists(labels, '$.* ? (@.type() != "string")') THEN
        detail := 'labels is not a JSON object whose values are all strings.';
        way_out := 'Pass e.g. {"team": "support"}, or leave it out.';
    ELSE
        RETURN;
    END IF;
    PERFORM outbox.refuse('OB400', 'the operation cannot be recorded as it is', detail, way_out);
END $$;
COMMENT ON FUNCTION outbox.check_request(text, jsonb, text, text, integer, smallint, timestamptz,
    timestamptz, integer, text, jsonb) IS 'Raises OB400 where a CHECK of outbox.operation would refuse';

-- Same arguments: equal as jsonb, or equal in the key's canonical form (trimmed strings). Where a
-- number is beyond the key's limits there is no canonical form, and jsonb has the last word.
CREATE FUNCTION outbox.same_arguments(recorded jsonb, digest text, pruned boolean, given jsonb)
    RETURNS boolean
    LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF pruned THEN
        RETURN digest IS NULL OR digest = outbox.arguments_digest(given);
    END IF;
    IF recorded = given THEN
        RETURN true;
    END IF;
    RETURN outbox.canonical_json(recorded, true) = outbox.canonical_json(given, true);
EXCEPTION WHEN SQLSTATE 'OB400' THEN
    RETURN false;
END $$;
COMMENT ON FUNCTION outbox.same_arguments(jsonb, text, boolean, jsonb) IS 'Does a call say the same as the recorded one?';

-- failed → pending with a fresh budget of attempts; the epoch goes on. False: it is not failed (any
-- more): of two callers one finds the outcome row gone.
CREATE FUNCTION outbox.arm_again(seq bigint, detail jsonb) RETURNS boolean
    LANGUAGE plpgsql AS $$
DECLARE
    armed text;
BEGIN
    WITH ended AS (
        DELETE FROM outbox.outcome e WHERE e.seq = arm_again.seq AND e.outcome = 'failed'
        RETURNING e.*
    ), queued AS (
        INSERT INTO outbox.queue AS q (seq, tool, priority, status, lease_epoch, attempt_epoch,
                                       ambiguous, request_hash)
        SELECT o.seq, o.tool, o.priority, 'pending', e.lease_epoch + 1, e.attempt_epoch,
               e.ambiguous, e.request_hash
          FROM ended e JOIN outbox.operation o ON o.seq = e.seq
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
    PERFORM outbox.wake(armed);
    RETURN true;
END $$;
COMMENT ON FUNCTION outbox.arm_again(bigint, jsonb) IS 'failed → pending, the one way a failed operation runs again';

-- Inserts, or reads what is there. The insert waits for another transaction's insert of the same id:
-- if that one commits this one reads it, if it rolls back this one inserts. A row that was committed
-- after the snapshot of a REPEATABLE READ transaction gives 40001, from the server itself.
CREATE FUNCTION outbox.record_intent(
    operation_id text, derived boolean, tool text, arguments jsonb, run_id text, priority smallint,
    run_at timestamptz, expires_at timestamptz, max_attempts integer, traceparent text,
    labels jsonb, retry_failed boolean) RETURNS outbox.receipt
    LANGUAGE plpgsql AS $$
DECLARE
    answer outbox.receipt;
    known  record;
    same   boolean;
BEGIN
    LOOP
        INSERT INTO outbox.operation AS o (operation_id, tool, arguments, run_id, priority, run_at,
                                           expires_at, max_attempts, traceparent, labels)
        VALUES (operation_id, tool, arguments, run_id, priority, run_at, expires_at, max_attempts,
                traceparent, labels)
            ON CONFLICT ON CONSTRAINT operation_id_key DO NOTHING
        RETURNING o.operation_id, CASE WHEN o.run_at > now() THEN 'scheduled' ELSE 'pending' END,
                  o.created_at
             INTO answer.operation_id, answer.status, answer.created_at;
        IF FOUND THEN
            answer.replayed := false;
            answer.result_expired := false;
            answer.message := CASE answer.status
                WHEN 'scheduled' THEN 'This action is recorded and will be carried out at its time.'
                ELSE 'This action is recorded and will be carried out.' END;
            RETURN answer;
        END IF;

        SELECT v.*, o.arguments, o.arguments_digest INTO known
          FROM outbox.operations v JOIN outbox.operation o ON o.seq = v.seq
         WHERE v.operation_id = record_intent.operation_id;
        CONTINUE WHEN NOT FOUND;

        same := known.tool = tool AND outbox.same_arguments(
            known.arguments, known.arguments_digest, known.pruned_at IS NOT NULL, arguments);
        IF NOT same AND NOT derived THEN
            PERFORM outbox.refuse('OB422',
                format('operation "%s" is recorded as another action', operation_id),
                CASE WHEN known.tool <> tool
                     THEN format('It is recorded with tool "%s", this call names "%s".',
                                 known.tool, tool)
                     ELSE 'It is recorded with other arguments.' END,
                'Use a new operation_id for a new action, or repeat the call as it was recorded.');
        END IF;
        IF known.status = 'failed' AND retry_failed THEN
            CONTINUE WHEN NOT outbox.arm_again(known.seq, '{"by": "enqueue"}');
            RETURN (operation_id, 'pending', false, NULL, NULL,
                    'The previous attempt failed and had no effect; this action will be tried again.',
                    known.created_at, known.compensated_by, false)::outbox.receipt;
        END IF;

        INSERT INTO outbox.event (operation_id, kind, epoch, actor, detail)
        VALUES (operation_id, 'replayed', known.attempt_epoch, session_user,
                jsonb_build_object('status', known.status)
                || CASE WHEN same THEN '{}' ELSE '{"arguments_differed": true}' END::jsonb);
        RETURN (operation_id, known.status, true, known.result, known.error,
                outbox.status_message(known.status, true, derived, known.error, known.attention,
                    known.compensated_by, known.compensation_status, known.result_expired)
                || CASE WHEN same THEN ''
                        ELSE ' The arguments of this call differed from the recorded ones; '
                             'the recorded ones hold.' END
                || CASE WHEN known.status <> 'failed' THEN ''
                        ELSE ' To try it again, repeat the call with retry_failed.' END,
                known.created_at, known.compensated_by, known.result_expired)::outbox.receipt;
    END LOOP;
END $$;
COMMENT ON FUNCTION outbox.record_intent(text, boolean, text, jsonb, text, smallint, timestamptz,
    timestamptz, integer, text, jsonb, boolean) IS 'Inserts the intent, or replays what is recorded';

-- Validates a request and returns its id.
CREATE FUNCTION outbox.identify(
    tool text, arguments jsonb, operation_id text, run_id text, occurrence integer,
    priority smallint, run_at timestamptz, expires_at timestamptz, max_attempts integer,
    traceparent text, labels jsonb) RETURNS text
    LANGUAGE plpgsql STABLE AS $$
BEGIN
    PERFORM outbox.check_request(tool, arguments, operation_id, run_id, occurrence, priority,
        run_at, expires_at, max_attempts, traceparent, labels);
    PERFORM outbox.check_tool(tool);
    arguments := arguments || '{}';  -- not compressed: pg_column_size tells its true size
    IF operation_id IS NOT NULL THEN
        PERFORM outbox.check_size(arguments);
        RETURN operation_id;
    END IF;
    -- The key refuses a number by its value first; what is large otherwise is refused before.
    IF pg_column_size(arguments) > 2000 THEN
        PERFORM outbox.check_size(arguments);
        RETURN outbox.derive_id(tool, arguments, run_id, occurrence);
    END IF;
    operation_id := outbox.derive_id(tool, arguments, run_id, occurrence);
    PERFORM outbox.check_size(arguments);
    RETURN operation_id;
END $$;
COMMENT ON FUNCTION outbox.identify(text, jsonb, text, text, integer, smallint, timestamptz,
    timestamptz, integer, text, jsonb) IS 'Validates a request; its explicit or derived id';

-- Sessions keep its plans: one made while the tables were empty must not scan them once they are not.
CREATE FUNCTION outbox.enqueue(
    tool text, arguments jsonb DEFAULT '{}', operation_id text DEFAULT NULL,
    run_id text DEFAULT NULL, occurrence integer DEFAULT 1, priority smallint DEFAULT 0,
    run_at timestamptz DEFAULT NULL, expires_at timestamptz DEFAULT NULL,
    max_attempts integer DEFAULT NULL, traceparent text DEFAULT NULL, labels jsonb DEFAULT NULL,
    retry_failed boolean DEFAULT false) RETURNS outbox.receipt
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, outbox, pg_temp SET enable_seqscan = off AS $$
DECLARE
    derived constant boolean := operation_id IS NULL;
BEGIN
    -- An explicit null means the same as leaving it out.
    arguments := coalesce(arguments, '{}');
    occurrence := coalesce(occurrence, 1);
    priority := coalesce(priority, 0);
    operation_id := outbox.identify(tool, arguments, operation_id, run_id, occurrence, priority,
        run_at, expires_at, max_attempts, traceparent, labels);
    RETURN outbox.record_intent(operation_id, derived, tool, arguments, run_id, priority, run_at,
        expires_at, max_attempts, traceparent, labels, coalesce(retry_failed, false));
END $$;
COMMENT ON FUNCTION outbox.enqueue(text, jsonb, text, text, integer, smallint, timestamptz,
    timestamptz, integer, text, jsonb, boolean)
    IS 'Records an operation once: new, or replayed with what is recorded';
