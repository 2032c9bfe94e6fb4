// 500 operations by two daemons through PgBouncer in transaction mode with two server connections;
// then a timeline change behind the pooler's back, where no client connection breaks.
import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Cluster } from '../e2e/cluster.mjs';
import { configuration, ticketTool } from '../e2e/config.mjs';
import { Program, eventually, freePort, providerKey, run } from '../e2e/util.mjs';
import { Desk, binary } from '../e2e/world.mjs';
import { check, close, effects, equal } from './report.mjs';

const total = 500;
const dir = mkdtempSync(path.join(os.tmpdir(), 'outboxd-bouncer-'));
chmodSync(dir, 0o755);
const cluster = await Cluster.start();
const database = await cluster.createDatabase();
const db = cluster.pool(database);
const env = { PATH: process.env.PATH, HOME: dir, LANG: 'C.UTF-8' };
equal((await run(binary, ['migrate', '--database', cluster.dsn(database)], { env })).code, 0, 'outboxd migrate');
const one = async (sql, values) => (await db.query(sql, values)).rows[0].n;

// What another client left in the server connections: names of the server's own that are not its own.
await db.query(`CREATE SCHEMA evil;
CREATE FUNCTION evil.now() RETURNS timestamptz LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hijacked'; END $$;
CREATE FUNCTION evil.unnest(anyarray) RETURNS SETOF anyelement LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hijacked'; END $$;
CREATE FUNCTION evil.is(bigint, bigint) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hijacked'; END $$;
CREATE FUNCTION evil.is(text, text) RETURNS boolean LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'hijacked'; END $$;
CREATE OPERATOR evil.= (LEFTARG = bigint, RIGHTARG = bigint, FUNCTION = evil.is);
CREATE OPERATOR evil.= (LEFTARG = text, RIGHTARG = text, FUNCTION = evil.is)`);

const port = await freePort();
const ini = path.join(dir, 'pgbouncer.ini');
writeFileSync(ini, `[databases]
${database} = host=127.0.0.1 port=${cluster.port} user=postgres connect_query='SET search_path = evil, pg_catalog'
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 2
server_idle_timeout = 600
`);
let as = {};  // it refuses to run as root
if (process.getuid() === 0) {
  const [uid, gid] = ['-u', '-g'].map((flag) => Number(execFileSync('id', [flag, 'postgres'])));
  for (const file of [dir, ini]) chownSync(file, uid, gid);
  as = { uid, gid };
}
const bouncer = new Program('pgbouncer', [ini], as);
const desk = await Desk.start(path.join(dir, 'desk.jsonl'));
const daemons = [];

async function daemon() {
  const admin = await freePort();
  const file = path.join(dir, `outboxd-${admin}.yaml`);
  writeFileSync(file, JSON.stringify(configuration({ port: admin, tools: { create_ticket: ticketTool(desk.url) } })));
  const program = new Program(binary, ['run', '-c', file], {
    env: { ...env, OUTBOXD_DATABASE: `host=127.0.0.1 port=${port} user=postgres dbname=${database}` },
  });
  daemons.push(program);
  await eventually('the daemon is ready', async () => program.ended || (await fetch(`http://127.0.0.1:${admin}/readyz`)).status === 200);
  equal(program.ended, null, program.output);
}

const insert = (prefix, count) => db.query(
  `INSERT INTO outbox.operation (operation_id, tool, arguments)
   SELECT $1 || i, 'create_ticket', jsonb_build_object('title', 'ticket ' || i) FROM generate_series(1, $2::int) i`, [prefix, count]);
const settled = (count) => eventually(`${count} are final`, async () => (await one('SELECT count(*)::int AS n FROM outbox.outcome')) === count, 60_000);

await check('pgbouncer: two daemons start through a pool of two', async () => {
  for (let i = 20; i <= total; i += 20) await desk.plan(`op-${i}`, { posts: [i % 40 ? 'cut' : 'drop'] });
  await daemon();
  await daemon();
});
let servers = 0;
const watching = setInterval(async () => {
  servers = Math.max(servers, await one(`SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = $1 AND application_name = 'outboxd'`, [database]).catch(() => 0));
}, 50);
await check('pgbouncer: every effect once', async () => {
  const started = Date.now();
  await insert('op-', total);
  await settled(total);
  const { done, twice } = await effects(desk);
  equal(`${done} ${twice}`, `${total} 0`);
  equal(await one(`SELECT count(*)::int AS n FROM outbox.operations WHERE status = 'succeeded'`), total);
  return `${total} in ${Date.now() - started} ms`;
});
await check('pgbouncer: two server connections did it', () => {
  if (servers < 1 || servers > 2) throw new Error(`${servers} server connections`);
  return `${servers}`;
});
await check('pgbouncer: no state of a session is left or relied upon', async () => {
  equal(await one(`SELECT count(*)::int AS n FROM pg_locks WHERE locktype = 'advisory'`), 0, 'advisory locks are held');
  equal(await one(`SELECT count(*)::int AS n FROM pg_stat_activity WHERE datname = $1 AND state LIKE 'idle in%' AND state_change < now() - interval '2 s'`, [database]), 0, 'a transaction is left open');
  for (const program of daemons) equal(program.ended, null, 'a daemon ended');
  return 'polling only';
});
await check('pgbouncer: a timeline change that breaks no client connection is noticed before a lease', async () => {
  const client = await db.connect();
  await client.query('BEGIN');
  await client.query(`INSERT INTO outbox.operation (operation_id, tool, arguments) SELECT 'tl-' || i, 'create_ticket', '{"title": "t"}' FROM generate_series(1, 50) i`);
  await client.query(`UPDATE outbox.setting SET value = '1:1:00000001' WHERE name = 'timeline'`);
  await client.query('COMMIT');
  client.release();
  await settled(total + 50);
  equal(await one(`SELECT count(DISTINCT operation_id)::int AS n FROM outbox.event WHERE kind = 'timeline'`), 50);
  const { requests } = await desk.state();
  for (let i = 1; i <= 50; i++) equal(requests.find((r) => r.key === providerKey(`tl-${i}`)).method, 'GET', `tl-${i} was attempted first`);
  const { done, twice } = await effects(desk);
  equal(`${done} ${twice}`, `${total + 50} 0`);
  return '50 looked up first';
});
clearInterval(watching);
await check('pgbouncer: a daemon stops as ever', async () => {
  for (const program of daemons) equal((await program.stop('SIGTERM')).code, 0);
});
await db.end();
for (const program of daemons) if (!program.ended) await program.stop('SIGKILL');
if (process.exitCode) console.error(daemons.map((d) => d.output.slice(-4000)).join('\n'), bouncer.output.slice(-2000));
await bouncer.stop('SIGINT');
await desk.stop();
close();
rmSync(dir, { recursive: true, force: true });
