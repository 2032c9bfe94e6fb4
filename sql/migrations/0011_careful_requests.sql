-- What a careless planner could do with 0001 to 0010, mended.

-- An array of strings passed as a label: a lax path unwraps it before it looks at its type.
UPDATE outbox.operation o
   SET labels = (SELECT jsonb_object_agg(l.key, CASE WHEN jsonb_typeof(l.value) = 'string' THEN l.value
                                                     ELSE to_jsonb(l.value::text) END)
                   FROM jsonb_each(o.labels) l)
 WHERE jsonb_path_exists(o.labels, 'strict $.* ? (@.type() != "string")', '{}', true);
ALTER DOMAIN outbox.valid_operation DROP CONSTRAINT operation_labels;
ALTER DOMAIN outbox.valid_operation ADD CONSTRAINT operation_labels CHECK (
    (VALUE).labels @> '{}'
    AND NOT jsonb_path_exists((VALUE).labels, 'strict $.* ? (@.type() != "string")', '{}', true));

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

-- 512 levels of arrays and objects, as in the daemon: what stands in the innermost one is no level.
CREATE OR REPLACE FUNCTION outbox.canonical_json(
    value jsonb, trim_strings boolean, depth integer DEFAULT 1) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
DECLARE
    -- White space and line terminators of ECMAScript's trim().
    blank constant text := E'\u0009\u000A\u000B\u000C\u000D\u0020\u00A0\u1680\u2000\u2001\u2002'
        || E'\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200A\u2028\u2029\u202F\u205F\u3000\uFEFF';
    members text;
BEGIN
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

-- The hash itself, for functions that have pinned the search_path already: each pin costs.

-- Where a number is beyond the key's limits jsonb has the last word, also after pruning: its own hash
-- takes 2.50 and 2.5 for equal, as its comparison does; its text does not.
CREATE OR REPLACE FUNCTION outbox.arguments_digest(arguments jsonb) RETURNS text
    LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER
    SET search_path = pg_catalog, outbox, pg_temp AS $$
BEGIN
    RETURN encode(sha256(convert_to(outbox.canonical_json(arguments, true), 'UTF8')), 'hex');
EXCEPTION WHEN SQLSTATE 'OB400' THEN
    RETURN encode(sha256(convert_to('jsonb:' || jsonb_hash_extended(arguments, 1)::text
        || jsonb_hash_extended(arguments, 2)::text, 'UTF8')), 'hex');
END $$;

-- Members that are texts in enqueue are JSON strings here.
CREATE OR REPLACE FUNCTION outbox.parse_request(item jsonb) RETURNS outbox.enqueue_request
    LANGUAGE plpgsql STABLE AS $$
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
