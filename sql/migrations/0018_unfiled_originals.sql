-- Within one statement an intent can be there and its work not yet: a plain INSERT files it when the
-- statement ends (INSERT … RETURNING outbox.compensate(operation_id)). Such an original has no status.
-- Its compensation was filed to run at once, before the original or without it; it waits now, like
-- that of any original that has not happened.
DO $$
DECLARE
    compensate constant regprocedure := 'outbox.compensate(text, text, jsonb, text)';
    was constant text := pg_get_functiondef(compensate);
    becomes constant text := replace(was, $q$state.status <> 'succeeded'$q$,
                                     $q$state.status IS DISTINCT FROM 'succeeded'$q$);
BEGIN
    IF becomes = was THEN
        RAISE EXCEPTION 'outbox.compensate is not what 0008_compensate made';
    END IF;
    EXECUTE becomes;
END $$;
