-- Roles, and who may do what. Roles belong to the whole cluster, rights to this database: where the
-- migrating role may not create roles, the statements for somebody who may are reported instead, and
-- outbox.grant_rights() makes up for the rights afterwards. It may be called any number of times.

-- SECURITY DEFINER functions must not run as a superuser: what a superuser has migrated goes to a
-- role of its own without login.
CREATE FUNCTION outbox.disown() RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
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

CREATE FUNCTION outbox.grant_rights() RETURNS void
    LANGUAGE plpgsql SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    planning constant text := 'outbox.enqueue(text, jsonb, text, text, integer, smallint, '
        'timestamptz, timestamptz, integer, text, jsonb, boolean), outbox.enqueue_many(jsonb), '
        'outbox.derive_id(text, jsonb, text, integer), '
        'outbox.operation_key(text, jsonb, text, integer), outbox.get(text), '
        'outbox.cancel(text, text)';
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
COMMENT ON FUNCTION outbox.grant_rights() IS 'Grants the rights of the outbox roles that exist; takes PUBLIC''s away';

DO $$
DECLARE
    role    text;
    missing text[] := '{}';
    super   constant boolean := (SELECT r.rolsuper FROM pg_roles r WHERE r.rolname = current_user);
    wanted  text[] := ARRAY['outbox_planner', 'outbox_worker', 'outbox_reader', 'outbox_operator'];
BEGIN
    IF super THEN
        wanted := array_append(wanted, 'outbox_owner');
    END IF;
    FOREACH role IN ARRAY wanted LOOP
        CONTINUE WHEN EXISTS (SELECT FROM pg_roles r WHERE r.rolname = role);
        BEGIN
            EXECUTE format('CREATE ROLE %I NOLOGIN', role);
        EXCEPTION
            WHEN insufficient_privilege THEN
                missing := missing || role;
            WHEN duplicate_object OR unique_violation THEN
                NULL;  -- another database's migration made it just now
        END;
    END LOOP;
    PERFORM outbox.grant_rights();
    IF super THEN
        PERFORM outbox.disown();
    END IF;
    IF missing <> '{}' THEN
        RAISE WARNING 'the outbox roles could not be created by %', current_user
            USING DETAIL = format('Missing: %s.', array_to_string(missing, ', ')),
                  HINT = 'A role that may create roles runs: '
                      || (SELECT string_agg(format('CREATE ROLE %I NOLOGIN;', m), ' ')
                            FROM unnest(missing) m)
                      || ' Then the owner of schema outbox runs: SELECT outbox.grant_rights();';
    END IF;
END $$;
