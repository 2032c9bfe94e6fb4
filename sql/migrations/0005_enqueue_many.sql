-- Many operations in one call, all or nothing.
CREATE TYPE outbox.enqueue_request AS (
    tool         text,
    arguments    jsonb,
    operation_id text,
    run_id       text,
    occurrence   integer,
    priority     smallint,
    run_at       timestamptz,
    expires_at   timestamptz,
    max_attempts integer,
    traceparent  text,
    labels       jsonb,
    retry_failed boolean
);
COMMENT ON TYPE outbox.enqueue_request IS 'One element of what outbox.enqueue_many takes: the parameters of enqueue';

CREATE FUNCTION outbox.parse_request(item jsonb) RETURNS outbox.enqueue_request
    LANGUAGE plpgsql STABLE AS $$
DECLARE
    parsed  outbox.enqueue_request;
    members constant text[] := ARRAY['tool', 'arguments', 'operation_id', 'run_id', 'occurrence',
        'priority', 'run_at', 'expires_at', 'max_attempts', 'traceparent', 'labels', 'retry_failed'];
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
    parsed := jsonb_populate_record(NULL::outbox.enqueue_request, item);
    parsed.arguments := coalesce(parsed.arguments, '{}');
    parsed.occurrence := coalesce(parsed.occurrence, 1);
    parsed.priority := coalesce(parsed.priority, 0);
    parsed.retry_failed := coalesce(parsed.retry_failed, false);
    RETURN parsed;
END $$;
COMMENT ON FUNCTION outbox.parse_request(jsonb) IS 'One element of enqueue_many, with the defaults of enqueue';

-- Inserted in the order of the ids, so that two batches never wait for each other in a circle;
-- answered in the order of the request. A later one of two equal ids is a replay of the first.
CREATE FUNCTION outbox.enqueue_many(requests jsonb) RETURNS SETOF outbox.receipt
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path = pg_catalog, outbox, pg_temp SET enable_seqscan = off AS $$
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
COMMENT ON FUNCTION outbox.enqueue_many(jsonb) IS 'outbox.enqueue for many operations at once: all or nothing';
