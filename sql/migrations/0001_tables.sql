-- The three tables (intent, work, end), the log of abnormal things, and the catalogue.
-- Every name here is read by clients (contract) or by the queries beside this folder.
-- ASCII only, so that a database of another encoding gets this far and is told.
DO $$ BEGIN
    IF current_setting('server_encoding') <> 'UTF8' THEN
        RAISE EXCEPTION 'outboxd needs a database with encoding UTF8, this one has %',
            current_setting('server_encoding')
            USING HINT = 'CREATE DATABASE name ENCODING ''UTF8'' TEMPLATE template0';
    END IF;
END $$;

CREATE SCHEMA IF NOT EXISTS outbox;
COMMENT ON SCHEMA outbox IS 'outboxd: one planner step commits at most one side effect';

-- The intent ------------------------------------------------------------------------------------
CREATE TABLE outbox.operation (
    operation_id text        NOT NULL CONSTRAINT operation_id_key UNIQUE,
    seq          bigint      GENERATED ALWAYS AS IDENTITY CONSTRAINT operation_pkey PRIMARY KEY,
    tool         text        NOT NULL,
    arguments    jsonb       NOT NULL DEFAULT '{}',
    run_id       text,
    priority     smallint    NOT NULL DEFAULT 0,
    run_at       timestamptz,
    expires_at   timestamptz,
    max_attempts integer,
    traceparent  text,
    labels       jsonb,
    compensates  text,
    created_at   timestamptz NOT NULL DEFAULT now(),
    arguments_digest text,
    pruned_at    timestamptz,
    CONSTRAINT operation_id_length CHECK (
        octet_length(operation_id) BETWEEN 1 AND CASE WHEN compensates IS NULL THEN 200 ELSE 300 END),
    CONSTRAINT operation_id_characters CHECK (operation_id !~ '[\u0001-\u001f\u007f-\u009f]'),
    CONSTRAINT operation_id_reserved CHECK (
        compensates IS NOT NULL OR position(':compensate:' IN operation_id) = 0),
    CONSTRAINT operation_tool CHECK (octet_length(tool) BETWEEN 1 AND 100),
    CONSTRAINT operation_arguments CHECK (
        jsonb_typeof(arguments) = 'object' AND octet_length(arguments::text) <= 1048576),
    CONSTRAINT operation_run_id CHECK (
        octet_length(run_id) <= 200 AND run_id !~ '[\u0001-\u001f\u007f-\u009f]'),
    CONSTRAINT operation_priority CHECK (priority BETWEEN -100 AND 100),
    CONSTRAINT operation_run_at CHECK (isfinite(run_at)),
    CONSTRAINT operation_expires_at CHECK (isfinite(expires_at)),
    CONSTRAINT operation_max_attempts CHECK (max_attempts BETWEEN 1 AND 1000),
    CONSTRAINT operation_traceparent CHECK (
        traceparent ~ '^(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$'),
    CONSTRAINT operation_labels CHECK (
        jsonb_typeof(labels) = 'object'
        AND NOT jsonb_path_exists(labels, '$.* ? (@.type() != "string")'))
) WITH (autovacuum_vacuum_insert_scale_factor = 0.2, autovacuum_analyze_scale_factor = 0.1);

COMMENT ON TABLE outbox.operation IS 'The intent: what a planner asked for. Inserted once; only pruning touches it again.';
COMMENT ON COLUMN outbox.operation.operation_id IS 'Identity of the intent, for ever: a second row with this id cannot exist';
COMMENT ON COLUMN outbox.operation.seq IS 'Joins operation, queue and outcome; order of insertion';
COMMENT ON COLUMN outbox.operation.tool IS 'Name of the tool in the daemon''s configuration';
COMMENT ON COLUMN outbox.operation.arguments IS 'What the tool is called with; {} once pruned';
COMMENT ON COLUMN outbox.operation.run_id IS 'Scope of the derived id: the same call in one run is one operation';
COMMENT ON COLUMN outbox.operation.priority IS 'Smaller first, -100 to 100';
COMMENT ON COLUMN outbox.operation.run_at IS 'Not before this time (database clock)';
COMMENT ON COLUMN outbox.operation.expires_at IS 'Never start an attempt after this time (database clock)';
COMMENT ON COLUMN outbox.operation.max_attempts IS 'Attempts allowed; null: as the tool says';
COMMENT ON COLUMN outbox.operation.traceparent IS 'W3C trace context of the planner';
COMMENT ON COLUMN outbox.operation.labels IS 'Object of strings, for people and filters';
COMMENT ON COLUMN outbox.operation.compensates IS 'The operation this one undoes; set by outbox.compensate only';
COMMENT ON COLUMN outbox.operation.created_at IS 'Start of the planner''s transaction';
COMMENT ON COLUMN outbox.operation.arguments_digest IS 'SHA-256 (hex) of the canonical arguments, kept when they are pruned';
COMMENT ON COLUMN outbox.operation.pruned_at IS 'When the arguments were pruned';

-- The work --------------------------------------------------------------------------------------
CREATE TABLE outbox.queue (
    seq             bigint      CONSTRAINT queue_pkey PRIMARY KEY,
    tool            text        NOT NULL,
    priority        smallint    NOT NULL,
    status          text        NOT NULL,
    lease_epoch     integer     NOT NULL DEFAULT 0,
    attempt_epoch   integer,
    attempts        integer     NOT NULL DEFAULT 0,
    due_at          timestamptz,
    expires_at      timestamptz,
    leased_by       uuid,
    attempted_at    timestamptz,
    started_at      timestamptz,
    deadline_at     timestamptz,
    ambiguous       boolean     NOT NULL DEFAULT false,
    accepted        boolean     NOT NULL DEFAULT false,
    request_hash    bigint,
    unknown_since   timestamptz,
    probes          integer     NOT NULL DEFAULT 0,
    absent_count    integer     NOT NULL DEFAULT 0,
    last_absent_at  timestamptz,
    attention       text,
    asked           boolean     NOT NULL DEFAULT false,
    result          jsonb,
    error           jsonb,
    CONSTRAINT queue_status CHECK (status IN ('pending', 'scheduled', 'attempting', 'unknown')),
    CONSTRAINT queue_scheduled CHECK (status <> 'scheduled' OR due_at IS NOT NULL),
    CONSTRAINT queue_attempting CHECK (
        status <> 'attempting'
        OR (leased_by IS NOT NULL AND deadline_at IS NOT NULL AND due_at IS NOT NULL
            AND attempt_epoch IS NOT NULL AND started_at IS NOT NULL)),
    CONSTRAINT queue_unknown CHECK (
        status <> 'unknown' OR (due_at IS NOT NULL AND unknown_since IS NOT NULL)),
    CONSTRAINT queue_attention CHECK (attention IN (
        'manual', 'conflict', 'hold', 'give_up', 'provider', 'late_effect', 'duplicate_effect'))
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
        autovacuum_analyze_scale_factor = 0, autovacuum_analyze_threshold = 10000);

CREATE INDEX queue_ready ON outbox.queue (tool, priority, seq) WHERE status = 'pending';
CREATE INDEX queue_due ON outbox.queue (tool, due_at)
    WHERE status IN ('scheduled', 'attempting', 'unknown');
CREATE INDEX queue_expires ON outbox.queue (expires_at)
    WHERE expires_at IS NOT NULL AND status IN ('pending', 'scheduled');

COMMENT ON TABLE outbox.queue IS 'The work: one slim row per operation that is not final';
COMMENT ON COLUMN outbox.queue.lease_epoch IS 'Every status write compares it and sets + 1; it never repeats or goes back';
COMMENT ON COLUMN outbox.queue.attempt_epoch IS 'lease_epoch of the last attempt';
COMMENT ON COLUMN outbox.queue.attempts IS 'Attempts made; what was not sent is given back';
COMMENT ON COLUMN outbox.queue.due_at IS 'When somebody must look next: promote, declare the lease expired, probe; infinity: only a person can help';
COMMENT ON COLUMN outbox.queue.expires_at IS 'Copy of the intent''s; cleared when a failed operation is armed again';
COMMENT ON COLUMN outbox.queue.leased_by IS 'Worker of the attempt or of the probe under way';
COMMENT ON COLUMN outbox.queue.attempted_at IS 'Start of the last attempt';
COMMENT ON COLUMN outbox.queue.started_at IS 'Start of the first attempt';
COMMENT ON COLUMN outbox.queue.deadline_at IS 'Hard end of the last attempt: after it the worker sends nothing';
COMMENT ON COLUMN outbox.queue.ambiguous IS 'An attempt ended unknown: a later rejection proves nothing by itself';
COMMENT ON COLUMN outbox.queue.accepted IS 'The other side took it (202): unknown, but not an anomaly';
COMMENT ON COLUMN outbox.queue.request_hash IS 'Hash of what the first attempt asked and how it is looked for (outbox.request)';
COMMENT ON COLUMN outbox.queue.unknown_since IS 'reconcile.give_up_after counts from here';
COMMENT ON COLUMN outbox.queue.absent_count IS 'Absent verdicts counted towards reconcile.confirmations';
COMMENT ON COLUMN outbox.queue.attention IS 'Why a person must look; null: nobody must';
COMMENT ON COLUMN outbox.queue.asked IS 'A person asked for a probe now (outboxd probe ID)';
COMMENT ON COLUMN outbox.queue.result IS 'What an accepted attempt answered';
COMMENT ON COLUMN outbox.queue.error IS 'How the last attempt ended, {"code", "message"}';

-- The end ---------------------------------------------------------------------------------------
CREATE TABLE outbox.outcome (
    seq           bigint      CONSTRAINT outcome_pkey PRIMARY KEY,
    outcome       text        NOT NULL,
    attempts      integer     NOT NULL,
    lease_epoch   integer     NOT NULL,
    attempt_epoch integer,
    result        jsonb,
    error         jsonb,
    started_at    timestamptz,
    finished_at   timestamptz NOT NULL DEFAULT now(),
    request_hash  bigint,
    ambiguous     boolean     NOT NULL DEFAULT false,
    attention     text,
    result_expired boolean    NOT NULL DEFAULT false,
    CONSTRAINT outcome_outcome CHECK (outcome IN ('succeeded', 'failed', 'cancelled')),
    CONSTRAINT outcome_failed CHECK (outcome <> 'failed' OR error IS NOT NULL),
    CONSTRAINT outcome_attention CHECK (attention IN (
        'manual', 'conflict', 'hold', 'give_up', 'provider', 'late_effect', 'duplicate_effect'))
) WITH (autovacuum_vacuum_insert_scale_factor = 0.2);
CREATE INDEX outcome_attention_idx ON outbox.outcome (attention) WHERE attention IS NOT NULL;

COMMENT ON TABLE outbox.outcome IS 'The end: inserted by the statement that deletes the queue row';
COMMENT ON COLUMN outbox.outcome.lease_epoch IS 'Last epoch; an armed-again operation goes on from it';
COMMENT ON COLUMN outbox.outcome.result_expired IS 'The result was pruned; the operation still replays';

-- What was not the clean path -------------------------------------------------------------------
CREATE TABLE outbox.event (
    id           bigint      GENERATED ALWAYS AS IDENTITY CONSTRAINT event_pkey PRIMARY KEY,
    operation_id text        NOT NULL,
    at           timestamptz NOT NULL DEFAULT clock_timestamp(),
    kind         text        NOT NULL,
    epoch        integer,
    worker       uuid,
    actor        text,
    detail       jsonb       NOT NULL DEFAULT '{}',
    CONSTRAINT event_kind CHECK (kind IN (
        'replayed', 'retry', 'failed', 'succeeded', 'released', 'unknown', 'lease_expired', 'probe',
        'attention', 'resolved', 'acknowledged', 'cancelled', 'retried', 'late_result', 'timeline',
        'result_lost'))
);
CREATE INDEX event_operation ON outbox.event (operation_id, id);
CREATE INDEX event_at ON outbox.event USING brin (at);
COMMENT ON TABLE outbox.event IS 'Append-only log of abnormal things; the clean path writes none';

-- Catalogue and workers -------------------------------------------------------------------------
CREATE TABLE outbox.tool (
    tool          text        CONSTRAINT tool_pkey PRIMARY KEY,
    description   text        NOT NULL DEFAULT '',
    effect        text        NOT NULL CHECK (effect IN ('write', 'read')),
    revision      text        NOT NULL,
    dedup_fields  text[]      NOT NULL DEFAULT '{}',
    compensations text[]      NOT NULL DEFAULT '{}',
    max_attempts  integer     NOT NULL DEFAULT 8,
    timeout       interval    NOT NULL DEFAULT '20s',
    settle        interval    NOT NULL DEFAULT '10s',
    arguments_schema jsonb,
    published_at  timestamptz NOT NULL DEFAULT now(),
    published_by  uuid,
    paused_at     timestamptz,
    paused_reason text
);
COMMENT ON TABLE outbox.tool IS 'The tools that daemons publish from their configuration; no secret is in it';

-- One row per (tool, request_hash): what an attempt under that hash used, so that later attempts
-- send the same key even when the configuration changed in between.
CREATE TABLE outbox.request (
    tool         text        NOT NULL,
    request_hash bigint      NOT NULL,
    key_settings jsonb       NOT NULL,
    published_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT request_pkey PRIMARY KEY (tool, request_hash)
);

CREATE TABLE outbox.worker (
    worker       uuid        CONSTRAINT worker_pkey PRIMARY KEY,
    name         text        NOT NULL,
    version      text        NOT NULL,
    tools        text[]      NOT NULL DEFAULT '{}',
    started_at   timestamptz NOT NULL DEFAULT now(),
    heartbeat_at timestamptz NOT NULL DEFAULT now(),
    stopped_at   timestamptz
) WITH (fillfactor = 50);
COMMENT ON TABLE outbox.worker IS 'Running daemons; a fresh UUID per start';

-- Facts of this outbox: namespace (recorded at the first start), timeline (of the last look).
CREATE TABLE outbox.setting (
    name  text CONSTRAINT setting_pkey PRIMARY KEY,
    value text NOT NULL
);

-- Migrations that were applied. The migrator writes the row of this very file, too.
CREATE TABLE outbox.migration (
    number     integer     CONSTRAINT migration_pkey PRIMARY KEY,
    name       text        NOT NULL,
    checksum   text        NOT NULL,
    breaking   boolean     NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
);
COMMENT ON TABLE outbox.migration IS 'Migrations that were applied; forward only';

-- The filing trigger: a plain INSERT and outbox.enqueue take the same road ------------------------
-- It runs in the planner's transaction, for every statement. Instead of a pinned search_path
-- (5 % of a planner's transaction) every name and operator is qualified; a test holds that.
-- A daemon that sleeps holds the tool's advisory lock exclusively: only then is there a NOTIFY.
CREATE FUNCTION outbox.file_work() RETURNS trigger
    LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE
    woken text;
BEGIN
    INSERT INTO outbox.queue (seq, tool, priority, status, due_at, expires_at)
    SELECT a.seq, a.tool, a.priority,
           CASE WHEN a.run_at OPERATOR(pg_catalog.>) pg_catalog.now() THEN 'scheduled' ELSE 'pending' END,
           a.run_at, a.expires_at
      FROM added a;
    IF pg_catalog.current_setting('outbox.wakeup', true) OPERATOR(pg_catalog.=) 'off' THEN
        RETURN NULL;
    END IF;
    FOR woken IN SELECT DISTINCT a.tool FROM added a LOOP
        IF NOT pg_catalog.pg_try_advisory_xact_lock_shared(
                1869968504, pg_catalog.hashtext(woken)) THEN
            PERFORM pg_catalog.pg_notify('outbox_wake', woken);
        END IF;
    END LOOP;
    RETURN NULL;
END $$;
COMMENT ON FUNCTION outbox.file_work() IS 'Files the queue row in the planner''s transaction; wakes a sleeping daemon';

CREATE TRIGGER file_work AFTER INSERT ON outbox.operation
    REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION outbox.file_work();
