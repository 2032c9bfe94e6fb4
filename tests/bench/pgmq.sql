-- pgmq's pattern in plain SQL, as its documentation describes it: a table per queue, a visibility
-- time-out instead of a status, read = SKIP LOCKED by msg_id, delete by id. No dedup, nothing kept.
CREATE SCHEMA pgmq;
CREATE TABLE pgmq.q_work (
    msg_id      bigint      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    read_ct     integer     NOT NULL DEFAULT 0,
    enqueued_at timestamptz NOT NULL DEFAULT now(),
    vt          timestamptz NOT NULL,
    message     jsonb
);
CREATE INDEX q_work_vt ON pgmq.q_work (vt);
CREATE FUNCTION pgmq.send(message jsonb) RETURNS bigint LANGUAGE sql AS $$
    INSERT INTO pgmq.q_work (vt, message) VALUES (clock_timestamp(), message) RETURNING msg_id
$$;
CREATE FUNCTION pgmq.read(vt_seconds integer, qty integer) RETURNS SETOF pgmq.q_work LANGUAGE sql AS $$
    WITH next AS (
        SELECT m.msg_id FROM pgmq.q_work m
         WHERE m.vt <= clock_timestamp()
         ORDER BY m.msg_id
         LIMIT qty
           FOR UPDATE SKIP LOCKED
    )
    UPDATE pgmq.q_work m
       SET vt = clock_timestamp() + vt_seconds * interval '1 second', read_ct = m.read_ct + 1
      FROM next
     WHERE m.msg_id = next.msg_id
    RETURNING m.*
$$;
CREATE FUNCTION pgmq.delete(ids bigint[]) RETURNS SETOF bigint LANGUAGE sql AS $$
    DELETE FROM pgmq.q_work WHERE msg_id = ANY (ids) RETURNING msg_id
$$;
