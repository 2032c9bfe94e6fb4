-- Where migrations are recorded. Run under the migrators' lock (lock_migrations), so that two first
-- migrators do not race for the schema.
DO $$
BEGIN
    IF to_regclass('outbox.migration') IS NULL THEN
        CREATE SCHEMA IF NOT EXISTS outbox;
        CREATE TABLE outbox.migration (
            number     integer     CONSTRAINT migration_pkey PRIMARY KEY,
            name       text        NOT NULL,
            checksum   text        NOT NULL,
            breaking   boolean     NOT NULL,
            applied_at timestamptz NOT NULL DEFAULT now()
        );
        COMMENT ON TABLE outbox.migration IS 'Migrations that were applied; forward only';
    END IF;
END $$
