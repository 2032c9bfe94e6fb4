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
