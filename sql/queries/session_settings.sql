-- Time-outs, and a flush for every commit. $1 statement_timeout, $2 lock_timeout, $3 for this
-- transaction only (through a pooler).
SELECT set_config('statement_timeout', $1, $3::boolean),
       set_config('lock_timeout', $2, $3::boolean),
       set_config('idle_in_transaction_session_timeout', '10s', $3::boolean),
       set_config('synchronous_commit',
                  CASE current_setting('synchronous_commit')
                      WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, $3::boolean)
