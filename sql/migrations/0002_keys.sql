-- The derived operation id: SHA-256 of a canonical JSON text. The C++ twin is
-- outbox/operation_key.cpp; both hold to tests/vectors/operation_keys.json.

-- Every refusal of ours: an SQLSTATE of class OB, with what is wrong and the way out.
CREATE FUNCTION outbox.refuse(code text, problem text, detail text, way_out text) RETURNS void
    LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = refuse.code, MESSAGE = refuse.problem,
        DETAIL = refuse.detail, HINT = refuse.way_out;
END $$;
COMMENT ON FUNCTION outbox.refuse(text, text, text, text) IS 'Raises an error with code, detail and hint';

-- Is n (> 0) the number that a double's shortest form says? The server's own output leaves out the
-- ends of the rounding interval (it prints 1e23 as 9.999999999999999e+22), ECMAScript does not:
-- therefore the two neighbours with one digit less are asked too.
CREATE FUNCTION outbox.is_shortest_double(n numeric) RETURNS boolean
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE
    SET search_path = pg_catalog SET extra_float_digits = 1 AS $$
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
COMMENT ON FUNCTION outbox.is_shortest_double(numeric) IS 'True when n equals the shortest form of its nearest double';

-- RFC 8785 where the exact value is a double's shortest form, else the exact decimal without
-- exponent and without trailing zeros: two different numbers never share a text.
CREATE FUNCTION outbox.canonical_number(n numeric) RETURNS text
    LANGUAGE plpgsql IMMUTABLE PARALLEL SAFE AS $$
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
COMMENT ON FUNCTION outbox.canonical_number(numeric) IS 'Canonical text of one JSON number; OB400 beyond 100 digits or exponent ±400';

-- Makes COLLATE "C" sort as UTF-16 does: there U+E000…U+FFFF come after the supplementary planes.
-- They get U+10FFFF in front; U+10FFFF itself gets a U+0001 behind, so that it still sorts first.
CREATE FUNCTION outbox.utf16_order(key text) RETURNS text
    LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN octet_length(key) = length(key) THEN key
           ELSE regexp_replace(
                    replace(key COLLATE "C", E'\U0010FFFF', E'\U0010FFFF\u0001'),
                    E'([\\uE000-\\uFFFF])', E'\U0010FFFF\\1', 'g') END
$$;
COMMENT ON FUNCTION outbox.utf16_order(text) IS 'Sort key of an object key: order of UTF-16 code units under COLLATE "C"';

-- Calls itself: 512 levels (the daemon's own limit) fit into the default max_stack_depth.
CREATE FUNCTION outbox.canonical_json(value jsonb, trim_strings boolean, depth integer DEFAULT 1)
    RETURNS text
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
    WHEN 'string' THEN
        IF trim_strings THEN
            RETURN to_jsonb(btrim(value #>> '{}', blank))::text;
        END IF;
        RETURN value::text;
    WHEN 'number' THEN
        RETURN outbox.canonical_number(value::numeric);
    WHEN 'object' THEN
        SELECT string_agg(to_jsonb(m.key)::text || ':'
                              || outbox.canonical_json(m.value, trim_strings, depth + 1),
                          ',' ORDER BY outbox.utf16_order(m.key) COLLATE "C")
          INTO members FROM jsonb_each(value) m;
        RETURN '{' || coalesce(members, '') || '}';
    WHEN 'array' THEN
        SELECT string_agg(outbox.canonical_json(e.item, trim_strings, depth + 1),
                          ',' ORDER BY e.place)
          INTO members FROM jsonb_array_elements(value) WITH ORDINALITY e (item, place);
        RETURN '[' || coalesce(members, '') || ']';
    ELSE
        RETURN value::text;
    END CASE;
END $$;
COMMENT ON FUNCTION outbox.canonical_json(jsonb, boolean, integer) IS 'RFC 8785 with exact decimals; string values trimmed when asked';

-- Pure, and independent of the session's settings. A definer only because its parts are
-- granted to nobody.
CREATE FUNCTION outbox.operation_key(
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
    RETURN encode(sha256(convert_to(
        '{"arguments":' || outbox.canonical_json(arguments, true)
        || CASE WHEN occurrence > 1 THEN ',"occurrence":' || occurrence::text ELSE '' END
        || ',"run_id":' || to_jsonb(run_id)::text
        || ',"tool":' || to_jsonb(tool)::text || '}', 'UTF8')), 'hex');
END $$;
COMMENT ON FUNCTION outbox.operation_key(text, jsonb, text, integer) IS 'The derived operation id over all arguments; pure';

-- What outbox.enqueue uses: operation_key over the members that the tool's dedup.fields name.
CREATE FUNCTION outbox.derive_id(
    tool text, arguments jsonb, run_id text, occurrence integer DEFAULT 1) RETURNS text
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path = pg_catalog, outbox, pg_temp AS $$
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
COMMENT ON FUNCTION outbox.derive_id(text, jsonb, text, integer) IS 'The derived operation id over the tool''s dedup.fields';

-- Arguments are the same when their canonical texts are; a number beyond the limits has none, then
-- the text of jsonb stands in. Kept as a digest when the arguments are pruned.
CREATE FUNCTION outbox.arguments_digest(arguments jsonb) RETURNS text
    LANGUAGE plpgsql IMMUTABLE SECURITY DEFINER
    SET search_path = pg_catalog, outbox, pg_temp AS $$
BEGIN
    RETURN encode(sha256(convert_to(outbox.canonical_json(arguments, true), 'UTF8')), 'hex');
EXCEPTION WHEN SQLSTATE 'OB400' THEN
    RETURN encode(sha256(convert_to('jsonb:' || arguments::text, 'UTF8')), 'hex');
END $$;
COMMENT ON FUNCTION outbox.arguments_digest(jsonb) IS 'SHA-256 (hex) by which arguments are compared after pruning';
