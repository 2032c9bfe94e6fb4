-- Time-outs of one effect's transaction, and a flush for its commit. Nothing of it outlives the
-- transaction, so a pooler may stand between. $1 statement_timeout, $2
-- idle_in_transaction_session_timeout: a daemon that stands still gives its locks back.
SELECT set_config('statement_timeout', $1, true),
       set_config('lock_timeout', $1, true),
       set_config('idle_in_transaction_session_timeout', $2, true),
       set_config('synchronous_commit',
                  CASE current_setting('synchronous_commit')
                      WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)
