-- For the lanes that lease and complete, whose statements are prepared. Their plans are made once,
-- perhaps while the tables are empty, and must be right for a million rows as well: by index and
-- by ctid, one row after the other. So nothing that reads a whole table is left to choose.
SELECT set_config('plan_cache_mode', 'force_generic_plan', false),
       set_config('enable_seqscan', 'off', false),
       set_config('enable_hashjoin', 'off', false),
       set_config('enable_mergejoin', 'off', false)
