-- enqueue gets cheaper, above all for an id that is known. Its answers stay, but for one call that could
-- only go wrong: an empty run_id makes no key, because every run would share it.

CREATE OR REPLACE FUNCTION outbox.check_request(
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
END $$;

-- Validates a request and returns its id.
CREATE OR REPLACE FUNCTION outbox.identify(
    tool text, arguments jsonb, operation_id text, run_id text, occurrence integer,
    priority smallint, run_at timestamptz, expires_at timestamptz, max_attempts integer,
    traceparent text, labels jsonb) RETURNS text
    LANGUAGE plpgsql STABLE AS $$
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

-- As before, and a short way for what is most usual: a small flat object of plain ASCII, whose texts
-- have no blanks at their ends and whose numbers need no other notation. Then the text that jsonb
-- prints for a member is canonical, and only the order is to be made: a tsvector holds its words in
-- the order of their bytes, which for ASCII is that of UTF-16 code units.
CREATE OR REPLACE FUNCTION outbox.canonical_json(
    value jsonb, trim_strings boolean, depth integer DEFAULT 1) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
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
END $$;

CREATE OR REPLACE FUNCTION outbox.hash_call(tool text, arguments jsonb, run_id text, occurrence integer)
    RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN encode(sha256(convert_to(concat(
        '{"arguments":', outbox.canonical_json(arguments, true),
        CASE WHEN occurrence > 1 THEN ',"occurrence":' END, nullif(occurrence, 1),
        ',"run_id":', to_jsonb(run_id), ',"tool":', to_jsonb(tool), '}'), 'UTF8')), 'hex');
END $$;

-- The same sentences, found by a walk instead of one large CASE: an expression is prepared whole in
-- every transaction that asks, a branch that is not walked is not.
CREATE OR REPLACE FUNCTION outbox.status_message(
    status text, replayed boolean, derived boolean, error jsonb, attention text,
    compensated_by text, compensation_status text, result_expired boolean) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
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

-- As before, table by table: a plan of the one large statement, made while the outbox held a row or
-- two, walked all of them later.
CREATE OR REPLACE FUNCTION outbox.arm_again(seq bigint, detail jsonb, ended_as text DEFAULT 'failed')
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

-- The answer to a call whose id is recorded; null when it is not (any more). One statement, so what
-- it reads is of one moment. Each table is asked by its own unique key (the OFFSETs keep the planner
-- from joining) and never scanned: a plan made for small tables is right for large ones.
CREATE FUNCTION outbox.replay(
    operation_id text, derived boolean, tool text, arguments jsonb, retry_failed boolean)
    RETURNS outbox.receipt
    LANGUAGE plpgsql SET enable_seqscan = off AS $$
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
        IF NOT outbox.arm_again(known.seq, '{"by": "enqueue"}') THEN
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
COMMENT ON FUNCTION outbox.replay(text, boolean, text, jsonb, boolean)
    IS 'The answer to a call whose id is recorded; null when it is not';

CREATE OR REPLACE FUNCTION outbox.record_intent(
    operation_id text, derived boolean, tool text, arguments jsonb, run_id text, priority smallint,
    run_at timestamptz, expires_at timestamptz, max_attempts integer, traceparent text,
    labels jsonb, retry_failed boolean) RETURNS outbox.receipt
    LANGUAGE plpgsql AS $$
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

CREATE OR REPLACE FUNCTION outbox.enqueue(
    tool text, arguments jsonb DEFAULT '{}', operation_id text DEFAULT NULL,
    run_id text DEFAULT NULL, occurrence integer DEFAULT 1, priority smallint DEFAULT 0,
    run_at timestamptz DEFAULT NULL, expires_at timestamptz DEFAULT NULL,
    max_attempts integer DEFAULT NULL, traceparent text DEFAULT NULL, labels jsonb DEFAULT NULL,
    retry_failed boolean DEFAULT false) RETURNS outbox.receipt
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, outbox, pg_temp AS $$
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
END $$;

-- As before; what became of an operation that is not taken back is looked up as in replay.
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

-- New functions are for nobody but us; what is new belongs to whoever owns the tables.
DO $$ BEGIN
    PERFORM outbox.grant_rights();
    IF (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = current_user) THEN
        PERFORM outbox.disown();
    END IF;
END $$;
