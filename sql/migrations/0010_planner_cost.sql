-- A planner's transaction gets cheaper; nothing that it may do or is promised changes.
-- Measured (docs/benchmarks.md): two thirds of the server's work for one insert was the server
-- reading its own CHECK constraints. It parses their stored text anew for every statement. The
-- constraints of a domain are parsed once per session, so the same conditions move into domains
-- over row types, and each table keeps one short CHECK. They hold as before: for every
-- role, for COPY, with triggers disabled; SQLSTATE 23514 and the constraints' names stay.
-- The columns keep their plain types: drivers do not know domains.

CREATE TYPE outbox.operation_limits AS (
    operation_id text, tool text, arguments jsonb, run_id text, priority smallint,
    run_at timestamptz, expires_at timestamptz, max_attempts integer, traceparent text,
    labels jsonb, compensates text);
COMMENT ON TYPE outbox.operation_limits IS 'What of an intent has limits, for its CHECK';
CREATE DOMAIN outbox.valid_operation AS outbox.operation_limits
    CONSTRAINT operation_id_length CHECK (
        (VALUE).operation_id <> '' AND octet_length((VALUE).operation_id)
            <= CASE WHEN (VALUE).compensates IS NULL THEN 200 ELSE 300 END)
    CONSTRAINT operation_id_characters CHECK (
        (VALUE).operation_id !~ '[\u0001-\u001f\u007f-\u009f]')
    CONSTRAINT operation_id_reserved CHECK (
        (VALUE).compensates IS NOT NULL OR (VALUE).operation_id NOT LIKE '%:compensate:%')
    CONSTRAINT operation_tool CHECK ((VALUE).tool <> '' AND octet_length((VALUE).tool) <= 100)
    CONSTRAINT operation_arguments CHECK (
        (VALUE).arguments @> '{}' AND octet_length((VALUE).arguments::text) <= 1048576)
    CONSTRAINT operation_run_id CHECK (
        octet_length((VALUE).run_id) <= 200 AND (VALUE).run_id !~ '[\u0001-\u001f\u007f-\u009f]')
    CONSTRAINT operation_priority CHECK ((VALUE).priority BETWEEN -100 AND 100)
    CONSTRAINT operation_run_at CHECK (isfinite((VALUE).run_at))
    CONSTRAINT operation_expires_at CHECK (isfinite((VALUE).expires_at))
    CONSTRAINT operation_max_attempts CHECK ((VALUE).max_attempts BETWEEN 1 AND 1000)
    CONSTRAINT operation_traceparent CHECK ((VALUE).traceparent ~
        '^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$')
    CONSTRAINT operation_labels CHECK ((VALUE).labels @> '{}'
        AND NOT jsonb_path_exists((VALUE).labels, '$.* ? (@.type() != "string")'));
COMMENT ON DOMAIN outbox.valid_operation IS 'The limits of an intent, for the CHECK of outbox.operation';

CREATE TYPE outbox.work_state AS (
    status text, due_at timestamptz, leased_by uuid, deadline_at timestamptz,
    attempt_epoch integer, started_at timestamptz, unknown_since timestamptz, attention text);
COMMENT ON TYPE outbox.work_state IS 'What of a row of the queue depends on its status, for its CHECK';
CREATE DOMAIN outbox.valid_work AS outbox.work_state
    CONSTRAINT queue_status CHECK (
        (VALUE).status IN ('pending', 'scheduled', 'attempting', 'unknown'))
    CONSTRAINT queue_scheduled CHECK ((VALUE).status <> 'scheduled' OR (VALUE).due_at IS NOT NULL)
    CONSTRAINT queue_attempting CHECK (
        (VALUE).status <> 'attempting'
        OR ((VALUE).leased_by IS NOT NULL AND (VALUE).deadline_at IS NOT NULL
            AND (VALUE).due_at IS NOT NULL AND (VALUE).attempt_epoch IS NOT NULL
            AND (VALUE).started_at IS NOT NULL))
    CONSTRAINT queue_unknown CHECK ((VALUE).status <> 'unknown'
        OR ((VALUE).due_at IS NOT NULL AND (VALUE).unknown_since IS NOT NULL))
    CONSTRAINT queue_attention CHECK ((VALUE).attention IN (
        'manual', 'conflict', 'hold', 'give_up', 'provider', 'late_effect', 'duplicate_effect'));
COMMENT ON DOMAIN outbox.valid_work IS 'Which states a row of the queue can be in, for its CHECK';

-- The cast is the check: a domain refuses, it never answers no. Rows of these columns alone, not of
-- the whole table, which a CHECK of a partitioned table could not name.
ALTER TABLE outbox.operation
    DROP CONSTRAINT operation_id_length,
    DROP CONSTRAINT operation_id_characters,
    DROP CONSTRAINT operation_id_reserved,
    DROP CONSTRAINT operation_tool,
    DROP CONSTRAINT operation_arguments,
    DROP CONSTRAINT operation_run_id,
    DROP CONSTRAINT operation_priority,
    DROP CONSTRAINT operation_run_at,
    DROP CONSTRAINT operation_expires_at,
    DROP CONSTRAINT operation_max_attempts,
    DROP CONSTRAINT operation_traceparent,
    DROP CONSTRAINT operation_labels,
    ADD CONSTRAINT operation_valid CHECK (
        (ROW(operation_id, tool, arguments, run_id, priority, run_at, expires_at, max_attempts,
             traceparent, labels, compensates)::outbox.valid_operation).operation_id IS NOT NULL);
ALTER TABLE outbox.queue
    DROP CONSTRAINT queue_status,
    DROP CONSTRAINT queue_scheduled,
    DROP CONSTRAINT queue_attempting,
    DROP CONSTRAINT queue_unknown,
    DROP CONSTRAINT queue_attention,
    ADD CONSTRAINT queue_valid CHECK (
        (ROW(status, due_at, leased_by, deadline_at, attempt_epoch, started_at, unknown_since,
             attention)::outbox.valid_work).status IS NOT NULL);

-- A replay writes one event.
CREATE DOMAIN outbox.event_kind AS text CONSTRAINT event_kind CHECK (VALUE IN (
    'replayed', 'retry', 'failed', 'succeeded', 'released', 'unknown', 'lease_expired', 'probe',
    'attention', 'resolved', 'acknowledged', 'cancelled', 'retried', 'late_result', 'timeline',
    'result_lost'));
COMMENT ON DOMAIN outbox.event_kind IS 'The closed set of kinds, for the CHECK of outbox.event';
ALTER TABLE outbox.event
    DROP CONSTRAINT event_kind,
    ADD CONSTRAINT event_valid CHECK ((kind::outbox.event_kind) IS NOT NULL);

-- A function in SQL that cannot be inlined (format() is not immutable) is parsed and planned at every
-- call: half of a replay. plpgsql keeps its plan. The text is whatever the last migration said.
DO $$
DECLARE
    message constant regprocedure :=
        'outbox.status_message(text, boolean, boolean, jsonb, text, text, text, boolean)';
BEGIN
    EXECUTE (SELECT format(
            'CREATE OR REPLACE FUNCTION outbox.status_message(%s) RETURNS text '
            'LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS %L',
            pg_get_function_arguments(p.oid),
            E'\nBEGIN\n    RETURN ' || btrim(regexp_replace(p.prosrc, '^\s*SELECT\s+', ''), E' \n')
            || E';\nEND ')
        FROM pg_proc p WHERE p.oid = message
         AND p.prolang = (SELECT l.oid FROM pg_language l WHERE l.lanname = 'sql'));
END $$;

-- The filing trigger, for each row: a duplicate costs nothing, and one statement files the work. Its
-- conditions are those of 0001: every name and operator qualified instead of a pinned search_path,
-- the shared lock tried and never waited for. Held once, the lock is had again at no cost.
DROP TRIGGER file_work ON outbox.operation;
CREATE OR REPLACE FUNCTION outbox.file_work() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER AS $$
BEGIN
    INSERT INTO outbox.queue (seq, tool, priority, status, due_at, expires_at)
    VALUES (NEW.seq, NEW.tool, NEW.priority,
            CASE WHEN NEW.run_at OPERATOR(pg_catalog.>) pg_catalog.now()
                 THEN 'scheduled' ELSE 'pending' END,
            NEW.run_at, NEW.expires_at);
    IF pg_catalog.current_setting('outbox.wakeup', true) OPERATOR(pg_catalog.=) 'off' THEN
        RETURN NULL;
    END IF;
    IF NOT pg_catalog.pg_try_advisory_xact_lock_shared(
            1869968504, pg_catalog.hashtext(NEW.tool)) THEN
        PERFORM pg_catalog.pg_notify('outbox_wake', NEW.tool);
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER file_work AFTER INSERT ON outbox.operation
    FOR EACH ROW EXECUTE FUNCTION outbox.file_work();

-- The usual numbers, without a walk over their digits.
CREATE FUNCTION outbox.plain_number(n numeric) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN scale(n) <= 70 AND abs(n) < 1e21 AND (abs(n) >= 1e-6 OR n = 0)
                THEN trim_scale(n)::text ELSE outbox.canonical_number(n) END
$$;
COMMENT ON FUNCTION outbox.plain_number(numeric) IS 'canonical_number, with a short cut where the plain notation is canonical';

-- As before; members and items that hold nothing are written in the statement that orders them.
-- Calls itself: 512 levels (the daemon's own limit) fit into the default max_stack_depth.
CREATE OR REPLACE FUNCTION outbox.canonical_json(
    value jsonb, trim_strings boolean, depth integer DEFAULT 1) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    -- White space and line terminators of ECMAScript's trim().
    blank constant text := E'\u0009\u000A\u000B\u000C\u000D\u0020\u00A0\u1680\u2000\u2001\u2002'
        || E'\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200A\u2028\u2029\u202F\u205F\u3000\uFEFF';
    members text;
BEGIN
    IF depth > 512 THEN
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

-- The hash itself, for functions that have pinned the search_path already: each pin costs.
CREATE FUNCTION outbox.hash_call(tool text, arguments jsonb, run_id text, occurrence integer)
    RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
BEGIN
    RETURN encode(sha256(convert_to(
        '{"arguments":' || outbox.canonical_json(arguments, true)
        || CASE WHEN occurrence > 1 THEN ',"occurrence":' || occurrence::text ELSE '' END
        || ',"run_id":' || to_jsonb(run_id)::text
        || ',"tool":' || to_jsonb(tool)::text || '}', 'UTF8')), 'hex');
END $$;
COMMENT ON FUNCTION outbox.hash_call(text, jsonb, text, integer) IS 'What operation_key returns, without its checks';

CREATE OR REPLACE FUNCTION outbox.operation_key(
    tool text, arguments jsonb, run_id text, occurrence integer DEFAULT 1) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE SECURITY DEFINER
    SET search_path = pg_catalog, outbox, pg_temp AS $$
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

-- The usual request needs no function per question: what is new, within the limits and for a known
-- tool is inserted by one statement. Whatever that statement does not insert (a replay, a refusal,
-- an empty catalogue) goes the long way, which knows all the answers; a test holds that both agree.
-- Only the long way reads large tables, so only its functions must not scan them.
ALTER FUNCTION outbox.record_intent(text, boolean, text, jsonb, text, smallint, timestamptz,
    timestamptz, integer, text, jsonb, boolean) SET enable_seqscan = off;

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
    id      text := operation_id;
    fields  text[];
BEGIN
    -- An explicit null means the same as leaving it out. Concatenated, the arguments are not
    -- compressed: pg_column_size tells their true size.
    arguments := coalesce(arguments, '{}') || '{}';
    priority := coalesce(priority, 0);
    occurrence := coalesce(occurrence, 1);
    -- What is left out needs no look; where anything is given, all is looked at.
    IF run_at IS NOT NULL OR expires_at IS NOT NULL OR max_attempts IS NOT NULL
        OR traceparent IS NOT NULL OR labels IS NOT NULL OR priority <> 0 OR occurrence <> 1
        OR (run_id IS NOT NULL) <> derived THEN
        PERFORM outbox.check_request(tool, arguments, operation_id, run_id, occurrence, priority,
            run_at, expires_at, max_attempts, traceparent, labels);
    END IF;
    IF derived AND octet_length(run_id) <= 200 AND run_id !~ '[\u0001-\u001f\u007f-\u009f]'
        AND octet_length(tool) <= 100 AND arguments @> '{}' AND pg_column_size(arguments) <= 2000 THEN
        SELECT t.dedup_fields INTO fields FROM outbox.tool t WHERE t.tool = enqueue.tool;
        IF fields = '{}' THEN
            id := outbox.hash_call(tool, arguments, run_id, occurrence);
        ELSIF FOUND THEN
            id := outbox.derive_id(tool, arguments, run_id, occurrence);
        END IF;
    END IF;
    INSERT INTO outbox.operation (operation_id, tool, arguments, run_id, priority, run_at,
                                  expires_at, max_attempts, traceparent, labels)
    SELECT id, enqueue.tool, enqueue.arguments, enqueue.run_id, enqueue.priority, enqueue.run_at,
           enqueue.expires_at, enqueue.max_attempts, enqueue.traceparent, enqueue.labels
      FROM outbox.tool t
     WHERE t.tool = enqueue.tool
       AND enqueue.tool NOT LIKE '%:%'  -- a compensation is refused, by check_tool
       AND id <> '' AND octet_length(id) <= 200
       AND id !~ '[\u0001-\u001f\u007f-\u009f]' AND id NOT LIKE '%:compensate:%'
       AND enqueue.arguments @> '{}' AND pg_column_size(enqueue.arguments) <= 2000
       AND octet_length(enqueue.arguments::text) <= 1048576
        ON CONFLICT ON CONSTRAINT operation_id_key DO NOTHING;
    IF FOUND THEN
        IF run_at > now() THEN
            RETURN (id, 'scheduled', false, NULL, NULL,
                    'This action is recorded and will be carried out at its time.',
                    now(), NULL, false)::outbox.receipt;
        END IF;
        RETURN (id, 'pending', false, NULL, NULL,
                'This action is recorded and will be carried out.',
                now(), NULL, false)::outbox.receipt;
    END IF;
    operation_id := outbox.identify(tool, arguments, operation_id, run_id, occurrence, priority,
        run_at, expires_at, max_attempts, traceparent, labels);
    RETURN outbox.record_intent(operation_id, derived, tool, arguments, run_id, priority, run_at,
        expires_at, max_attempts, traceparent, labels, coalesce(retry_failed, false));
END $$;

-- New functions are for nobody but us; what is new belongs to whoever owns the tables.
SELECT outbox.grant_rights();
DO $$
DECLARE
    owner constant text := (SELECT c.relowner::regrole::text FROM pg_class c
                             WHERE c.oid = 'outbox.operation'::regclass);
BEGIN
    IF (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = current_user) THEN
        PERFORM outbox.disown();
        EXECUTE format('ALTER DOMAIN outbox.valid_operation OWNER TO %s', owner);
        EXECUTE format('ALTER DOMAIN outbox.valid_work OWNER TO %s', owner);
        EXECUTE format('ALTER DOMAIN outbox.event_kind OWNER TO %s', owner);
    END IF;
END $$;
