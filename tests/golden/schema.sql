CREATE SCHEMA outbox;
COMMENT ON SCHEMA outbox IS 'outboxd: one planner step commits at most one side effect';
CREATE TYPE outbox.enqueue_request AS (
    tool text,
    arguments jsonb,
    operation_id text,
    run_id text,
    occurrence integer,
    priority smallint,
    run_at timestamp with time zone,
    expires_at timestamp with time zone,
    max_attempts integer,
    traceparent text,
    labels jsonb,
    retry_failed boolean
);
COMMENT ON TYPE outbox.enqueue_request IS 'One element of what outbox.enqueue_many takes: the parameters of enqueue';
CREATE DOMAIN outbox.event_kind AS text
    CONSTRAINT event_kind CHECK ((VALUE = ANY (ARRAY['replayed'::text, 'retry'::text, 'failed'::text, 'succeeded'::text, 'released'::text, 'unknown'::text, 'lease_expired'::text, 'probe'::text, 'attention'::text, 'resolved'::text, 'acknowledged'::text, 'cancelled'::text, 'retried'::text, 'late_result'::text, 'timeline'::text, 'result_lost'::text])));
COMMENT ON DOMAIN outbox.event_kind IS 'The closed set of kinds, for the CHECK of outbox.event';
CREATE TYPE outbox.operation_limits AS (
    operation_id text,
    tool text,
    arguments jsonb,
    run_id text,
    priority smallint,
    run_at timestamp with time zone,
    expires_at timestamp with time zone,
    max_attempts integer,
    traceparent text,
    labels jsonb,
    compensates text
);
COMMENT ON TYPE outbox.operation_limits IS 'What of an intent has limits, for its CHECK';
CREATE TYPE outbox.receipt AS (
    operation_id text,
    status text,
    replayed boolean,
    result jsonb,
    error jsonb,
    message text,
    created_at timestamp with time zone,
    compensated_by text,
    result_expired boolean
);
COMMENT ON TYPE outbox.receipt IS 'What enqueue answers: exactly one row, for a new operation and for a known one';
COMMENT ON COLUMN outbox.receipt.status IS 'pending, scheduled, attempting, unknown, succeeded, failed, cancelled';
COMMENT ON COLUMN outbox.receipt.replayed IS 'true: it was recorded before, and nothing is executed; null from outbox.get';
COMMENT ON COLUMN outbox.receipt.result IS 'What the tool answered, when succeeded';
COMMENT ON COLUMN outbox.receipt.error IS 'Why it failed, {"code", "message"}; failed means no effect';
COMMENT ON COLUMN outbox.receipt.message IS 'One sentence or two for a model';
COMMENT ON COLUMN outbox.receipt.compensated_by IS 'The operation that undoes this one';
COMMENT ON COLUMN outbox.receipt.result_expired IS 'The result was pruned; the operation still replays';
CREATE DOMAIN outbox.valid_operation AS outbox.operation_limits
    CONSTRAINT operation_arguments CHECK ((((VALUE).arguments @> '{}'::jsonb) AND (octet_length(((VALUE).arguments)::text) <= 1048576)))
    CONSTRAINT operation_expires_at CHECK (isfinite((VALUE).expires_at))
    CONSTRAINT operation_id_characters CHECK (((VALUE).operation_id !~ '[\u0001-\u001f\u007f-\u009f]'::text))
    CONSTRAINT operation_id_length CHECK ((((VALUE).operation_id <> ''::text) AND (octet_length((VALUE).operation_id) <=
CASE
    WHEN ((VALUE).compensates IS NULL) THEN 200
    ELSE 300
END)))
    CONSTRAINT operation_id_reserved CHECK ((((VALUE).compensates IS NOT NULL) OR ((VALUE).operation_id !~~ '%:compensate:%'::text)))
    CONSTRAINT operation_labels CHECK ((((VALUE).labels @> '{}'::jsonb) AND (NOT jsonb_path_exists((VALUE).labels, 'strict $.*?(@.type() != "string")'::jsonpath, '{}'::jsonb, true))))
    CONSTRAINT operation_max_attempts CHECK ((((VALUE).max_attempts >= 1) AND ((VALUE).max_attempts <= 1000)))
    CONSTRAINT operation_priority CHECK ((((VALUE).priority >= '-100'::integer) AND ((VALUE).priority <= 100)))
    CONSTRAINT operation_run_at CHECK (isfinite((VALUE).run_at))
    CONSTRAINT operation_run_id CHECK (((octet_length((VALUE).run_id) <= 200) AND ((VALUE).run_id !~ '[\u0001-\u001f\u007f-\u009f]'::text)))
    CONSTRAINT operation_tool CHECK ((((VALUE).tool <> ''::text) AND (octet_length((VALUE).tool) <= 100)))
    CONSTRAINT operation_tool_reserved CHECK ((((VALUE).compensates IS NOT NULL) OR ((VALUE).tool !~~ '%:%'::text)))
    CONSTRAINT operation_traceparent CHECK (((VALUE).traceparent ~ '^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$'::text));
COMMENT ON DOMAIN outbox.valid_operation IS 'The limits of an intent, asked by outbox.file_work';
CREATE TYPE outbox.work_state AS (
    status text,
    due_at timestamp with time zone,
    leased_by uuid,
    deadline_at timestamp with time zone,
    attempt_epoch integer,
    started_at timestamp with time zone,
    unknown_since timestamp with time zone,
    attention text
);
COMMENT ON TYPE outbox.work_state IS 'What of a row of the queue depends on its status, for its CHECK';
CREATE DOMAIN outbox.valid_work AS outbox.work_state
    CONSTRAINT queue_attempting CHECK ((((VALUE).status <> 'attempting'::text) OR (((VALUE).leased_by IS NOT NULL) AND ((VALUE).deadline_at IS NOT NULL) AND ((VALUE).due_at IS NOT NULL) AND ((VALUE).attempt_epoch IS NOT NULL) AND ((VALUE).started_at IS NOT NULL))))
    CONSTRAINT queue_attention CHECK (((VALUE).attention = ANY (ARRAY['manual'::text, 'conflict'::text, 'hold'::text, 'give_up'::text, 'provider'::text, 'late_effect'::text, 'duplicate_effect'::text])))
    CONSTRAINT queue_scheduled CHECK ((((VALUE).status <> 'scheduled'::text) OR ((VALUE).due_at IS NOT NULL)))
    CONSTRAINT queue_status CHECK (((VALUE).status = ANY (ARRAY['pending'::text, 'scheduled'::text, 'attempting'::text, 'unknown'::text])))
    CONSTRAINT queue_unknown CHECK ((((VALUE).status <> 'unknown'::text) OR (((VALUE).due_at IS NOT NULL) AND ((VALUE).unknown_since IS NOT NULL))));
COMMENT ON DOMAIN outbox.valid_work IS 'Which states a row of the queue can be in, asked by outbox.check_work';
CREATE FUNCTION outbox.acknowledge(operation_id text, reason text, actor text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'outbox', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
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
COMMENT ON FUNCTION outbox.acknowledge(operation_id text, reason text, actor text) IS 'Clears the flag of a final operation: acknowledged, nothing_to_acknowledge, not_found';
CREATE FUNCTION outbox.announce(operation_id text) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF current_setting('outbox.wakeup', true) IS DISTINCT FROM 'off'
        AND pg_notification_queue_usage() < 0.5 THEN
        PERFORM pg_notify('outbox_done', jsonb_build_array(operation_id)::text);
    END IF;
END $$;
COMMENT ON FUNCTION outbox.announce(operation_id text) IS 'Tells who listens on outbox_done that this operation has ended';
CREATE FUNCTION outbox.arguments_digest(arguments jsonb) RETURNS text
    LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'outbox', 'pg_temp'
    AS $$
BEGIN
    RETURN encode(sha256(convert_to(outbox.canonical_json(arguments, true), 'UTF8')), 'hex');
EXCEPTION WHEN SQLSTATE 'OB400' THEN
    RETURN encode(sha256(convert_to('jsonb:' || jsonb_hash_extended(arguments, 1)::text
        || jsonb_hash_extended(arguments, 2)::text, 'UTF8')), 'hex');
END $$;
COMMENT ON FUNCTION outbox.arguments_digest(arguments jsonb) IS 'SHA-256 (hex) by which arguments are compared after pruning';
CREATE FUNCTION outbox.arm_again(seq bigint, detail jsonb, ended_as text DEFAULT 'failed'::text, arguments jsonb DEFAULT NULL::jsonb) RETURNS boolean
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    AS $$
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
COMMENT ON FUNCTION outbox.arm_again(seq bigint, detail jsonb, ended_as text, arguments jsonb) IS 'failed → pending, the one way a failed operation runs again; cancelled only for compensations';
CREATE FUNCTION outbox.cancel(operation_id text, reason text DEFAULT NULL::text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'outbox', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
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
        SELECT coalesce(e.outcome, q.status) INTO known
          FROM outbox.operation o
          LEFT JOIN LATERAL (SELECT w.status
                               FROM outbox.queue w WHERE w.seq = o.seq OFFSET 0) q ON true
          LEFT JOIN LATERAL (SELECT w.outcome
                               FROM outbox.outcome w WHERE w.seq = o.seq OFFSET 0) e ON true
         WHERE o.operation_id = cancel.operation_id;
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
COMMENT ON FUNCTION outbox.cancel(operation_id text, reason text) IS 'Takes back what has not been attempted: cancelled, too_late, already_cancelled, already_failed, not_found';
CREATE FUNCTION outbox.cancel_waiting(original bigint) RETURNS void
    LANGUAGE plpgsql
    AS $$
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
COMMENT ON FUNCTION outbox.cancel_waiting(original bigint) IS 'Ends the compensations that wait for an operation without effect';
CREATE FUNCTION outbox.canonical_json(value jsonb, trim_strings boolean, depth integer DEFAULT 1) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $_$
DECLARE
    -- White space and line terminators of ECMAScript's trim().
    blank constant text := E'\u0009\u000A\u000B\u000C\u000D\u0020\u00A0\u1680\u2000\u2001\u2002'
        || E'\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200A\u2028\u2029\u202F\u205F\u3000\uFEFF';
    -- No object; anything nested, or braces in a text; other than printable ASCII; escapes; numbers
    -- with zeros at the end, near zero or long; blanks at either end of a value; an empty name.
    unusual constant text := '^[^{]|.[][{]|\}.|[^\u0020-\u007e]|\\|": -?[0-9]+\.[0-9]*0[,}]|'
        '": -?0\.000|": -?[0-9.]{17}|": " | "[,}]|"":';
    members text := '';
    name    text;
BEGIN
    IF pg_column_size(value) <= 2000 AND value::text !~ unusual THEN
        FOREACH name IN ARRAY tsvector_to_array(array_to_tsvector(
            translate(jsonb_path_query_array(value, '$.keyvalue().key')::text, '[]', '{}')::text[])) LOOP
            members := concat(members, ',"', name, '":', value -> name);
        END LOOP;
        RETURN concat('{', substr(members, 2), '}');
    END IF;
    IF depth > 512 AND jsonb_typeof(value) IN ('object', 'array') THEN
        PERFORM outbox.refuse('OB400', 'the arguments are nested too deeply',
            'They have more than 512 levels.', 'Flatten them: tools do not take more either.');
    END IF;
    CASE jsonb_typeof(value)
    WHEN 'object' THEN
        SELECT string_agg(to_jsonb(m.key)::text || ':' || CASE jsonb_typeof(m.value)
                              WHEN 'string' THEN CASE WHEN trim_strings
                                  THEN to_jsonb(btrim(m.value #>> '{}', blank))::text
                                  ELSE m.value::text END
                              WHEN 'number' THEN outbox.plain_number(m.value::numeric)
                              WHEN 'boolean' THEN m.value::text
                              WHEN 'null' THEN 'null'
                              ELSE outbox.canonical_json(m.value, trim_strings, depth + 1) END,
                          ',' ORDER BY outbox.utf16_order(m.key) COLLATE "C")
          INTO members FROM jsonb_each(value) m;
        RETURN '{' || coalesce(members, '') || '}';
    WHEN 'array' THEN
        SELECT string_agg(outbox.canonical_json(e.item, trim_strings, depth + 1),
                          ',' ORDER BY e.place)
          INTO members FROM jsonb_array_elements(value) WITH ORDINALITY e (item, place);
        RETURN '[' || coalesce(members, '') || ']';
    WHEN 'string' THEN
        IF trim_strings THEN
            RETURN to_jsonb(btrim(value #>> '{}', blank))::text;
        END IF;
        RETURN value::text;
    WHEN 'number' THEN
        RETURN outbox.plain_number(value::numeric);
    ELSE
        RETURN value::text;
    END CASE;
END $_$;
COMMENT ON FUNCTION outbox.canonical_json(value jsonb, trim_strings boolean, depth integer) IS 'RFC 8785 with exact decimals; string values trimmed when asked';
CREATE FUNCTION outbox.canonical_number(n numeric) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
DECLARE
    magnitude numeric := abs(n);
    plain     text;
    whole     text;
    digits    text;
    point     integer;  -- the value is 0.DIGITS × 10^point
BEGIN
    IF n = 0 THEN
        RETURN '0';
    END IF;
    -- By value, before any text is made: 1e131071 is a few bytes here and 131072 characters there.
    -- What lies beyond that, jsonb itself refuses on input (22003), before any function of ours.
    IF magnitude >= 1e401 OR magnitude < 1e-400 OR min_scale(n) > 499 THEN
        PERFORM outbox.refuse('OB400', 'a number in the arguments cannot be part of a key',
            'It has more than 100 significant digits or an exponent beyond ±400.',
            'Pass it as a string, or choose an explicit operation_id.');
    END IF;
    plain := trim_scale(magnitude)::text;
    whole := split_part(plain, '.', 1);
    digits := ltrim(replace(plain, '.', ''), '0');
    point := CASE WHEN whole <> '0' THEN length(whole)
                  ELSE length(digits) - length(plain) + 2 END;
    digits := rtrim(digits, '0');
    IF length(digits) > 100 THEN
        PERFORM outbox.refuse('OB400', 'a number in the arguments cannot be part of a key',
            format('It has %s significant digits; 100 are the limit.', length(digits)),
            'Pass it as a string, or choose an explicit operation_id.');
    END IF;
    -- Up to 15 digits every decimal in the normal range is its double's shortest form.
    IF (point <= -6 OR point > 21)
        AND ((length(digits) <= 15
              AND magnitude BETWEEN 2.2250738585072014e-308 AND 1.7976931348623157e308)
             OR (length(digits) <= 17 AND outbox.is_shortest_double(magnitude))) THEN
        plain := left(digits, 1)
            || CASE WHEN length(digits) > 1 THEN '.' || substr(digits, 2) ELSE '' END
            || CASE WHEN point > 0 THEN 'e+' ELSE 'e-' END || abs(point - 1)::text;
    END IF;
    RETURN CASE WHEN n < 0 THEN '-' || plain ELSE plain END;
END $$;
COMMENT ON FUNCTION outbox.canonical_number(n numeric) IS 'Canonical text of one JSON number; OB400 beyond 100 digits or exponent ±400';
CREATE FUNCTION outbox.check_compensation(operation_id text, name text, arguments jsonb, reason text) RETURNS void
    LANGUAGE plpgsql STABLE
    AS $$
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
COMMENT ON FUNCTION outbox.check_compensation(operation_id text, name text, arguments jsonb, reason text) IS 'Raises OB400 or OB413 for bad input of outbox.compensate';
CREATE FUNCTION outbox.check_original(operation_id text, tool text, arguments_pruned boolean, result_expired boolean) RETURNS void
    LANGUAGE plpgsql
    AS $$
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
COMMENT ON FUNCTION outbox.check_original(operation_id text, tool text, arguments_pruned boolean, result_expired boolean) IS 'Raises OB410 when a compensation needs what was pruned';
CREATE FUNCTION outbox.check_request(tool text, arguments jsonb, operation_id text, run_id text, occurrence integer, priority smallint, run_at timestamp with time zone, expires_at timestamp with time zone, max_attempts integer, traceparent text, labels jsonb) RETURNS void
    LANGUAGE plpgsql STABLE
    AS $_$
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
    ELSIF operation_id IS NULL AND run_id = '' THEN
        detail := 'run_id is empty, and the operation id is made from it.';
        way_out := 'Pass the id of the planner''s run: a new run is a new intent. Or choose an explicit '
                   'operation_id.';
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
        OR jsonb_path_exists(labels, 'strict $.* ? (@.type() != "string")', '{}', true) THEN
        detail := 'labels is not a JSON object whose values are all strings.';
        way_out := 'Pass e.g. {"team": "support"}, or leave it out.';
    ELSE
        RETURN;
    END IF;
    PERFORM outbox.refuse('OB400', 'the operation cannot be recorded as it is', detail, way_out);
END $_$;
COMMENT ON FUNCTION outbox.check_request(tool text, arguments jsonb, operation_id text, run_id text, occurrence integer, priority smallint, run_at timestamp with time zone, expires_at timestamp with time zone, max_attempts integer, traceparent text, labels jsonb) IS 'Raises OB400 where a CHECK of outbox.operation would refuse';
CREATE FUNCTION outbox.check_size(arguments jsonb) RETURNS void
    LANGUAGE plpgsql STABLE
    AS $_$
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
END $_$;
COMMENT ON FUNCTION outbox.check_size(arguments jsonb) IS 'Raises OB413 beyond 1 MiB of text';
CREATE FUNCTION outbox.check_tool(tool text) RETURNS void
    LANGUAGE plpgsql STABLE
    AS $$
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
COMMENT ON FUNCTION outbox.check_tool(tool text) IS 'Raises OB404 for a tool that no daemon has published';
CREATE FUNCTION outbox.check_work() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    -- The cast is the check: a domain refuses, it never answers no.
    PERFORM ROW(NEW.status, NEW.due_at, NEW.leased_by, NEW.deadline_at, NEW.attempt_epoch,
                NEW.started_at, NEW.unknown_since, NEW.attention)::outbox.valid_work;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION outbox.check_work() IS 'Refuses a state of the queue that cannot be';
CREATE FUNCTION outbox.compensate(operation_id text, name text DEFAULT NULL::text, arguments jsonb DEFAULT '{}'::jsonb, reason text DEFAULT NULL::text) RETURNS outbox.receipt
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'outbox', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET plan_cache_mode TO 'force_custom_plan'
    AS $$
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
                                                state.status IS DISTINCT FROM 'succeeded');
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
COMMENT ON FUNCTION outbox.compensate(operation_id text, name text, arguments jsonb, reason text) IS 'Undoes an operation by a named compensation of its tool, once: new, or replayed with what is recorded';
CREATE FUNCTION outbox.count_page(source text, first bigint, last bigint) RETURNS TABLE(tool text, enqueued bigint, replayed bigint)
    LANGUAGE plpgsql
    AS $$
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
COMMENT ON FUNCTION outbox.count_page(source text, first bigint, last bigint) IS 'Counts the rows with first < number <= last';
CREATE FUNCTION outbox.derive_id(tool text, arguments jsonb, run_id text, occurrence integer DEFAULT 1) RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'outbox', 'pg_temp'
    AS $$
DECLARE
    fields  text[];
    missing text;
BEGIN
    SELECT t.dedup_fields INTO fields FROM outbox.tool t
     WHERE t.tool = derive_id.tool AND t.dedup_fields <> '{}';
    IF NOT FOUND THEN
        RETURN outbox.operation_key(tool, arguments, run_id, occurrence);
    END IF;
    SELECT f INTO missing FROM unnest(fields) f WHERE NOT arguments ? f LIMIT 1;
    IF FOUND THEN
        PERFORM outbox.refuse('OB400',
            format('argument "%s" is missing, and the operation id of tool "%s" is made from it',
                   missing, tool),
            format('dedup.fields of this tool: %s.', array_to_string(fields, ', ')),
            format('Pass "%s" (null counts as a value), or choose an explicit operation_id.', missing));
    END IF;
    RETURN outbox.operation_key(
        tool, (SELECT jsonb_object_agg(f, arguments -> f) FROM unnest(fields) f), run_id, occurrence);
END $$;
COMMENT ON FUNCTION outbox.derive_id(tool text, arguments jsonb, run_id text, occurrence integer) IS 'The derived operation id over the tool''s dedup.fields';
CREATE FUNCTION outbox.disown() RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    ours record;
BEGIN
    FOR ours IN
        SELECT 'SCHEMA' AS kind, 'outbox' AS name, n.nspowner AS owner
          FROM pg_namespace n WHERE n.nspname = 'outbox'
         UNION ALL
        SELECT CASE c.relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END, c.oid::regclass::text, c.relowner
          FROM pg_class c
         WHERE c.relnamespace = 'outbox'::regnamespace AND c.relkind IN ('r', 'v')
         UNION ALL
        SELECT 'FUNCTION', p.oid::regprocedure::text, p.proowner
          FROM pg_proc p WHERE p.pronamespace = 'outbox'::regnamespace
         UNION ALL
        SELECT 'TYPE', t.oid::regtype::text, t.typowner
          FROM pg_type t JOIN pg_class c ON c.oid = t.typrelid AND c.relkind = 'c'
         WHERE t.typnamespace = 'outbox'::regnamespace
    LOOP
        IF (SELECT r.rolsuper FROM pg_roles r WHERE r.oid = ours.owner) THEN
            EXECUTE format('ALTER %s %s OWNER TO outbox_owner', ours.kind, ours.name);
        END IF;
    END LOOP;
END $$;
COMMENT ON FUNCTION outbox.disown() IS 'Gives what a superuser owns in schema outbox to outbox_owner';
CREATE FUNCTION outbox.edit_distance(a text, b text) RETURNS integer
    LANGUAGE plpgsql IMMUTABLE
    AS $$
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
COMMENT ON FUNCTION outbox.edit_distance(a text, b text) IS 'Levenshtein distance, for the hint of OB404';
CREATE FUNCTION outbox.enqueue(tool text, arguments jsonb DEFAULT '{}'::jsonb, operation_id text DEFAULT NULL::text, run_id text DEFAULT NULL::text, occurrence integer DEFAULT 1, priority smallint DEFAULT 0, run_at timestamp with time zone DEFAULT NULL::timestamp with time zone, expires_at timestamp with time zone DEFAULT NULL::timestamp with time zone, max_attempts integer DEFAULT NULL::integer, traceparent text DEFAULT NULL::text, labels jsonb DEFAULT NULL::jsonb, retry_failed boolean DEFAULT false) RETURNS outbox.receipt
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'outbox', 'pg_temp'
    AS $_$
DECLARE
    derived constant boolean := operation_id IS NULL;
    fields  text[];
    answer  outbox.receipt;
BEGIN
    -- An explicit null means the same as leaving it out. Concatenated, the arguments are not
    -- compressed: pg_column_size tells their true size.
    arguments := coalesce(arguments, '{}') || '{}';
    IF priority IS NULL OR occurrence IS NULL THEN
        priority := coalesce(priority, 0);
        occurrence := coalesce(occurrence, 1);
    END IF;
    -- What is left out needs no look; where anything is given, all is looked at.
    IF run_at IS NOT NULL OR expires_at IS NOT NULL OR max_attempts IS NOT NULL
        OR traceparent IS NOT NULL OR labels IS NOT NULL OR priority <> 0 OR occurrence <> 1
        OR derived AND run_id IS NULL OR NOT derived AND run_id IS NOT NULL THEN
        PERFORM outbox.check_request(tool, arguments, operation_id, run_id, occurrence, priority,
            run_at, expires_at, max_attempts, traceparent, labels);
    END IF;
    -- The usual request, for a tool that is known. All else goes the long way, which has an answer
    -- for everything; a test holds that the two agree.
    SELECT t.dedup_fields INTO fields FROM outbox.tool t WHERE t.tool = enqueue.tool;
    IF FOUND AND tool NOT LIKE '%:%' AND arguments @> '{}' AND pg_column_size(arguments) <= 2000
        AND octet_length(arguments::text) <= 1048576
        AND coalesce(operation_id, run_id) !~ '^$|[\u0001-\u001f\u007f-\u009f]|:compensate:'
        AND octet_length(coalesce(operation_id, run_id)) <= 200 THEN
        IF NOT derived THEN
        ELSIF fields = '{}' THEN
            operation_id := outbox.hash_call(tool, arguments, run_id, occurrence);
        ELSE
            operation_id := outbox.derive_id(tool, arguments, run_id, occurrence);
        END IF;
        INSERT INTO outbox.operation (operation_id, tool, arguments, run_id, priority, run_at,
                                      expires_at, max_attempts, traceparent, labels)
        VALUES (operation_id, tool, arguments, run_id, priority, run_at, expires_at, max_attempts,
                traceparent, labels)
            ON CONFLICT ON CONSTRAINT operation_id_key DO NOTHING;
        IF NOT FOUND THEN
            answer := outbox.replay(operation_id, derived, tool, arguments, retry_failed);
            IF answer.operation_id IS NOT NULL THEN
                RETURN answer;
            END IF;
        ELSIF run_at > now() THEN
            RETURN (operation_id, 'scheduled', false, NULL, NULL,
                    'This action is recorded and will be carried out at its time.',
                    now(), NULL, false)::outbox.receipt;
        ELSE
            RETURN (operation_id, 'pending', false, NULL, NULL,
                    'This action is recorded and will be carried out.',
                    now(), NULL, false)::outbox.receipt;
        END IF;
    END IF;
    operation_id := outbox.identify(tool, arguments, operation_id, run_id, occurrence, priority,
        run_at, expires_at, max_attempts, traceparent, labels);
    RETURN outbox.record_intent(operation_id, derived, tool, arguments, run_id, priority, run_at,
        expires_at, max_attempts, traceparent, labels, coalesce(retry_failed, false));
END $_$;
COMMENT ON FUNCTION outbox.enqueue(tool text, arguments jsonb, operation_id text, run_id text, occurrence integer, priority smallint, run_at timestamp with time zone, expires_at timestamp with time zone, max_attempts integer, traceparent text, labels jsonb, retry_failed boolean) IS 'Records an operation once: new, or replayed with what is recorded';
CREATE FUNCTION outbox.enqueue_many(requests jsonb) RETURNS SETOF outbox.receipt
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'outbox', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    place    integer;
    item     jsonb;
    r        outbox.enqueue_request;
    parsed   outbox.enqueue_request[];
    ids      text[];
    answers  outbox.receipt[];
    answer   outbox.receipt;
    code     text;
    problem  text;
    detail   text;
    way_out  text;
BEGIN
    IF jsonb_typeof(requests) IS DISTINCT FROM 'array' THEN
        PERFORM outbox.refuse('OB400', 'enqueue_many takes a JSON array of operations',
            format('It got %s.', coalesce('a JSON ' || jsonb_typeof(requests), 'null')),
            'Pass e.g. [{"tool": "create_ticket", "arguments": {}, "operation_id": "op-1"}].');
    END IF;
    BEGIN
        FOR place, item IN
            SELECT e.place, e.item FROM jsonb_array_elements(requests) WITH ORDINALITY e (item, place)
             ORDER BY e.place LOOP
            r := outbox.parse_request(item);
            parsed[place] := r;
            ids[place] := outbox.identify(r.tool, r.arguments, r.operation_id, r.run_id, r.occurrence,
                r.priority, r.run_at, r.expires_at, r.max_attempts, r.traceparent, r.labels);
        END LOOP;
        FOR place IN
            SELECT i.place FROM unnest(ids) WITH ORDINALITY i (id, place)
             ORDER BY i.id COLLATE "C", i.place LOOP
            r := parsed[place];
            answers[place] := outbox.record_intent(ids[place], r.operation_id IS NULL, r.tool,
                r.arguments, r.run_id, r.priority, r.run_at, r.expires_at, r.max_attempts,
                r.traceparent, r.labels, r.retry_failed);
        END LOOP;
    EXCEPTION WHEN OTHERS THEN
        GET STACKED DIAGNOSTICS code = RETURNED_SQLSTATE, problem = MESSAGE_TEXT,
            detail = PG_EXCEPTION_DETAIL, way_out = PG_EXCEPTION_HINT;
        IF code LIKE 'OB%' THEN
            PERFORM outbox.refuse(code, problem, format('requests[%s]: %s', place - 1, detail), way_out);
        ELSIF code LIKE '22%' THEN  -- a member of another type: "occurrence": "two"
            PERFORM outbox.refuse('OB400', 'the operation cannot be recorded as it is',
                format('requests[%s]: %s.', place - 1, problem),
                'Pass each member in the type of the parameter of outbox.enqueue.');
        END IF;
        RAISE;
    END;
    FOREACH answer IN ARRAY coalesce(answers, '{}') LOOP
        RETURN NEXT answer;
    END LOOP;
END $$;
COMMENT ON FUNCTION outbox.enqueue_many(requests jsonb) IS 'outbox.enqueue for many operations at once: all or nothing';
CREATE FUNCTION outbox.file_work() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER
    AS $_$
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
END $_$;
COMMENT ON FUNCTION outbox.file_work() IS 'Checks the intent''s limits, files the queue row in the planner''s transaction, wakes a sleeping daemon';
CREATE FUNCTION outbox.find_compensation(tool text, name text) RETURNS text
    LANGUAGE plpgsql STABLE
    AS $$
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
COMMENT ON FUNCTION outbox.find_compensation(tool text, name text) IS 'The compensation that is meant; raises OB404 with the names';
CREATE FUNCTION outbox.forget(seqs bigint[]) RETURNS void
    LANGUAGE plpgsql
    AS $$
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
COMMENT ON FUNCTION outbox.forget(seqs bigint[]) IS 'Part of outbox.forget_keys, which decides what may be forgotten';
CREATE FUNCTION outbox.forget_keys(older_than interval, after bigint, page integer DEFAULT 200, dry_run boolean DEFAULT false) RETURNS TABLE(tool text, forgotten bigint, referenced bigint, next bigint, more boolean)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'outbox', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    SET plan_cache_mode TO 'force_custom_plan'
    AS $$
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
COMMENT ON FUNCTION outbox.forget_keys(older_than interval, after bigint, page integer, dry_run boolean) IS 'One page of forgetting: the same id may be executed again afterwards';
CREATE FUNCTION outbox.get(operation_id text) RETURNS TABLE(operation_id text, status text, replayed boolean, result jsonb, error jsonb, message text, created_at timestamp with time zone, compensated_by text, result_expired boolean, tool text, run_id text, attempts integer, attempt_epoch integer, started_at timestamp with time zone, finished_at timestamp with time zone, compensates text, attention text)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'outbox', 'pg_temp'
    SET plan_cache_mode TO 'force_custom_plan'
    AS $_$
    SELECT v.operation_id, v.status, v.replayed, v.result, v.error, v.message, v.created_at,
           v.compensated_by, v.result_expired, v.tool, v.run_id, v.attempts, v.attempt_epoch,
           v.started_at, v.finished_at, v.compensates, v.attention
      FROM outbox.operations v WHERE v.operation_id = $1
$_$;
COMMENT ON FUNCTION outbox.get(operation_id text) IS 'One operation as it is now; no row when the id is unknown';
CREATE FUNCTION outbox.grant_rights() RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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
CREATE FUNCTION outbox.grant_rights_before_operating() RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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
COMMENT ON FUNCTION outbox.grant_rights_before_operating() IS 'Part of outbox.grant_rights';
CREATE FUNCTION outbox.grant_rights_before_retention() RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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
COMMENT ON FUNCTION outbox.grant_rights_before_retention() IS 'Part of outbox.grant_rights';
CREATE FUNCTION outbox.grant_rights_before_statistics() RETURNS void
    LANGUAGE plpgsql
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
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
COMMENT ON FUNCTION outbox.grant_rights_before_statistics() IS 'Part of outbox.grant_rights';
CREATE FUNCTION outbox.hash_call(tool text, arguments jsonb, run_id text, occurrence integer) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
BEGIN
    RETURN encode(sha256(convert_to(concat(
        '{"arguments":', outbox.canonical_json(arguments, true),
        CASE WHEN occurrence > 1 THEN ',"occurrence":' END, nullif(occurrence, 1),
        ',"run_id":', to_jsonb(run_id), ',"tool":', to_jsonb(tool), '}'), 'UTF8')), 'hex');
END $$;
COMMENT ON FUNCTION outbox.hash_call(tool text, arguments jsonb, run_id text, occurrence integer) IS 'What operation_key returns, without its checks';
CREATE FUNCTION outbox.identify(tool text, arguments jsonb, operation_id text, run_id text, occurrence integer, priority smallint, run_at timestamp with time zone, expires_at timestamp with time zone, max_attempts integer, traceparent text, labels jsonb) RETURNS text
    LANGUAGE plpgsql STABLE
    AS $$
BEGIN
    PERFORM outbox.check_request(tool, arguments, operation_id, run_id, occurrence, priority,
        run_at, expires_at, max_attempts, traceparent, labels);
    PERFORM outbox.check_tool(tool);
    IF position(':' IN tool) > 0 THEN
        PERFORM outbox.refuse('OB400', 'the operation cannot be recorded as it is',
            format('tool "%s" contains ":", as only compensations do.', tool),
            'Call outbox.compensate to undo an operation, or pass the name of a tool.');
    END IF;
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
COMMENT ON FUNCTION outbox.identify(tool text, arguments jsonb, operation_id text, run_id text, occurrence integer, priority smallint, run_at timestamp with time zone, expires_at timestamp with time zone, max_attempts integer, traceparent text, labels jsonb) IS 'Validates a request; its explicit or derived id';
CREATE FUNCTION outbox.is_shortest_double(n numeric) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SET search_path TO 'pg_catalog'
    SET extra_float_digits TO '1'
    AS $$
DECLARE
    largest  constant numeric := 1.7976931348623157e308;
    smallest constant numeric := 5e-324;
    nearest  double precision;
    printed  text;
    shortest numeric;
    digits   integer;
    kept     integer;
    shorter  numeric;
BEGIN
    IF n > largest OR n < smallest THEN
        RETURN false;
    END IF;
    nearest := n::double precision;
    printed := nearest::text;
    shortest := printed::numeric;
    digits := length(rtrim(ltrim(replace(split_part(printed, 'e', 1), '.', ''), '0'), '0'));
    IF digits > 1 THEN
        -- Decimals to keep for one digit less; negative to the left of the point.
        kept := min_scale(shortest) - 1;
        IF min_scale(shortest) = 0 THEN
            kept := digits - 1 - length(trunc(shortest)::text);
        END IF;
        FOREACH shorter IN ARRAY ARRAY[
            trunc(shortest, kept), trunc(shortest, kept) + ('1e' || (-kept)::text)::numeric] LOOP
            IF shorter BETWEEN smallest AND largest AND shorter::double precision = nearest THEN
                RETURN shorter = n;
            END IF;
        END LOOP;
    END IF;
    RETURN shortest = n;
END $$;
COMMENT ON FUNCTION outbox.is_shortest_double(n numeric) IS 'True when n equals the shortest form of its nearest double';
CREATE FUNCTION outbox.last_number(source text) RETURNS bigint
    LANGUAGE sql
    AS $$
    SELECT CASE WHEN source = 'operation'
        THEN (SELECT CASE WHEN s.is_called THEN s.last_value ELSE 0 END FROM outbox.operation_seq_seq s)
        ELSE (SELECT CASE WHEN s.is_called THEN s.last_value ELSE 0 END FROM outbox.event_id_seq s)
    END
$$;
COMMENT ON FUNCTION outbox.last_number(source text) IS 'The last number drawn for a row of outbox.operation or outbox.event';
CREATE FUNCTION outbox.last_seq_before(at timestamp with time zone) RETURNS bigint
    LANGUAGE plpgsql STABLE
    SET plan_cache_mode TO 'force_custom_plan'
    AS $$
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
COMMENT ON FUNCTION outbox.last_seq_before(at timestamp with time zone) IS 'Operations with a larger seq were created later, but for those of longer transactions';
CREATE FUNCTION outbox.status_message(status text, replayed boolean, derived boolean, error jsonb, attention text, compensated_by text, compensation_status text, result_expired boolean) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    AS $$
DECLARE
    message text;
BEGIN
    IF compensated_by IS NOT NULL THEN
        IF compensation_status = 'succeeded' THEN
            message := format('This action was performed and then undone by the compensation "%s".',
                              compensated_by);
        ELSIF status <> 'succeeded' THEN
            message := format('This action is in progress, and if it happens or has happened, the '
                'compensation "%s" will undo it. Do not send it again, and do not report failure.',
                compensated_by);
        ELSE
            message := format('This action was performed and is being undone by the compensation '
                              '"%s" (%s).', compensated_by, compensation_status);
        END IF;
    ELSIF status = 'succeeded' THEN
        IF replayed IS NOT TRUE THEN
            message := 'This action was performed.';
        ELSE
            message := 'This action was already performed'
                || CASE WHEN derived THEN ' in this run' ELSE ' under this operation id' END
                || CASE WHEN result_expired THEN '; its result is no longer kept.'
                        ELSE '; returning the earlier result.' END;
        END IF;
    ELSIF status = 'pending' THEN
        message := 'This action is in progress: it is recorded and waits to be carried out. '
                   'Do not send it again, and do not assume failure.';
    ELSIF status = 'attempting' THEN
        message := 'This action is in progress: it is being carried out at this moment. '
                   'Do not send it again, and do not assume failure.';
    ELSIF status = 'failed' THEN
        message := format('The previous attempt of this action failed and had no effect (%s%s).',
            coalesce(error ->> 'code', 'failed'), coalesce(': ' || (error ->> 'message'), ''));
    ELSIF status = 'unknown' AND attention IS NOT NULL THEN
        message := 'This action is in progress: it may have happened already, and a person has been '
                   'asked. Do not send it again, and do not report failure.';
    ELSIF status = 'unknown' THEN
        message := 'This action is in progress: it may have happened already, and we are asking the '
                   'other side. Do not send it again, and do not report failure.';
    ELSIF status = 'cancelled' AND error ->> 'code' = 'nothing_to_compensate' THEN
        message := 'This compensation was not carried out: the action it was to undo had no effect.';
    ELSIF status = 'cancelled' THEN
        message := 'This action was cancelled before it was carried out; it had no effect.';
    ELSIF status = 'scheduled' THEN
        message := 'This action is in progress: it is recorded and waits for its time. '
                   'Do not send it again, and do not assume failure.';
    ELSE
        message := 'This action is in progress: it is recorded and waits to be carried out. '
                   'Do not send it again, and do not assume failure.';
    END IF;
    IF replayed THEN
        message := message || ' Nothing was executed again.';
    END IF;
    RETURN message;
END $$;
COMMENT ON FUNCTION outbox.status_message(status text, replayed boolean, derived boolean, error jsonb, attention text, compensated_by text, compensation_status text, result_expired boolean) IS 'What a model reads about an operation, one wording per status';
CREATE TABLE outbox.operation (
    operation_id text NOT NULL,
    seq bigint NOT NULL,
    tool text NOT NULL,
    arguments jsonb DEFAULT '{}'::jsonb NOT NULL,
    run_id text,
    priority smallint DEFAULT 0 NOT NULL,
    run_at timestamp with time zone,
    expires_at timestamp with time zone,
    max_attempts integer,
    traceparent text,
    labels jsonb,
    compensates text,
    created_at timestamp with time zone DEFAULT now() NOT NULL,
    arguments_digest text,
    pruned_at timestamp with time zone,
    reason text
)
WITH (autovacuum_vacuum_insert_scale_factor='0.2', autovacuum_analyze_scale_factor='0.1');
COMMENT ON TABLE outbox.operation IS 'The intent: what a planner asked for. Inserted once; only pruning touches it again.';
COMMENT ON COLUMN outbox.operation.operation_id IS 'Identity of the intent, for ever: a second row with this id cannot exist';
COMMENT ON COLUMN outbox.operation.seq IS 'Joins operation, queue and outcome; order of insertion';
COMMENT ON COLUMN outbox.operation.tool IS 'Name of the tool in the daemon''s configuration';
COMMENT ON COLUMN outbox.operation.arguments IS 'What the tool is called with; {} once pruned';
COMMENT ON COLUMN outbox.operation.run_id IS 'Scope of the derived id: the same call in one run is one operation';
COMMENT ON COLUMN outbox.operation.priority IS 'Smaller first, -100 to 100';
COMMENT ON COLUMN outbox.operation.run_at IS 'Not before this time (database clock)';
COMMENT ON COLUMN outbox.operation.expires_at IS 'Never start an attempt after this time (database clock)';
COMMENT ON COLUMN outbox.operation.max_attempts IS 'Attempts allowed; null: as the tool says';
COMMENT ON COLUMN outbox.operation.traceparent IS 'W3C trace context of the planner';
COMMENT ON COLUMN outbox.operation.labels IS 'Object of strings, for people and filters';
COMMENT ON COLUMN outbox.operation.compensates IS 'The operation this one undoes; set by outbox.compensate only';
COMMENT ON COLUMN outbox.operation.created_at IS 'Start of the planner''s transaction';
COMMENT ON COLUMN outbox.operation.arguments_digest IS 'SHA-256 (hex) of the canonical arguments, kept when they are pruned';
COMMENT ON COLUMN outbox.operation.pruned_at IS 'When the arguments were pruned';
COMMENT ON COLUMN outbox.operation.reason IS 'Why it was asked for; compensations only';
CREATE TABLE outbox.outcome (
    seq bigint NOT NULL,
    outcome text NOT NULL,
    attempts integer NOT NULL,
    lease_epoch integer NOT NULL,
    attempt_epoch integer,
    result jsonb,
    error jsonb,
    started_at timestamp with time zone,
    finished_at timestamp with time zone DEFAULT now() NOT NULL,
    request_hash bigint,
    ambiguous boolean DEFAULT false NOT NULL,
    attention text,
    result_expired boolean DEFAULT false NOT NULL,
    tool text,
    CONSTRAINT outcome_attention CHECK ((attention = ANY (ARRAY['manual'::text, 'conflict'::text, 'hold'::text, 'give_up'::text, 'provider'::text, 'late_effect'::text, 'duplicate_effect'::text]))),
    CONSTRAINT outcome_failed CHECK (((outcome <> 'failed'::text) OR (error IS NOT NULL))),
    CONSTRAINT outcome_outcome CHECK ((outcome = ANY (ARRAY['succeeded'::text, 'failed'::text, 'cancelled'::text])))
)
WITH (autovacuum_vacuum_insert_scale_factor='0.2');
COMMENT ON TABLE outbox.outcome IS 'The end: inserted by the statement that deletes the queue row';
COMMENT ON COLUMN outbox.outcome.lease_epoch IS 'Last epoch; an armed-again operation goes on from it';
COMMENT ON COLUMN outbox.outcome.result_expired IS 'The result was pruned; the operation still replays';
COMMENT ON COLUMN outbox.outcome.tool IS 'Copy of the intent''s, where there was no effect or a person must look; else null';
CREATE TABLE outbox.queue (
    seq bigint NOT NULL,
    tool text NOT NULL,
    priority smallint NOT NULL,
    status text NOT NULL,
    lease_epoch integer DEFAULT 0 NOT NULL,
    attempt_epoch integer,
    attempts integer DEFAULT 0 NOT NULL,
    due_at timestamp with time zone,
    expires_at timestamp with time zone,
    leased_by uuid,
    attempted_at timestamp with time zone,
    started_at timestamp with time zone,
    deadline_at timestamp with time zone,
    ambiguous boolean DEFAULT false NOT NULL,
    accepted boolean DEFAULT false NOT NULL,
    request_hash bigint,
    unknown_since timestamp with time zone,
    probes integer DEFAULT 0 NOT NULL,
    absent_count integer DEFAULT 0 NOT NULL,
    last_absent_at timestamp with time zone,
    attention text,
    asked boolean DEFAULT false NOT NULL,
    result jsonb,
    error jsonb,
    waits_for bigint
)
WITH (fillfactor='50', autovacuum_vacuum_scale_factor='0', autovacuum_vacuum_threshold='5000', autovacuum_analyze_scale_factor='0', autovacuum_analyze_threshold='10000');
COMMENT ON TABLE outbox.queue IS 'The work: one slim row per operation that is not final';
COMMENT ON COLUMN outbox.queue.lease_epoch IS 'Every status write compares it and sets + 1; it never repeats or goes back';
COMMENT ON COLUMN outbox.queue.attempt_epoch IS 'lease_epoch of the last attempt';
COMMENT ON COLUMN outbox.queue.attempts IS 'Attempts made; what was not sent is given back';
COMMENT ON COLUMN outbox.queue.due_at IS 'When somebody must look next: promote, declare the lease expired, probe; infinity: only a person can help';
COMMENT ON COLUMN outbox.queue.expires_at IS 'Copy of the intent''s; cleared when a failed operation is armed again';
COMMENT ON COLUMN outbox.queue.leased_by IS 'Worker of the attempt or of the probe under way';
COMMENT ON COLUMN outbox.queue.attempted_at IS 'Start of the last attempt';
COMMENT ON COLUMN outbox.queue.started_at IS 'Start of the first attempt';
COMMENT ON COLUMN outbox.queue.deadline_at IS 'Hard end of the last attempt: after it the worker sends nothing';
COMMENT ON COLUMN outbox.queue.ambiguous IS 'An attempt ended unknown: a later rejection proves nothing by itself';
COMMENT ON COLUMN outbox.queue.accepted IS 'The other side took it (202): unknown, but not an anomaly';
COMMENT ON COLUMN outbox.queue.request_hash IS 'Hash of what the first attempt asked and how it is looked for (outbox.request)';
COMMENT ON COLUMN outbox.queue.unknown_since IS 'reconcile.give_up_after counts from here';
COMMENT ON COLUMN outbox.queue.absent_count IS 'Absent verdicts counted towards reconcile.confirmations';
COMMENT ON COLUMN outbox.queue.attention IS 'Why a person must look; null: nobody must';
COMMENT ON COLUMN outbox.queue.asked IS 'A person asked for a probe now (outboxd probe ID)';
COMMENT ON COLUMN outbox.queue.result IS 'What an accepted attempt answered';
COMMENT ON COLUMN outbox.queue.error IS 'How the last attempt ended, {"code", "message"}';
COMMENT ON COLUMN outbox.queue.waits_for IS 'seq of the original that a compensation waits for; null: it may run. Only maintenance clears it';
CREATE VIEW outbox.operations AS
 SELECT o.operation_id,
    s.status,
    NULL::boolean AS replayed,
    e.result,
    e.error,
        CASE
            WHEN ((q.waits_for IS NOT NULL) AND (q.status = 'scheduled'::text)) THEN 'This compensation is recorded. It waits until it is known whether the action it is to undo happened, and is carried out only if it did.'::text
            ELSE outbox.status_message(s.status, NULL::boolean, (o.run_id IS NOT NULL), e.error, COALESCE(e.attention, q.attention), c.operation_id, c.status, COALESCE(e.result_expired, false))
        END AS message,
    o.created_at,
    c.operation_id AS compensated_by,
    COALESCE(e.result_expired, false) AS result_expired,
    o.tool,
    o.run_id,
    COALESCE(e.attempts, q.attempts) AS attempts,
        CASE
            WHEN (e.seq IS NULL) THEN q.attempt_epoch
            ELSE e.attempt_epoch
        END AS attempt_epoch,
        CASE
            WHEN (e.seq IS NULL) THEN q.started_at
            ELSE e.started_at
        END AS started_at,
    e.finished_at,
    o.compensates,
        CASE
            WHEN (e.seq IS NULL) THEN q.attention
            ELSE e.attention
        END AS attention,
    o.seq,
    o.priority,
    q.due_at,
    q.leased_by,
    (
        CASE
            WHEN (e.seq IS NULL) THEN q.started_at
            ELSE e.started_at
        END - GREATEST(o.created_at, o.run_at)) AS waited,
    (e.finished_at - e.started_at) AS took,
    (COALESCE(e.attention, q.attention) IS NOT NULL) AS needs_attention,
    c.status AS compensation_status,
    q.error AS last_error,
    q.unknown_since,
    q.deadline_at,
    o.labels,
    o.pruned_at,
    o.reason
   FROM ((((outbox.operation o
     LEFT JOIN outbox.queue q ON ((q.seq = o.seq)))
     LEFT JOIN outbox.outcome e ON ((e.seq = o.seq)))
     CROSS JOIN LATERAL ( SELECT COALESCE(e.outcome, q.status) AS status) s)
     LEFT JOIN LATERAL ( SELECT u.operation_id,
            COALESCE(ue.outcome, uq.status) AS status
           FROM ((outbox.operation u
             LEFT JOIN outbox.queue uq ON ((uq.seq = u.seq)))
             LEFT JOIN outbox.outcome ue ON ((ue.seq = u.seq)))
          WHERE ((u.compensates = o.operation_id) AND ((ue.outcome IS NULL) OR (ue.outcome = 'succeeded'::text)))
          ORDER BY ue.outcome, u.seq
         LIMIT 1) c ON (true));
COMMENT ON VIEW outbox.operations IS 'Every operation with its state; the truth for people and planners';
COMMENT ON COLUMN outbox.operations.operation_id IS 'Identity of the operation, for ever';
COMMENT ON COLUMN outbox.operations.status IS 'pending, scheduled, attempting, unknown; final: succeeded, failed (no effect), cancelled';
COMMENT ON COLUMN outbox.operations.replayed IS 'Always null here: only an enqueue can be a replay';
COMMENT ON COLUMN outbox.operations.result IS 'What the tool answered, when succeeded';
COMMENT ON COLUMN outbox.operations.error IS 'Why it failed, {"code", "message"}';
COMMENT ON COLUMN outbox.operations.message IS 'The state in a sentence for a model';
COMMENT ON COLUMN outbox.operations.created_at IS 'Start of the planner''s transaction';
COMMENT ON COLUMN outbox.operations.compensated_by IS 'The operation that undoes this one';
COMMENT ON COLUMN outbox.operations.result_expired IS 'The result was pruned; the operation still replays';
COMMENT ON COLUMN outbox.operations.tool IS 'Name of the tool';
COMMENT ON COLUMN outbox.operations.run_id IS 'The planner''s run';
COMMENT ON COLUMN outbox.operations.attempts IS 'Attempts made; what was not sent does not count';
COMMENT ON COLUMN outbox.operations.attempt_epoch IS 'Identifies the last attempt; outbox.resolve asks for it';
COMMENT ON COLUMN outbox.operations.started_at IS 'Start of the first attempt';
COMMENT ON COLUMN outbox.operations.finished_at IS 'When the outcome was recorded';
COMMENT ON COLUMN outbox.operations.compensates IS 'The operation this one undoes';
COMMENT ON COLUMN outbox.operations.attention IS 'Why a person must look: manual, conflict, hold, give_up, provider, late_effect, duplicate_effect';
COMMENT ON COLUMN outbox.operations.seq IS 'Order of insertion';
COMMENT ON COLUMN outbox.operations.priority IS 'Smaller first';
COMMENT ON COLUMN outbox.operations.due_at IS 'When somebody looks at it next; infinity: only a person can help';
COMMENT ON COLUMN outbox.operations.leased_by IS 'The daemon that attempts or probes it';
COMMENT ON COLUMN outbox.operations.waited IS 'From being due first to its first attempt';
COMMENT ON COLUMN outbox.operations.took IS 'From its first attempt to its end';
COMMENT ON COLUMN outbox.operations.needs_attention IS 'A person must look';
COMMENT ON COLUMN outbox.operations.compensation_status IS 'Status of compensated_by';
COMMENT ON COLUMN outbox.operations.last_error IS 'How the last attempt of an open operation ended';
COMMENT ON COLUMN outbox.operations.unknown_since IS 'Since when it is unknown';
COMMENT ON COLUMN outbox.operations.deadline_at IS 'Hard end of the last attempt of an open operation';
COMMENT ON COLUMN outbox.operations.labels IS 'The planner''s labels';
COMMENT ON COLUMN outbox.operations.pruned_at IS 'When the arguments were pruned';
COMMENT ON COLUMN outbox.operations.reason IS 'Why the compensation was asked for';
CREATE FUNCTION outbox.list(statuses text[] DEFAULT NULL::text[], tool text DEFAULT NULL::text, older_than interval DEFAULT NULL::interval, attention boolean DEFAULT false, after bigint DEFAULT NULL::bigint, page integer DEFAULT 100) RETURNS SETOF outbox.operations
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'outbox', 'pg_temp'
    SET plan_cache_mode TO 'force_custom_plan'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET max_parallel_workers_per_gather TO '0'
    SET jit TO 'off'
    AS $$
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
COMMENT ON FUNCTION outbox.list(statuses text[], tool text, older_than interval, attention boolean, after bigint, page integer) IS 'Operations, newest first; the next page is what comes after the last row''s seq';
CREATE FUNCTION outbox.name_tool() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    NEW.tool := (SELECT o.tool FROM outbox.operation o WHERE o.seq OPERATOR(pg_catalog.=) NEW.seq);
    RETURN NEW;
END $$;
COMMENT ON FUNCTION outbox.name_tool() IS 'Writes the tool into an end that is not the usual one';
CREATE FUNCTION outbox.newest_of_tool(tool text, succeeded boolean, upto bigint, before timestamp with time zone, page integer) RETURNS bigint[]
    LANGUAGE plpgsql STABLE
    SET search_path TO 'pg_catalog', 'outbox', 'pg_temp'
    SET plan_cache_mode TO 'force_generic_plan'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET max_parallel_workers_per_gather TO '0'
    SET jit TO 'off'
    AS $$
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
COMMENT ON FUNCTION outbox.newest_of_tool(tool text, succeeded boolean, upto bigint, before timestamp with time zone, page integer) IS 'Part of outbox.list: the newest operations of a tool, or of its succeeded ones';
CREATE FUNCTION outbox.operation_key(tool text, arguments jsonb, run_id text, occurrence integer DEFAULT 1) RETURNS text
    LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER PARALLEL SAFE
    SET search_path TO 'pg_catalog', 'outbox', 'pg_temp'
    AS $$
BEGIN
    IF tool IS NULL OR arguments IS NULL OR run_id IS NULL THEN
        PERFORM outbox.refuse('OB400', 'tool, arguments and run_id make the key; one of them is null',
            'Only a run gives the key its scope: the same call in one run is one operation.',
            'Pass the run_id of the planner''s run, or choose an explicit operation_id.');
    END IF;
    IF occurrence < 1 THEN
        PERFORM outbox.refuse('OB400', format('occurrence must be at least 1, not %s', occurrence),
            'occurrence counts the intended identical calls within one run, from 1.',
            'Leave it out for the first call, pass 2 for the second intended one.');
    END IF;
    RETURN outbox.hash_call(tool, arguments, run_id, occurrence);
END $$;
COMMENT ON FUNCTION outbox.operation_key(tool text, arguments jsonb, run_id text, occurrence integer) IS 'The derived operation id over all arguments; pure';
CREATE FUNCTION outbox.parse_request(item jsonb) RETURNS outbox.enqueue_request
    LANGUAGE plpgsql STABLE
    AS $$
DECLARE
    parsed  outbox.enqueue_request;
    members constant text[] := ARRAY['tool', 'arguments', 'operation_id', 'run_id', 'occurrence',
        'priority', 'run_at', 'expires_at', 'max_attempts', 'traceparent', 'labels', 'retry_failed'];
    texts   constant text[] := ARRAY['tool', 'operation_id', 'run_id', 'traceparent'];
    strange text;
BEGIN
    IF jsonb_typeof(item) <> 'object' THEN
        PERFORM outbox.refuse('OB400', 'an operation is not a JSON object',
            format('It is a JSON %s.', jsonb_typeof(item)),
            'Pass objects with the parameters of outbox.enqueue.');
    END IF;
    SELECT k INTO strange FROM jsonb_object_keys(item) k WHERE k <> ALL (members) LIMIT 1;
    IF FOUND THEN
        PERFORM outbox.refuse('OB400', format('an operation has an unknown member "%s"', strange),
            format('Members: %s.', array_to_string(members, ', ')),
            'Leave it out, or mend its name.');
    END IF;
    -- Anything has a text: an object must not become the name of a tool.
    SELECT t INTO strange FROM unnest(texts) t
     WHERE jsonb_typeof(item -> t) NOT IN ('string', 'null') LIMIT 1;
    IF FOUND THEN
        PERFORM outbox.refuse('OB400', 'the operation cannot be recorded as it is',
            format('%s is a JSON %s.', strange, jsonb_typeof(item -> strange)),
            'Pass it as a JSON string.');
    END IF;
    parsed := jsonb_populate_record(NULL::outbox.enqueue_request, item);
    parsed.arguments := coalesce(parsed.arguments, '{}');
    parsed.occurrence := coalesce(parsed.occurrence, 1);
    parsed.priority := coalesce(parsed.priority, 0);
    parsed.retry_failed := coalesce(parsed.retry_failed, false);
    RETURN parsed;
END $$;
COMMENT ON FUNCTION outbox.parse_request(item jsonb) IS 'One element of enqueue_many, with the defaults of enqueue';
CREATE FUNCTION outbox.pause_tool(tool text, reason text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'outbox', 'pg_temp'
    AS $$
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
COMMENT ON FUNCTION outbox.pause_tool(tool text, reason text) IS 'No new attempts of this tool anywhere; running ones and probes go on';
CREATE FUNCTION outbox.plain_number(n numeric) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT CASE WHEN scale(n) <= 70 AND abs(n) < 1e21 AND (abs(n) >= 1e-6 OR n = 0)
                THEN trim_scale(n)::text ELSE outbox.canonical_number(n) END
$$;
COMMENT ON FUNCTION outbox.plain_number(n numeric) IS 'canonical_number, with a short cut where the plain notation is canonical';
CREATE FUNCTION outbox.probe(operation_id text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'outbox', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
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
COMMENT ON FUNCTION outbox.probe(operation_id text) IS 'Asks the other side now: asked, probing, not_unknown, not_found';
CREATE FUNCTION outbox.prune_events(older_than interval, after bigint, page integer DEFAULT 500) RETURNS TABLE(pruned bigint, next bigint, more boolean)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'outbox', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    SET plan_cache_mode TO 'force_custom_plan'
    AS $$
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
COMMENT ON FUNCTION outbox.prune_events(older_than interval, after bigint, page integer) IS 'One page of pruning the events';
CREATE FUNCTION outbox.prune_payloads(older_than interval, after bigint, page integer DEFAULT 200) RETURNS TABLE(pruned bigint, next bigint, more boolean, busy boolean)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'outbox', 'pg_temp'
    SET enable_seqscan TO 'off'
    SET enable_bitmapscan TO 'off'
    SET jit TO 'off'
    SET plan_cache_mode TO 'force_custom_plan'
    AS $$
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
COMMENT ON FUNCTION outbox.prune_payloads(older_than interval, after bigint, page integer) IS 'One page of pruning: arguments and results go, the key, the digest and the times stay';
CREATE FUNCTION outbox.record_compensation(original outbox.operation, name text, arguments jsonb, reason text, waiting boolean) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
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
COMMENT ON FUNCTION outbox.record_compensation(original outbox.operation, name text, arguments jsonb, reason text, waiting boolean) IS 'Inserts a compensation; false when it is recorded already';
CREATE FUNCTION outbox.record_intent(operation_id text, derived boolean, tool text, arguments jsonb, run_id text, priority smallint, run_at timestamp with time zone, expires_at timestamp with time zone, max_attempts integer, traceparent text, labels jsonb, retry_failed boolean) RETURNS outbox.receipt
    LANGUAGE plpgsql
    AS $$
DECLARE
    answer outbox.receipt;
BEGIN
    LOOP
        INSERT INTO outbox.operation (operation_id, tool, arguments, run_id, priority, run_at,
                                      expires_at, max_attempts, traceparent, labels)
        VALUES (operation_id, tool, arguments, run_id, priority, run_at, expires_at, max_attempts,
                traceparent, labels)
            ON CONFLICT ON CONSTRAINT operation_id_key DO NOTHING;
        IF FOUND THEN
            IF run_at > now() THEN
                RETURN (operation_id, 'scheduled', false, NULL, NULL,
                        'This action is recorded and will be carried out at its time.',
                        now(), NULL, false)::outbox.receipt;
            END IF;
            RETURN (operation_id, 'pending', false, NULL, NULL,
                    'This action is recorded and will be carried out.',
                    now(), NULL, false)::outbox.receipt;
        END IF;
        answer := outbox.replay(operation_id, derived, tool, arguments, retry_failed);
        IF answer.operation_id IS NOT NULL THEN
            RETURN answer;
        END IF;
    END LOOP;
END $$;
COMMENT ON FUNCTION outbox.record_intent(operation_id text, derived boolean, tool text, arguments jsonb, run_id text, priority smallint, run_at timestamp with time zone, expires_at timestamp with time zone, max_attempts integer, traceparent text, labels jsonb, retry_failed boolean) IS 'Inserts the intent, or replays what is recorded';
CREATE FUNCTION outbox.refuse(code text, problem text, detail text, way_out text) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = refuse.code, MESSAGE = refuse.problem,
        DETAIL = refuse.detail, HINT = refuse.way_out;
END $$;
COMMENT ON FUNCTION outbox.refuse(code text, problem text, detail text, way_out text) IS 'Raises an error with code, detail and hint';
CREATE FUNCTION outbox.replay(operation_id text, derived boolean, tool text, arguments jsonb, retry_failed boolean) RETURNS outbox.receipt
    LANGUAGE plpgsql
    SET enable_seqscan TO 'off'
    AS $$
DECLARE
    known       record;
    undone_by   text;
    undone_as   text;
    same        boolean;
BEGIN
    SELECT o.seq, o.tool, o.arguments, o.arguments_digest, o.pruned_at, o.created_at,
           coalesce(e.outcome, q.status) AS status, e.result, e.error,
           coalesce(e.attention, q.attention) AS attention,
           CASE WHEN e.outcome IS NULL THEN q.attempt_epoch ELSE e.attempt_epoch END AS attempt_epoch,
           coalesce(e.result_expired, false) AS result_expired,
           EXISTS (SELECT FROM outbox.operation u WHERE u.compensates = replay.operation_id) AS undone
      INTO known
      FROM outbox.operation o
      LEFT JOIN LATERAL (SELECT w.status, w.attention, w.attempt_epoch
                           FROM outbox.queue w WHERE w.seq = o.seq OFFSET 0) q ON true
      LEFT JOIN LATERAL (SELECT w.outcome, w.result, w.error, w.attention, w.attempt_epoch,
                                w.result_expired
                           FROM outbox.outcome w WHERE w.seq = o.seq OFFSET 0) e ON true
     WHERE o.operation_id = replay.operation_id;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    same := known.tool = tool
        AND (known.pruned_at IS NULL AND known.arguments = arguments
             OR outbox.same_arguments(known.arguments, known.arguments_digest,
                                      known.pruned_at IS NOT NULL, arguments));
    IF NOT same AND NOT derived THEN
        PERFORM outbox.refuse('OB422',
            format('operation "%s" is recorded as another action', operation_id),
            CASE WHEN known.tool <> tool
                 THEN format('It is recorded with tool "%s", this call names "%s".',
                             known.tool, tool)
                 ELSE 'It is recorded with other arguments.' END,
            'Use a new operation_id for a new action, or repeat the call as it was recorded.');
    END IF;
    IF known.undone THEN  -- which of several counts, the view knows
        SELECT v.compensated_by, v.compensation_status INTO undone_by, undone_as
          FROM outbox.operations v WHERE v.operation_id = replay.operation_id;
    END IF;
    IF known.status = 'failed' AND retry_failed THEN
        IF NOT outbox.arm_again(known.seq, '{"by": "enqueue"}', 'failed', replay.arguments) THEN
            RETURN NULL;
        END IF;
        RETURN (operation_id, 'pending', false, NULL, NULL,
                'The previous attempt failed and had no effect; this action will be tried again.',
                known.created_at, undone_by, false)::outbox.receipt;
    END IF;
    INSERT INTO outbox.event (operation_id, kind, epoch, actor, detail)
    VALUES (operation_id, 'replayed', known.attempt_epoch, session_user,
            CASE WHEN same THEN jsonb_build_object('status', known.status)
                 ELSE jsonb_build_object('status', known.status, 'arguments_differed', true) END);
    RETURN (operation_id, known.status, true, known.result, known.error,
            outbox.status_message(known.status, true, derived, known.error, known.attention,
                undone_by, undone_as, known.result_expired)
            || CASE WHEN same THEN ''
                    ELSE ' The arguments of this call differed from the recorded ones; '
                         'the recorded ones hold.' END
            || CASE WHEN known.status <> 'failed' THEN ''
                    ELSE ' To try it again, repeat the call with retry_failed.' END,
            known.created_at, undone_by, known.result_expired)::outbox.receipt;
END $$;
COMMENT ON FUNCTION outbox.replay(operation_id text, derived boolean, tool text, arguments jsonb, retry_failed boolean) IS 'The answer to a call whose id is recorded; null when it is not';
CREATE FUNCTION outbox.replay_compensation(id text, arguments jsonb) RETURNS outbox.receipt
    LANGUAGE plpgsql
    AS $$
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
COMMENT ON FUNCTION outbox.replay_compensation(id text, arguments jsonb) IS 'The receipt of a compensation that is recorded already';
CREATE FUNCTION outbox.require_words(what text, VARIADIC words text[]) RETURNS void
    LANGUAGE plpgsql IMMUTABLE
    AS $$
BEGIN
    IF EXISTS (SELECT FROM unnest(words) w WHERE coalesce(w, '') !~ '[^[:space:]]') THEN
        PERFORM outbox.refuse('OB400', what, 'What is given is null or blank.',
            'It is kept for whoever reads the record later: say why, in a sentence.');
    END IF;
END $$;
COMMENT ON FUNCTION outbox.require_words(what text, VARIADIC words text[]) IS 'Refuses null and blank';
CREATE FUNCTION outbox.resolve(operation_id text, verdict text, reason text, actor text, expected_epoch integer, result jsonb DEFAULT NULL::jsonb) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'outbox', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
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
COMMENT ON FUNCTION outbox.resolve(operation_id text, verdict text, reason text, actor text, expected_epoch integer, result jsonb) IS 'A person settles an unknown operation: resolved, stale, too_early, not_unknown, not_found';
CREATE FUNCTION outbox.restore_arguments(seq bigint, arguments jsonb) RETURNS void
    LANGUAGE plpgsql
    AS $$
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
COMMENT ON FUNCTION outbox.restore_arguments(seq bigint, arguments jsonb) IS 'Brings pruned arguments back, or raises OB410';
CREATE FUNCTION outbox.resume_tool(tool text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'outbox', 'pg_temp'
    AS $$
BEGIN
    UPDATE outbox.tool t SET paused_at = NULL, paused_reason = NULL WHERE t.tool = resume_tool.tool;
    IF NOT FOUND THEN
        PERFORM outbox.check_tool(resume_tool.tool);
        RETURN 'not_found';  -- the catalogue is empty
    END IF;
    PERFORM outbox.wake(resume_tool.tool);
    RETURN 'resumed';
END $$;
COMMENT ON FUNCTION outbox.resume_tool(tool text) IS 'Ends a pause';
CREATE FUNCTION outbox.retry(operation_id text, reason text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'outbox', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
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
COMMENT ON FUNCTION outbox.retry(operation_id text, reason text) IS 'failed (no effect) → pending: armed, not_failed, not_found, pruned (its arguments are gone)';
CREATE FUNCTION outbox.roll_up(page integer DEFAULT 20000) RETURNS TABLE(tool text, enqueued bigint, replayed bigint, more boolean)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'outbox', 'pg_temp'
    SET enable_seqscan TO 'off'
    AS $$
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
COMMENT ON FUNCTION outbox.roll_up(page integer) IS 'Counts what was enqueued and replayed since; what this call added, per tool';
CREATE FUNCTION outbox.same_arguments(recorded jsonb, digest text, pruned boolean, given jsonb) RETURNS boolean
    LANGUAGE plpgsql STABLE
    AS $$
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
COMMENT ON FUNCTION outbox.same_arguments(recorded jsonb, digest text, pruned boolean, given jsonb) IS 'Does a call say the same as the recorded one?';
CREATE FUNCTION outbox.stats() RETURNS TABLE(tool text, status text, count bigint, oldest_age interval, enqueued_1h bigint, replayed_1h bigint, replay_rate_1h numeric, enqueued_30d bigint, replayed_30d bigint, replay_rate_30d numeric)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'outbox', 'pg_temp'
    SET plan_cache_mode TO 'force_custom_plan'
    AS $$
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
CREATE FUNCTION outbox.utf16_order(key text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE
    AS $$
    SELECT CASE WHEN octet_length(key) = length(key) THEN key
           ELSE regexp_replace(
                    replace(key COLLATE "C", E'\U0010FFFF', E'\U0010FFFF\u0001'),
                    E'([\\uE000-\\uFFFF])', E'\U0010FFFF\\1', 'g') END
$$;
COMMENT ON FUNCTION outbox.utf16_order(key text) IS 'Sort key of an object key: order of UTF-16 code units under COLLATE "C"';
CREATE FUNCTION outbox.wake(tool text) RETURNS void
    LANGUAGE plpgsql
    AS $$
BEGIN
    IF current_setting('outbox.wakeup', true) = 'off' THEN
        RETURN;
    END IF;
    IF NOT pg_try_advisory_xact_lock_shared(1869968504, hashtext(tool)) THEN
        PERFORM pg_notify('outbox_wake', tool);
    END IF;
END $$;
COMMENT ON FUNCTION outbox.wake(tool text) IS 'Wakes a sleeping daemon for a row that became pending without an insert';
CREATE FUNCTION outbox.writers(source text) RETURNS text[]
    LANGUAGE sql
    AS $$
    SELECT coalesce(array_agg(DISTINCT l.virtualtransaction), '{}')
      FROM pg_locks l
     WHERE l.locktype = 'relation' AND l.granted AND l.mode = 'RowExclusiveLock'
       AND l.database = (SELECT d.oid FROM pg_database d WHERE d.datname = current_database())
       AND l.relation = CASE WHEN source = 'operation' THEN 'outbox.operation'::regclass
                             ELSE 'outbox.event'::regclass END
$$;
COMMENT ON FUNCTION outbox.writers(source text) IS 'Virtual transactions that may have written to the table and have not ended';
CREATE FUNCTION outbox.writers_left(noted text[], source text) RETURNS text[]
    LANGUAGE plpgsql
    AS $$
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
COMMENT ON FUNCTION outbox.writers_left(noted text[], source text) IS 'The noted writers that have not ended, under the name they have now';
CREATE VIEW outbox.attention AS
 SELECT o.operation_id,
    o.tool,
    a.status,
    a.attention,
        CASE a.attention
            WHEN 'manual'::text THEN 'No look-up is configured for this tool: only a person can tell whether it happened.'::text
            WHEN 'conflict'::text THEN 'The look-up found something else than was asked for, or more than one match.'::text
            WHEN 'hold'::text THEN 'It did not happen; the tool is configured to wait for a person before trying again.'::text
            WHEN 'give_up'::text THEN 'The look-up gave no clear answer for too long.'::text
            WHEN 'provider'::text THEN 'The other side says that a person must look.'::text
            WHEN 'late_effect'::text THEN 'An answer came late: it did happen, although it was recorded without effect.'::text
            WHEN 'duplicate_effect'::text THEN 'It happened twice; both results are in the events.'::text
            ELSE NULL::text
        END AS why,
    a.error,
    a.attempts,
    a.attempt_epoch,
    a.since,
    o.run_id,
    o.created_at
   FROM (( SELECT q.seq,
            q.status,
            q.attention,
            q.error,
            q.attempts,
            q.attempt_epoch,
            q.unknown_since AS since
           FROM outbox.queue q
          WHERE (q.attention IS NOT NULL)
        UNION ALL
         SELECT e.seq,
            e.outcome,
            e.attention,
            e.error,
            e.attempts,
            e.attempt_epoch,
            e.finished_at
           FROM outbox.outcome e
          WHERE (e.attention IS NOT NULL)) a
     JOIN outbox.operation o ON ((o.seq = a.seq)));
COMMENT ON VIEW outbox.attention IS 'What waits for a person, and why';
COMMENT ON COLUMN outbox.attention.operation_id IS 'Identity of the operation';
COMMENT ON COLUMN outbox.attention.tool IS 'Name of the tool';
COMMENT ON COLUMN outbox.attention.status IS 'unknown: outbox.resolve settles it; final: outbox.acknowledge clears the flag';
COMMENT ON COLUMN outbox.attention.attention IS 'The reason, from a closed set';
COMMENT ON COLUMN outbox.attention.why IS 'The reason in a sentence';
COMMENT ON COLUMN outbox.attention.error IS 'How the last attempt or probe ended';
COMMENT ON COLUMN outbox.attention.attempts IS 'Attempts made';
COMMENT ON COLUMN outbox.attention.attempt_epoch IS 'Pass it to outbox.resolve as expected_epoch';
COMMENT ON COLUMN outbox.attention.since IS 'Unknown since, or finished at';
COMMENT ON COLUMN outbox.attention.run_id IS 'The planner''s run';
COMMENT ON COLUMN outbox.attention.created_at IS 'Start of the planner''s transaction';
CREATE TABLE outbox.worker (
    worker uuid NOT NULL,
    name text NOT NULL,
    version text NOT NULL,
    tools text[] DEFAULT '{}'::text[] NOT NULL,
    started_at timestamp with time zone DEFAULT now() NOT NULL,
    heartbeat_at timestamp with time zone DEFAULT now() NOT NULL,
    stopped_at timestamp with time zone
)
WITH (fillfactor='50');
COMMENT ON TABLE outbox.worker IS 'Running daemons; a fresh UUID per start';
CREATE VIEW outbox.backlog AS
 SELECT s.tool,
    s.status,
    s.count,
        CASE
            WHEN (s.status = ANY (ARRAY['pending'::text, 'scheduled'::text])) THEN LEAST(s.since,
            CASE
                WHEN (s.first IS NOT NULL) THEN ( SELECT o.created_at
                   FROM outbox.operation o
                  WHERE (o.seq = s.first))
                ELSE NULL::timestamp with time zone
            END)
            ELSE s.since
        END AS since,
    s.served
   FROM ( SELECT g.tool,
            g.status,
            g.count,
            g.since,
            g.first,
            (EXISTS ( SELECT
                   FROM outbox.worker w
                  WHERE ((g.tool = ANY (w.tools)) AND (w.stopped_at IS NULL) AND (w.heartbeat_at > (now() - '00:01:00'::interval))))) AS served
           FROM ( SELECT q.tool,
                    q.status,
                    count(*) AS count,
                    min(
                        CASE q.status
                            WHEN 'pending'::text THEN q.due_at
                            WHEN 'attempting'::text THEN q.attempted_at
                            WHEN 'unknown'::text THEN
                            CASE
                                WHEN ((NOT q.accepted) OR (q.attention IS NOT NULL)) THEN q.unknown_since
                                ELSE NULL::timestamp with time zone
                            END
                            ELSE NULL::timestamp with time zone
                        END) AS since,
                    min(
                        CASE
                            WHEN ((q.status = 'scheduled'::text) OR ((q.status = 'pending'::text) AND (q.due_at IS NULL))) THEN q.seq
                            ELSE NULL::bigint
                        END) AS first
                   FROM outbox.queue q
                  GROUP BY q.tool, q.status) g) s;
COMMENT ON VIEW outbox.backlog IS 'What is open, per tool and status, and since when';
COMMENT ON COLUMN outbox.backlog.tool IS 'Name of the tool';
COMMENT ON COLUMN outbox.backlog.status IS 'pending, scheduled, attempting, unknown';
COMMENT ON COLUMN outbox.backlog.count IS 'Operations in this status';
COMMENT ON COLUMN outbox.backlog.since IS 'pending: since when the oldest could run; scheduled: since when it is recorded; attempting, unknown: since when it is that; null: only accepted ones';
COMMENT ON COLUMN outbox.backlog.served IS 'A daemon that is alive runs this tool';
CREATE TABLE outbox.event (
    id bigint NOT NULL,
    operation_id text NOT NULL,
    at timestamp with time zone DEFAULT clock_timestamp() NOT NULL,
    kind text NOT NULL,
    epoch integer,
    worker uuid,
    actor text,
    detail jsonb DEFAULT '{}'::jsonb NOT NULL,
    CONSTRAINT event_valid CHECK (((kind)::outbox.event_kind IS NOT NULL))
);
COMMENT ON TABLE outbox.event IS 'Append-only log of abnormal things; the clean path writes none';
ALTER TABLE outbox.event ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME outbox.event_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE outbox.migration (
    number integer NOT NULL,
    name text NOT NULL,
    checksum text NOT NULL,
    breaking boolean NOT NULL,
    applied_at timestamp with time zone DEFAULT now() NOT NULL
);
COMMENT ON TABLE outbox.migration IS 'Migrations that were applied; forward only';
ALTER TABLE outbox.operation ALTER COLUMN seq ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME outbox.operation_seq_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE outbox.request (
    tool text NOT NULL,
    request_hash bigint NOT NULL,
    key_settings jsonb NOT NULL,
    published_at timestamp with time zone DEFAULT now() NOT NULL,
    leaves_doubt boolean
);
COMMENT ON COLUMN outbox.request.leaves_doubt IS 'An attempt whose end nobody saw may have had an effect; false for reads, and where effect and record are one transaction';
CREATE TABLE outbox.retention (
    only_row boolean DEFAULT true NOT NULL,
    pruned_to bigint DEFAULT 0 NOT NULL,
    CONSTRAINT retention_only_row CHECK (only_row)
);
COMMENT ON TABLE outbox.retention IS 'How far outbox.prune_payloads came; whoever locks the row prunes';
COMMENT ON COLUMN outbox.retention.pruned_to IS 'Operations up to this seq are pruned, or noted in outbox.unpruned';
CREATE TABLE outbox.rollup (
    source text NOT NULL,
    counted bigint NOT NULL,
    mark bigint NOT NULL,
    writers text[] DEFAULT '{}'::text[] NOT NULL,
    CONSTRAINT rollup_mark CHECK ((counted <= mark)),
    CONSTRAINT rollup_source CHECK ((source = ANY (ARRAY['operation'::text, 'event'::text])))
);
COMMENT ON TABLE outbox.rollup IS 'How far outbox.roll_up has counted';
COMMENT ON COLUMN outbox.rollup.counted IS 'Rows up to this number are counted';
COMMENT ON COLUMN outbox.rollup.mark IS 'Rows up to this number are counted next, once the writers are gone';
COMMENT ON COLUMN outbox.rollup.writers IS 'Virtual transactions that may still commit a row up to the mark';
CREATE TABLE outbox.setting (
    name text NOT NULL,
    value text NOT NULL
);
CREATE TABLE outbox.stretch (
    tool text NOT NULL,
    block bigint NOT NULL,
    first bigint NOT NULL,
    last bigint NOT NULL,
    operations integer NOT NULL
);
COMMENT ON TABLE outbox.stretch IS 'Where among the operations that are counted (outbox.rollup) a tool is found';
COMMENT ON COLUMN outbox.stretch.tool IS 'Name of the tool';
COMMENT ON COLUMN outbox.stretch.block IS 'seq / 2048';
COMMENT ON COLUMN outbox.stretch.first IS 'Smallest seq of the tool in this block';
COMMENT ON COLUMN outbox.stretch.last IS 'Largest seq of the tool in this block';
COMMENT ON COLUMN outbox.stretch.operations IS 'How many of the tool were counted in this block';
CREATE TABLE outbox.tally (
    at timestamp with time zone NOT NULL,
    tool text NOT NULL,
    enqueued bigint DEFAULT 0 NOT NULL,
    replayed bigint DEFAULT 0 NOT NULL
);
COMMENT ON TABLE outbox.tally IS 'What was enqueued and replayed, by the minute for two hours, then by the hour';
COMMENT ON COLUMN outbox.tally.at IS 'Start of the minute or hour in which the planner''s transaction began';
COMMENT ON COLUMN outbox.tally.enqueued IS 'Operations that were inserted, by either road';
COMMENT ON COLUMN outbox.tally.replayed IS 'Calls of enqueue that were answered with an earlier operation';
CREATE TABLE outbox.tool (
    tool text NOT NULL,
    description text DEFAULT ''::text NOT NULL,
    effect text NOT NULL,
    revision text NOT NULL,
    dedup_fields text[] DEFAULT '{}'::text[] NOT NULL,
    compensations text[] DEFAULT '{}'::text[] NOT NULL,
    max_attempts integer DEFAULT 8 NOT NULL,
    timeout interval DEFAULT '00:00:20'::interval NOT NULL,
    settle interval DEFAULT '00:00:10'::interval NOT NULL,
    arguments_schema jsonb,
    published_at timestamp with time zone DEFAULT now() NOT NULL,
    published_by uuid,
    paused_at timestamp with time zone,
    paused_reason text,
    needs_original text[] DEFAULT '{arguments,result}'::text[] NOT NULL,
    CONSTRAINT tool_effect_check CHECK ((effect = ANY (ARRAY['write'::text, 'read'::text])))
);
COMMENT ON TABLE outbox.tool IS 'The tools that daemons publish from their configuration; no secret is in it';
COMMENT ON COLUMN outbox.tool.needs_original IS 'For a compensation: which of the original''s arguments and result its templates name';
CREATE TABLE outbox.unpruned (
    seq bigint NOT NULL
);
COMMENT ON TABLE outbox.unpruned IS 'Operations up to retention.pruned_to that still have their payload';
ALTER TABLE ONLY outbox.event
    ADD CONSTRAINT event_pkey PRIMARY KEY (id);
ALTER TABLE ONLY outbox.migration
    ADD CONSTRAINT migration_pkey PRIMARY KEY (number);
ALTER TABLE ONLY outbox.operation
    ADD CONSTRAINT operation_id_key UNIQUE (operation_id);
ALTER TABLE ONLY outbox.operation
    ADD CONSTRAINT operation_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY outbox.outcome
    ADD CONSTRAINT outcome_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY outbox.queue
    ADD CONSTRAINT queue_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY outbox.request
    ADD CONSTRAINT request_pkey PRIMARY KEY (tool, request_hash);
ALTER TABLE ONLY outbox.retention
    ADD CONSTRAINT retention_pkey PRIMARY KEY (only_row);
ALTER TABLE ONLY outbox.rollup
    ADD CONSTRAINT rollup_pkey PRIMARY KEY (source);
ALTER TABLE ONLY outbox.setting
    ADD CONSTRAINT setting_pkey PRIMARY KEY (name);
ALTER TABLE ONLY outbox.stretch
    ADD CONSTRAINT stretch_pkey PRIMARY KEY (tool, block);
ALTER TABLE ONLY outbox.tally
    ADD CONSTRAINT tally_pkey PRIMARY KEY (at, tool);
ALTER TABLE ONLY outbox.tool
    ADD CONSTRAINT tool_pkey PRIMARY KEY (tool);
ALTER TABLE ONLY outbox.unpruned
    ADD CONSTRAINT unpruned_pkey PRIMARY KEY (seq);
ALTER TABLE ONLY outbox.worker
    ADD CONSTRAINT worker_pkey PRIMARY KEY (worker);
CREATE INDEX event_at ON outbox.event USING brin (at);
CREATE INDEX event_operation ON outbox.event USING btree (operation_id, id);
CREATE INDEX operation_compensates ON outbox.operation USING btree (compensates) WHERE (compensates IS NOT NULL);
CREATE INDEX outcome_ends ON outbox.outcome USING btree (outcome, tool, seq) WHERE (outcome <> 'succeeded'::text);
CREATE INDEX outcome_flagged ON outbox.outcome USING btree (seq) WHERE (attention IS NOT NULL);
CREATE INDEX queue_attention ON outbox.queue USING btree (seq) WHERE (attention IS NOT NULL);
CREATE INDEX queue_due ON outbox.queue USING btree (tool, due_at) WHERE (status = ANY (ARRAY['scheduled'::text, 'attempting'::text, 'unknown'::text]));
CREATE INDEX queue_expires ON outbox.queue USING btree (expires_at) WHERE ((expires_at IS NOT NULL) AND (status = ANY (ARRAY['pending'::text, 'scheduled'::text])));
CREATE INDEX queue_ready ON outbox.queue USING btree (tool, priority, seq) WHERE (status = 'pending'::text);
CREATE INDEX queue_waiting ON outbox.queue USING btree (status, tool, seq) WHERE (status = ANY (ARRAY['scheduled'::text, 'unknown'::text]));
CREATE INDEX queue_waits ON outbox.queue USING btree (waits_for, seq) WHERE (waits_for IS NOT NULL);
CREATE INDEX tally_minutes ON outbox.tally USING btree (at) WHERE (at <> date_bin('01:00:00'::interval, at, '2000-01-01 00:00:00+00'::timestamp with time zone));
CREATE TRIGGER check_work AFTER UPDATE ON outbox.queue FOR EACH ROW WHEN ((((new.attention IS NULL) AND
        CASE new.status
            WHEN 'attempting'::text THEN ((new.leased_by IS NOT NULL) AND (new.deadline_at IS NOT NULL) AND (new.due_at IS NOT NULL) AND (new.attempt_epoch IS NOT NULL) AND (new.started_at IS NOT NULL))
            WHEN 'pending'::text THEN true
            WHEN 'scheduled'::text THEN (new.due_at IS NOT NULL)
            WHEN 'unknown'::text THEN ((new.due_at IS NOT NULL) AND (new.unknown_since IS NOT NULL))
            ELSE NULL::boolean
        END) IS NOT TRUE)) EXECUTE FUNCTION outbox.check_work();
CREATE TRIGGER file_work AFTER INSERT ON outbox.operation FOR EACH ROW EXECUTE FUNCTION outbox.file_work();
CREATE TRIGGER name_tool BEFORE INSERT OR UPDATE OF outcome, attention ON outbox.outcome FOR EACH ROW WHEN (((new.tool IS NULL) AND ((new.outcome <> 'succeeded'::text) OR (new.attention IS NOT NULL)))) EXECUTE FUNCTION outbox.name_tool();
GRANT USAGE ON SCHEMA outbox TO outbox_operator;
GRANT USAGE ON SCHEMA outbox TO outbox_planner;
GRANT USAGE ON SCHEMA outbox TO outbox_reader;
GRANT USAGE ON SCHEMA outbox TO outbox_worker;
REVOKE ALL ON FUNCTION outbox.acknowledge(operation_id text, reason text, actor text) FROM PUBLIC;
GRANT ALL ON FUNCTION outbox.acknowledge(operation_id text, reason text, actor text) TO outbox_operator;
GRANT ALL ON FUNCTION outbox.acknowledge(operation_id text, reason text, actor text) TO outbox_worker;
REVOKE ALL ON FUNCTION outbox.announce(operation_id text) FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.arguments_digest(arguments jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION outbox.arguments_digest(arguments jsonb) TO outbox_worker;
REVOKE ALL ON FUNCTION outbox.arm_again(seq bigint, detail jsonb, ended_as text, arguments jsonb) FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.cancel(operation_id text, reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION outbox.cancel(operation_id text, reason text) TO outbox_operator;
GRANT ALL ON FUNCTION outbox.cancel(operation_id text, reason text) TO outbox_planner;
GRANT ALL ON FUNCTION outbox.cancel(operation_id text, reason text) TO outbox_worker;
REVOKE ALL ON FUNCTION outbox.cancel_waiting(original bigint) FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.canonical_json(value jsonb, trim_strings boolean, depth integer) FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.canonical_number(n numeric) FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.check_compensation(operation_id text, name text, arguments jsonb, reason text) FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.check_original(operation_id text, tool text, arguments_pruned boolean, result_expired boolean) FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.check_request(tool text, arguments jsonb, operation_id text, run_id text, occurrence integer, priority smallint, run_at timestamp with time zone, expires_at timestamp with time zone, max_attempts integer, traceparent text, labels jsonb) FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.check_size(arguments jsonb) FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.check_tool(tool text) FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.check_work() FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.compensate(operation_id text, name text, arguments jsonb, reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION outbox.compensate(operation_id text, name text, arguments jsonb, reason text) TO outbox_operator;
GRANT ALL ON FUNCTION outbox.compensate(operation_id text, name text, arguments jsonb, reason text) TO outbox_planner;
GRANT ALL ON FUNCTION outbox.compensate(operation_id text, name text, arguments jsonb, reason text) TO outbox_worker;
REVOKE ALL ON FUNCTION outbox.count_page(source text, first bigint, last bigint) FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.derive_id(tool text, arguments jsonb, run_id text, occurrence integer) FROM PUBLIC;
GRANT ALL ON FUNCTION outbox.derive_id(tool text, arguments jsonb, run_id text, occurrence integer) TO outbox_operator;
GRANT ALL ON FUNCTION outbox.derive_id(tool text, arguments jsonb, run_id text, occurrence integer) TO outbox_planner;
GRANT ALL ON FUNCTION outbox.derive_id(tool text, arguments jsonb, run_id text, occurrence integer) TO outbox_worker;
REVOKE ALL ON FUNCTION outbox.disown() FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.edit_distance(a text, b text) FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.enqueue(tool text, arguments jsonb, operation_id text, run_id text, occurrence integer, priority smallint, run_at timestamp with time zone, expires_at timestamp with time zone, max_attempts integer, traceparent text, labels jsonb, retry_failed boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION outbox.enqueue(tool text, arguments jsonb, operation_id text, run_id text, occurrence integer, priority smallint, run_at timestamp with time zone, expires_at timestamp with time zone, max_attempts integer, traceparent text, labels jsonb, retry_failed boolean) TO outbox_operator;
GRANT ALL ON FUNCTION outbox.enqueue(tool text, arguments jsonb, operation_id text, run_id text, occurrence integer, priority smallint, run_at timestamp with time zone, expires_at timestamp with time zone, max_attempts integer, traceparent text, labels jsonb, retry_failed boolean) TO outbox_planner;
GRANT ALL ON FUNCTION outbox.enqueue(tool text, arguments jsonb, operation_id text, run_id text, occurrence integer, priority smallint, run_at timestamp with time zone, expires_at timestamp with time zone, max_attempts integer, traceparent text, labels jsonb, retry_failed boolean) TO outbox_worker;
REVOKE ALL ON FUNCTION outbox.enqueue_many(requests jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION outbox.enqueue_many(requests jsonb) TO outbox_operator;
GRANT ALL ON FUNCTION outbox.enqueue_many(requests jsonb) TO outbox_planner;
GRANT ALL ON FUNCTION outbox.enqueue_many(requests jsonb) TO outbox_worker;
REVOKE ALL ON FUNCTION outbox.file_work() FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.find_compensation(tool text, name text) FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.forget(seqs bigint[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.forget_keys(older_than interval, after bigint, page integer, dry_run boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION outbox.forget_keys(older_than interval, after bigint, page integer, dry_run boolean) TO outbox_operator;
GRANT ALL ON FUNCTION outbox.forget_keys(older_than interval, after bigint, page integer, dry_run boolean) TO outbox_worker;
REVOKE ALL ON FUNCTION outbox.get(operation_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION outbox.get(operation_id text) TO outbox_operator;
GRANT ALL ON FUNCTION outbox.get(operation_id text) TO outbox_planner;
GRANT ALL ON FUNCTION outbox.get(operation_id text) TO outbox_worker;
REVOKE ALL ON FUNCTION outbox.grant_rights() FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.grant_rights_before_operating() FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.grant_rights_before_retention() FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.grant_rights_before_statistics() FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.hash_call(tool text, arguments jsonb, run_id text, occurrence integer) FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.identify(tool text, arguments jsonb, operation_id text, run_id text, occurrence integer, priority smallint, run_at timestamp with time zone, expires_at timestamp with time zone, max_attempts integer, traceparent text, labels jsonb) FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.is_shortest_double(n numeric) FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.last_number(source text) FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.last_seq_before(at timestamp with time zone) FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.status_message(status text, replayed boolean, derived boolean, error jsonb, attention text, compensated_by text, compensation_status text, result_expired boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION outbox.status_message(status text, replayed boolean, derived boolean, error jsonb, attention text, compensated_by text, compensation_status text, result_expired boolean) TO outbox_operator;
GRANT ALL ON FUNCTION outbox.status_message(status text, replayed boolean, derived boolean, error jsonb, attention text, compensated_by text, compensation_status text, result_expired boolean) TO outbox_reader;
GRANT ALL ON FUNCTION outbox.status_message(status text, replayed boolean, derived boolean, error jsonb, attention text, compensated_by text, compensation_status text, result_expired boolean) TO outbox_worker;
GRANT SELECT ON TABLE outbox.operation TO outbox_worker;
GRANT SELECT(operation_id),INSERT(operation_id),REFERENCES(operation_id) ON TABLE outbox.operation TO outbox_operator;
GRANT SELECT(operation_id),INSERT(operation_id),REFERENCES(operation_id) ON TABLE outbox.operation TO outbox_planner;
GRANT SELECT(operation_id),INSERT(operation_id),REFERENCES(operation_id) ON TABLE outbox.operation TO outbox_worker;
GRANT INSERT(tool) ON TABLE outbox.operation TO outbox_operator;
GRANT INSERT(tool) ON TABLE outbox.operation TO outbox_planner;
GRANT INSERT(tool) ON TABLE outbox.operation TO outbox_worker;
GRANT INSERT(arguments) ON TABLE outbox.operation TO outbox_operator;
GRANT INSERT(arguments) ON TABLE outbox.operation TO outbox_planner;
GRANT INSERT(arguments),UPDATE(arguments) ON TABLE outbox.operation TO outbox_worker;
GRANT INSERT(run_id) ON TABLE outbox.operation TO outbox_operator;
GRANT INSERT(run_id) ON TABLE outbox.operation TO outbox_planner;
GRANT INSERT(run_id) ON TABLE outbox.operation TO outbox_worker;
GRANT INSERT(priority) ON TABLE outbox.operation TO outbox_operator;
GRANT INSERT(priority) ON TABLE outbox.operation TO outbox_planner;
GRANT INSERT(priority) ON TABLE outbox.operation TO outbox_worker;
GRANT INSERT(run_at) ON TABLE outbox.operation TO outbox_operator;
GRANT INSERT(run_at) ON TABLE outbox.operation TO outbox_planner;
GRANT INSERT(run_at) ON TABLE outbox.operation TO outbox_worker;
GRANT INSERT(expires_at) ON TABLE outbox.operation TO outbox_operator;
GRANT INSERT(expires_at) ON TABLE outbox.operation TO outbox_planner;
GRANT INSERT(expires_at) ON TABLE outbox.operation TO outbox_worker;
GRANT INSERT(max_attempts) ON TABLE outbox.operation TO outbox_operator;
GRANT INSERT(max_attempts) ON TABLE outbox.operation TO outbox_planner;
GRANT INSERT(max_attempts) ON TABLE outbox.operation TO outbox_worker;
GRANT INSERT(traceparent) ON TABLE outbox.operation TO outbox_operator;
GRANT INSERT(traceparent) ON TABLE outbox.operation TO outbox_planner;
GRANT INSERT(traceparent) ON TABLE outbox.operation TO outbox_worker;
GRANT INSERT(labels) ON TABLE outbox.operation TO outbox_operator;
GRANT INSERT(labels) ON TABLE outbox.operation TO outbox_planner;
GRANT INSERT(labels) ON TABLE outbox.operation TO outbox_worker;
GRANT UPDATE(arguments_digest) ON TABLE outbox.operation TO outbox_worker;
GRANT UPDATE(pruned_at) ON TABLE outbox.operation TO outbox_worker;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE outbox.outcome TO outbox_worker;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE outbox.queue TO outbox_worker;
GRANT SELECT ON TABLE outbox.operations TO outbox_operator;
GRANT SELECT ON TABLE outbox.operations TO outbox_reader;
GRANT SELECT ON TABLE outbox.operations TO outbox_worker;
REVOKE ALL ON FUNCTION outbox.list(statuses text[], tool text, older_than interval, attention boolean, after bigint, page integer) FROM PUBLIC;
GRANT ALL ON FUNCTION outbox.list(statuses text[], tool text, older_than interval, attention boolean, after bigint, page integer) TO outbox_operator;
GRANT ALL ON FUNCTION outbox.list(statuses text[], tool text, older_than interval, attention boolean, after bigint, page integer) TO outbox_reader;
GRANT ALL ON FUNCTION outbox.list(statuses text[], tool text, older_than interval, attention boolean, after bigint, page integer) TO outbox_worker;
REVOKE ALL ON FUNCTION outbox.name_tool() FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.newest_of_tool(tool text, succeeded boolean, upto bigint, before timestamp with time zone, page integer) FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.operation_key(tool text, arguments jsonb, run_id text, occurrence integer) FROM PUBLIC;
GRANT ALL ON FUNCTION outbox.operation_key(tool text, arguments jsonb, run_id text, occurrence integer) TO outbox_operator;
GRANT ALL ON FUNCTION outbox.operation_key(tool text, arguments jsonb, run_id text, occurrence integer) TO outbox_planner;
GRANT ALL ON FUNCTION outbox.operation_key(tool text, arguments jsonb, run_id text, occurrence integer) TO outbox_worker;
REVOKE ALL ON FUNCTION outbox.parse_request(item jsonb) FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.pause_tool(tool text, reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION outbox.pause_tool(tool text, reason text) TO outbox_operator;
GRANT ALL ON FUNCTION outbox.pause_tool(tool text, reason text) TO outbox_worker;
REVOKE ALL ON FUNCTION outbox.plain_number(n numeric) FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.probe(operation_id text) FROM PUBLIC;
GRANT ALL ON FUNCTION outbox.probe(operation_id text) TO outbox_operator;
GRANT ALL ON FUNCTION outbox.probe(operation_id text) TO outbox_worker;
REVOKE ALL ON FUNCTION outbox.prune_events(older_than interval, after bigint, page integer) FROM PUBLIC;
GRANT ALL ON FUNCTION outbox.prune_events(older_than interval, after bigint, page integer) TO outbox_operator;
GRANT ALL ON FUNCTION outbox.prune_events(older_than interval, after bigint, page integer) TO outbox_worker;
REVOKE ALL ON FUNCTION outbox.prune_payloads(older_than interval, after bigint, page integer) FROM PUBLIC;
GRANT ALL ON FUNCTION outbox.prune_payloads(older_than interval, after bigint, page integer) TO outbox_operator;
GRANT ALL ON FUNCTION outbox.prune_payloads(older_than interval, after bigint, page integer) TO outbox_worker;
REVOKE ALL ON FUNCTION outbox.record_compensation(original outbox.operation, name text, arguments jsonb, reason text, waiting boolean) FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.record_intent(operation_id text, derived boolean, tool text, arguments jsonb, run_id text, priority smallint, run_at timestamp with time zone, expires_at timestamp with time zone, max_attempts integer, traceparent text, labels jsonb, retry_failed boolean) FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.refuse(code text, problem text, detail text, way_out text) FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.replay(operation_id text, derived boolean, tool text, arguments jsonb, retry_failed boolean) FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.replay_compensation(id text, arguments jsonb) FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.require_words(what text, VARIADIC words text[]) FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.resolve(operation_id text, verdict text, reason text, actor text, expected_epoch integer, result jsonb) FROM PUBLIC;
GRANT ALL ON FUNCTION outbox.resolve(operation_id text, verdict text, reason text, actor text, expected_epoch integer, result jsonb) TO outbox_operator;
GRANT ALL ON FUNCTION outbox.resolve(operation_id text, verdict text, reason text, actor text, expected_epoch integer, result jsonb) TO outbox_worker;
REVOKE ALL ON FUNCTION outbox.restore_arguments(seq bigint, arguments jsonb) FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.resume_tool(tool text) FROM PUBLIC;
GRANT ALL ON FUNCTION outbox.resume_tool(tool text) TO outbox_operator;
GRANT ALL ON FUNCTION outbox.resume_tool(tool text) TO outbox_worker;
REVOKE ALL ON FUNCTION outbox.retry(operation_id text, reason text) FROM PUBLIC;
GRANT ALL ON FUNCTION outbox.retry(operation_id text, reason text) TO outbox_operator;
GRANT ALL ON FUNCTION outbox.retry(operation_id text, reason text) TO outbox_worker;
REVOKE ALL ON FUNCTION outbox.roll_up(page integer) FROM PUBLIC;
GRANT ALL ON FUNCTION outbox.roll_up(page integer) TO outbox_worker;
REVOKE ALL ON FUNCTION outbox.same_arguments(recorded jsonb, digest text, pruned boolean, given jsonb) FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.stats() FROM PUBLIC;
GRANT ALL ON FUNCTION outbox.stats() TO outbox_operator;
GRANT ALL ON FUNCTION outbox.stats() TO outbox_reader;
GRANT ALL ON FUNCTION outbox.stats() TO outbox_worker;
REVOKE ALL ON FUNCTION outbox.utf16_order(key text) FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.wake(tool text) FROM PUBLIC;
GRANT ALL ON FUNCTION outbox.wake(tool text) TO outbox_worker;
REVOKE ALL ON FUNCTION outbox.writers(source text) FROM PUBLIC;
REVOKE ALL ON FUNCTION outbox.writers_left(noted text[], source text) FROM PUBLIC;
GRANT SELECT ON TABLE outbox.attention TO outbox_operator;
GRANT SELECT ON TABLE outbox.attention TO outbox_reader;
GRANT SELECT ON TABLE outbox.attention TO outbox_worker;
GRANT SELECT ON TABLE outbox.worker TO outbox_operator;
GRANT SELECT ON TABLE outbox.worker TO outbox_reader;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE outbox.worker TO outbox_worker;
GRANT SELECT ON TABLE outbox.backlog TO outbox_worker;
GRANT SELECT ON TABLE outbox.backlog TO outbox_operator;
GRANT SELECT ON TABLE outbox.backlog TO outbox_reader;
GRANT SELECT ON TABLE outbox.event TO outbox_operator;
GRANT SELECT ON TABLE outbox.event TO outbox_reader;
GRANT SELECT,INSERT,DELETE ON TABLE outbox.event TO outbox_worker;
GRANT SELECT ON TABLE outbox.migration TO outbox_worker;
GRANT SELECT,INSERT,UPDATE ON TABLE outbox.request TO outbox_worker;
GRANT SELECT ON TABLE outbox.retention TO outbox_worker;
GRANT SELECT ON TABLE outbox.rollup TO outbox_worker;
GRANT SELECT,INSERT,UPDATE ON TABLE outbox.setting TO outbox_worker;
GRANT SELECT ON TABLE outbox.stretch TO outbox_worker;
GRANT SELECT ON TABLE outbox.tally TO outbox_worker;
GRANT SELECT ON TABLE outbox.tool TO outbox_operator;
GRANT SELECT ON TABLE outbox.tool TO outbox_reader;
GRANT SELECT,INSERT,UPDATE ON TABLE outbox.tool TO outbox_worker;
GRANT SELECT ON TABLE outbox.unpruned TO outbox_worker;
