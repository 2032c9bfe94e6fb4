-- Was this database ever migrated?
SELECT to_regclass('outbox.migration') IS NOT NULL AS found
