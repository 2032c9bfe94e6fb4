// What the outbox costs a planner: its transaction (UPDATE of its own state, then the enqueue)
// against the same transaction with a bare INSERT into a table with a unique text key. Eight clients
// through pgbench, prepared statements, fsync on. All variants take turns within a round, and each is
// compared with the bare one of its own round: the machine's other work hits all of them alike.
//
//   node planner.mjs [--rounds 7] [--seconds 2] [--clients 8] [--floor] [--peers] [--short] [--sql FILE]
// prints a JSON line per slice and a table. --floor: the bare bones of the design (floor.sql) take part,
// with new ids and no daemon. --peers: graphile-worker's add_job (with a key, where the ids are known) and
// pgmq's send (which has no key), without their workers; needs Node 22. --short: without a daemon only.
// --sql: run after migrating, to try a change.

import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Cluster } from '../e2e/cluster.mjs';
import pg from '../e2e/pg.mjs';
import { Program, eventually, freePort, run } from '../e2e/util.mjs';
import { clusterCpu } from './cpu.mjs';

const flag = (name, fallback) => {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? fallback : Number(process.argv[at + 1]);
};
const rounds = flag('rounds', 7);
const seconds = flag('seconds', 2);
const clients = flag('clients', 8);
const binary = path.resolve(process.env.OUTBOXD ?? 'build/release/outboxd');
const dir = mkdtempSync(path.join(os.tmpdir(), 'outboxd-planner-'));

const argument = `'{"title": "disk full on db-7", "queue": "operations", "severity": 2, "notify": true}'`;
const statements = {
  bare: `INSERT INTO bare (key, tool, arguments) VALUES ('ticket-' || :id, 'create_ticket', ${argument}) ON CONFLICT DO NOTHING`,
  'plain insert': `INSERT INTO outbox.operation (operation_id, tool, arguments) VALUES ('ticket-' || :id, 'create_ticket', ${argument}) ON CONFLICT DO NOTHING`,
  'enqueue, explicit id': `SELECT * FROM outbox.enqueue('create_ticket', ${argument}, operation_id => 'ticket-' || :id)`,
  'enqueue, derived id': `SELECT * FROM outbox.enqueue('create_ticket', ${argument}, run_id => 'run-' || :id)`,
};
const floor = process.argv.includes('--floor');
const bones = {
  'floor, plain': `INSERT INTO floor.operation (operation_id, tool, arguments) VALUES ('ticket-' || :id, 'create_ticket', ${argument}) ON CONFLICT DO NOTHING`,
  'floor, function': `SELECT * FROM floor.enqueue('create_ticket', ${argument}, 'ticket-' || :id)`,
};
if (floor) Object.assign(statements, bones);
const peers = process.argv.includes('--peers');
const others = {
  'graphile-worker add_job': `SELECT * FROM graphile_worker.add_job('create_ticket', ${argument}, job_key => 'ticket-' || :id)`,
  'pgmq send': `SELECT * FROM pgmq.send(${argument})`,
};
if (peers) Object.assign(statements, others);
const variants = (context, kind) => Object.keys(statements).filter((name) => name in bones ? context === 'no daemon' && kind === 'new'
  : name in others ? context === 'no daemon' && (kind === 'new' || name !== 'pgmq send') : true);
// New ids are random; known ones are the same thousand, filed before.
const ids = { new: 'random(1000000, 9000000000000000000)', known: 'random(1, 1000)' };
const contexts = {
  'no daemon': ids,
  'idle daemon': { new: ids.new },  // somebody sleeps: each commit notifies, the most that a wake-up costs
  'busy daemon': { new: ids.new },
};
if (process.argv.includes('--short')) for (const name of ['idle daemon', 'busy daemon']) delete contexts[name];

function script(statement, id) {
  const file = path.join(dir, `${Math.random().toString(36).slice(2)}.sql`);
  writeFileSync(file, `\\set id ${id}\nBEGIN;\nUPDATE state SET step = step + 1 WHERE id = :client_id;\n${statement};\nCOMMIT;\n`);
  return file;
}

const cluster = await Cluster.start();
const database = await cluster.createDatabase();
const db = cluster.pool(database);
const dsn = cluster.dsn(database).replace('user=postgres', 'user=bench_planner');

async function prepare() {
  const migrated = await run(binary, ['migrate', '--database', cluster.dsn(database)], {});
  if (migrated.code !== 0) throw new Error(migrated.text);
  if (floor) await db.query(readFileSync(new URL('floor.sql', import.meta.url), 'utf8'));
  if (peers) {
    const { runMigrations } = await import('graphile-worker');
    await runMigrations({ connectionString: `postgres://postgres@127.0.0.1:${cluster.port}/${database}` });
    await db.query(readFileSync(new URL('pgmq.sql', import.meta.url), 'utf8'));
  }
  const change = process.argv.indexOf('--sql');
  if (change > 0) await db.query(readFileSync(process.argv[change + 1], 'utf8'));
  await db.query(`CREATE TABLE bare (key text PRIMARY KEY, tool text NOT NULL, arguments jsonb NOT NULL);
    CREATE TABLE state (id integer PRIMARY KEY, step bigint NOT NULL) WITH (fillfactor = 50);
    INSERT INTO state SELECT i, 0 FROM generate_series(0, ${clients}) i;
    CREATE ROLE bench_planner LOGIN IN ROLE outbox_planner;
    GRANT ALL ON bare, state TO bench_planner;
    ${peers ? `GRANT USAGE ON SCHEMA graphile_worker, pgmq TO bench_planner;
    GRANT ALL ON ALL TABLES IN SCHEMA graphile_worker, pgmq TO bench_planner;
    GRANT ALL ON ALL SEQUENCES IN SCHEMA graphile_worker, pgmq TO bench_planner;
    DO $$ DECLARE t text; BEGIN FOR t IN SELECT c.oid::regclass FROM pg_class c WHERE c.relnamespace = 'graphile_worker'::regnamespace AND c.relrowsecurity LOOP
      EXECUTE format('ALTER TABLE %s DISABLE ROW LEVEL SECURITY', t); END LOOP; END $$;` : ''}
    INSERT INTO outbox.tool (tool, effect, revision) VALUES ('create_ticket', 'read', 'bench');
    INSERT INTO bare SELECT 'ticket-' || i, 'create_ticket', ${argument} FROM generate_series(1, 1000) i`);
  for (let i = 1; i <= 1000; i++) {
    await db.query(`SELECT outbox.enqueue('create_ticket', ${argument}, operation_id => 'ticket-' || $1::int)`, [i]);
    await db.query(`SELECT outbox.enqueue('create_ticket', ${argument}, run_id => 'run-' || $1::int)`, [i]);
  }
}

async function slice(file) {
  const pgbench = path.join(cluster.bin, 'pgbench');
  const before = clusterCpu(cluster.pid);
  const from = (await db.query('SELECT pg_current_wal_insert_lsn() AS lsn')).rows[0].lsn;
  const { code, text } = await run(pgbench, ['-n', '-M', 'prepared', '-c', String(clients), '-j', '2', '-T', String(seconds), '-f', file, dsn],
    { timeout: 1000 * seconds + 60_000 });
  if (code !== 0 || !/failed transactions: 0 /.test(text)) throw new Error(text.slice(-2000));
  const done = Number(/actually processed: (\d+)/.exec(text)[1]);
  const { rows: [{ bytes }] } = await db.query('SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), $1)::float8 AS bytes', [from]);
  return { tps: Number(/tps = ([\d.]+)/.exec(text)[1]), cpu: (clusterCpu(cluster.pid) - before) / done, wal: bytes / done };
}

// Holds what an idle daemon holds, on a connection that listens.
async function sleeper() {
  const client = new pg.Client({ host: '127.0.0.1', port: cluster.port, user: 'postgres', database });
  await client.connect();
  await client.query(`LISTEN outbox_wake; SELECT pg_advisory_lock(1869968504, hashtext('create_ticket'))`);
  return { stop: () => client.end() };
}

async function daemon() {
  const file = path.join(dir, 'busy.yaml');
  writeFileSync(file, JSON.stringify({
    version: 1,
    database: { dsn: cluster.dsn(database) },
    admin: { listen: `127.0.0.1:${await freePort()}` },
    log: { level: 'warn', format: 'json' },
    worker: { name: 'bench', concurrency: 64 },
    tools: { create_ticket: { description: 'writes a line', effect: 'read', execute: { type: 'log' } } },
  }));
  const done = async () => (await db.query('SELECT count(*)::int AS n FROM outbox.outcome')).rows[0].n;
  const before = await done();
  const program = new Program(binary, ['run', '-c', file]);
  // It has the rows of the other contexts to work on, and what comes meanwhile.
  try {
    await eventually('the daemon works', async () => (await done()) > before, 60_000);
  } catch (error) {
    await program.stop('SIGKILL');
    throw error;
  }
  return { stop: () => program.stop() };
}

const results = [];
let other = null;  // who sleeps or works beside the planners
try {
  await prepare();
  const files = {};
  for (const [name, statement] of Object.entries(statements)) {
    for (const [kind, id] of Object.entries(ids)) files[`${name}/${kind}`] = script(statement, id);
  }
  for (let round = 1; round <= rounds; round++) {
    for (const [context, kinds] of Object.entries(contexts)) {
      other = context === 'idle daemon' ? await sleeper() : context === 'busy daemon' ? await daemon() : null;
      for (const kind of Object.keys(kinds)) {
        const names = variants(context, kind);
        if (round % 2 === 0) names.reverse();
        const measured = {};
        for (const name of names) measured[name] = await slice(files[`${name}/${kind}`]);
        for (const name of names) {
          const result = { context, kind, name, round, ...measured[name], ratio: measured[name].tps / measured.bare.tps };
          results.push(result);
          console.log(JSON.stringify(result));
        }
      }
      await other?.stop();
      other = null;
    }
  }
} finally {
  await other?.stop();
  await db.end();
  cluster.stop();
  rmSync(dir, { recursive: true, force: true });
}

const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)];
console.log(`\n${os.cpus().length} cores, ${os.cpus()[0].model.trim()}, load ${os.loadavg()[0].toFixed(1)}; fsync on; ${clients} clients; median of ${rounds} rounds of ${seconds} s`);
console.log('daemon       ids    variant                 tps  of bare   lowest  highest   CPU us  WAL bytes');
for (const [context, kinds] of Object.entries(contexts)) {
  for (const kind of Object.keys(kinds)) {
    for (const name of variants(context, kind)) {
      const rows = results.filter((r) => r.context === context && r.kind === kind && r.name === name);
      const ratios = rows.map((r) => r.ratio);
      console.log(context.padEnd(12), kind.padEnd(6), name.padEnd(21), median(rows.map((r) => r.tps)).toFixed(0).padStart(6),
        median(ratios).toFixed(2).padStart(8), Math.min(...ratios).toFixed(2).padStart(8), Math.max(...ratios).toFixed(2).padStart(8),
        median(rows.map((r) => r.cpu)).toFixed(0).padStart(8), median(rows.map((r) => r.wal)).toFixed(0).padStart(10));
    }
  }
}
