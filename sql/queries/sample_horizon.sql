-- How far vacuum may go in this database: the next transaction id, and how many ids back the oldest
-- one lies that still counts as running to somebody: a snapshot, an open or a prepared transaction, a
-- replication slot. Since when those have been open is not for every role to see; ids are. A vacuum
-- holds back nobody. Reads the server's memory alone, no table.
SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint AS next_id,
       coalesce(max(age(h.held)), 0) AS ids_back
  FROM (SELECT unnest(ARRAY[a.backend_xmin, a.backend_xid]) AS held
          FROM pg_stat_activity a
         WHERE (a.datname = current_database() OR a.datid IS NULL)
           AND a.pid <> pg_backend_pid()
           AND NOT EXISTS (SELECT FROM pg_stat_progress_vacuum v WHERE v.pid = a.pid)
         UNION ALL
        SELECT p.transaction FROM pg_prepared_xacts p WHERE p.database = current_database()
         UNION ALL
        SELECT s.xmin FROM pg_replication_slots s) h
