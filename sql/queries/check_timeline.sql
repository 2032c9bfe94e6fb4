-- Whether leases may be taken on this server: it is the one, on the timeline, for which everything
-- open is settled (settle_timeline). No row: a standby, or nothing is recorded yet.
-- The current log position tells the timeline, not pg_control_checkpoint(): that one names the last
-- checkpoint's, and a promoted standby runs for a while before its first. Both, and the identity of
-- the cluster, are open to every role. The database's oid tells a restored dump from the original.
SELECT s.value = c.system_identifier || ':' || d.oid || ':'
           || left(pg_walfile_name(pg_current_wal_lsn()), 8) AS settled
  FROM outbox.setting s CROSS JOIN pg_control_system() c CROSS JOIN pg_database d
 WHERE s.name = 'timeline' AND d.datname = current_database() AND NOT pg_is_in_recovery()
