-- The design's bare bones, as measured before anything was built: an intent, a queue row filed by a
-- trigger, two short CHECKs, and a function that does nothing but insert. No limits, no catalogue, no
-- wake-up, no messages, no replays. What it costs, the real thing can hardly cost less.
create schema floor;
create table floor.operation(
 operation_id text not null unique,
 seq bigint generated always as identity primary key,
 tool text not null, run_id text, arguments jsonb not null default '{}',
 priority smallint not null default 0, max_attempts int, run_at timestamptz, expires_at timestamptz, traceparent text, labels jsonb,
 compensates text,
 created_at timestamptz not null default now(),
 check (octet_length(operation_id) between 1 and 300), check (jsonb_typeof(arguments)='object')
);
create table floor.queue(
 seq bigint primary key, tool text not null, priority smallint not null, status text not null, lease_epoch int not null default 0, attempt_epoch int, attempts int not null default 0,
 due_at timestamptz, leased_by uuid, attempted_at timestamptz, deadline_at timestamptz, ambiguous boolean not null default false
) with (fillfactor=50, autovacuum_vacuum_scale_factor=0, autovacuum_vacuum_threshold=5000);
create index queue_ready on floor.queue(tool, priority, seq) where status='pending';
create index queue_due on floor.queue(tool, due_at) where status in ('scheduled','attempting','unknown');
create function floor.file_work() returns trigger language plpgsql security definer set search_path=pg_catalog,floor,pg_temp as $$ begin
 insert into floor.queue(seq, tool, priority, status, due_at) select seq, tool, priority, case when run_at > now() then 'scheduled' else 'pending' end, run_at from added;
 return null; end $$;
create trigger file_work after insert on floor.operation referencing new table as added for each statement execute function floor.file_work();
create function floor.enqueue(tool text, arguments jsonb, operation_id text, out replayed boolean, out id text) language plpgsql security definer set search_path=pg_catalog,floor,pg_temp as $$
begin
 insert into floor.operation as o (operation_id, tool, arguments) values (enqueue.operation_id, enqueue.tool, enqueue.arguments) on conflict on constraint operation_operation_id_key do nothing;
 replayed := not found; id := enqueue.operation_id;
end $$;
grant usage on schema floor to outbox_planner; grant insert, select on floor.operation to outbox_planner; grant execute on all functions in schema floor to outbox_planner;

-- Lease and end of the prototype, a batch at a time, with the worker inside the server: no client, no
-- transport, nothing but the statements. What a daemon adds to it is its own.
create table floor.outcome(seq bigint primary key, outcome text not null, attempts int not null, lease_epoch int not null, result jsonb, error jsonb,
 started_at timestamptz, finished_at timestamptz not null default now());
create procedure floor.drain(lane text, lim int, batches int default 2147483647) language plpgsql as $$
declare ids bigint[]; epochs int[]; mark bigint := 0; size bigint;
begin for batch in 1..batches loop
 with leased as (
  update floor.queue q set status='attempting', attempts=attempts+1, lease_epoch=lease_epoch+1, attempt_epoch=lease_epoch+1,
    leased_by='00000000-0000-0000-0000-000000000001', attempted_at=now(), due_at=now()+interval '30s', deadline_at=now()+interval '20s'
   where q.ctid = any(array(select r.ctid from floor.queue r where r.tool=lane and r.status='pending' and r.priority=0 and r.seq > mark
                             order by r.priority, r.seq limit lim for update skip locked))
  returning q.seq, q.lease_epoch),
 read as (select l.*, o.arguments from leased l join floor.operation o on o.seq = l.seq)
 select array_agg(seq), array_agg(lease_epoch), max(seq), sum(length(arguments::text)) into ids, epochs, mark, size from read;
 commit;
 exit when ids is null;
 with gone as (delete from floor.queue q using unnest(ids, epochs) as d(seq, epoch) where q.seq=d.seq and q.lease_epoch=d.epoch returning q.seq, q.lease_epoch, q.attempts, q.attempted_at)
 insert into floor.outcome(seq, outcome, attempts, lease_epoch, result, started_at) select seq, 'succeeded', attempts, lease_epoch+1, '{"logged": true}', attempted_at from gone;
 commit;
end loop; end $$;
