// What pruning costs the work beside it: pickup latency (insert until the attempt begins) at a steady pace,
// without and with the daemon pruning old payloads at the same time, on one Postgres with fsync. The two take
// turns, each on a database of its own that holds the same tombstones to be.
//
//   node prune.mjs [--rows 1000000] [--rounds 3] [--per-second 500] [--seconds 60]
// prints a JSON line per slice and a table
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Cluster } from '../e2e/cluster.mjs';
import { Program, eventually, freePort, run, sleep } from '../e2e/util.mjs';
import { figures } from './figures.mjs';

const option = (name, value) => {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? value : Number(process.argv[at + 1]);
};
const [rows, rounds, perSecond, seconds] = [option('rows', 1_000_000), option('rounds', 3), option('per-second', 500), option('seconds', 60)];
const binary = path.resolve(process.env.OUTBOXD ?? 'build/release/outboxd');
const dir = mkdtempSync(path.join(os.tmpdir(), 'outboxd-prune-'));

// Old operations as the daemon left them, with payloads of a few hundred bytes.
async function fill(db) {
  await db.query('ALTER TABLE outbox.operation DISABLE TRIGGER file_work');
  for (let done = 0; done < rows; done += 100_000) {
    const n = Math.min(100_000, rows - done);
    await db.query(`INSERT INTO outbox.operation (operation_id, tool, arguments, created_at)
      SELECT md5((i + ${done})::text), 'note', jsonb_build_object('title', 'ticket ' || i, 'body', repeat(md5(i::text), 8)), now() - interval '60 days' + (i + ${done}) * interval '1 ms' FROM generate_series(1, ${n}) i`);
  }
  await db.query(`INSERT INTO outbox.outcome (seq, outcome, attempts, lease_epoch, result, finished_at)
    SELECT seq, 'succeeded', 1, 2, jsonb_build_object('id', seq), created_at FROM outbox.operation`);
  await db.query('ALTER TABLE outbox.operation ENABLE TRIGGER file_work');
  await db.query('UPDATE outbox.rollup SET counted = outbox.last_number(source), mark = outbox.last_number(source)');
  await db.query('VACUUM ANALYZE');
  await db.query('CHECKPOINT');
}

// Inserts at a pace, by a clock that does not wait for the inserts.
async function load(db) {
  const began = performance.now();
  const inserts = [];
  for (let i = 0; i < perSecond * seconds; i++) {
    await sleep(Math.max(0, began + (1000 * i) / perSecond - performance.now()));
    inserts.push(db.query(`INSERT INTO outbox.operation (operation_id, tool, arguments) VALUES ($1, 'note', '{"n": 1}')`, [`new-${i}`]));
  }
  await Promise.all(inserts);
}

async function slice(cluster, scenario, round) {
  const database = await cluster.createDatabase();
  const [db, dsn, port] = [cluster.pool(database), cluster.dsn(database), await freePort()];
  const migrated = await run(binary, ['migrate', '--database', dsn], {});
  if (migrated.code !== 0) throw new Error(migrated.text);
  await fill(db);
  const file = path.join(dir, 'outboxd.yaml');
  writeFileSync(file, JSON.stringify({
    version: 1, database: { dsn }, admin: { listen: `127.0.0.1:${port}` }, log: { level: 'error', format: 'json' },
    worker: { name: 'bench', concurrency: 256 }, retention: { payloads: scenario === 'pruning' ? '30d' : '3650d' },
    tools: { note: { effect: 'read', execute: { type: 'log' } } },
  }));
  const daemon = new Program(binary, ['run', '-c', file]);
  try {
    await eventually('the daemon is ready', async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).status === 200, 30_000);
    const pruned = async () => (await db.query('SELECT pruned_to::int AS n FROM outbox.retention')).rows[0].n;
    // Retention looks once a minute, the first time perhaps before the daemon knows its database.
    if (scenario === 'pruning') await eventually('it prunes', async () => await pruned() > 0, 120_000);
    const [before, began] = [await pruned(), performance.now()];
    await load(db);
    const rate = Math.round(((await pruned()) - before) / ((performance.now() - began) / 1000));
    await eventually('all is done', async () => (await db.query('SELECT count(*)::int AS n FROM outbox.queue')).rows[0].n === 0, 120_000);
    const { rows: found } = await db.query(`SELECT extract(epoch FROM e.started_at - o.created_at)::float8 * 1000 AS ms
      FROM outbox.operation o JOIN outbox.outcome e USING (seq) WHERE o.operation_id LIKE 'new-%'`);
    const latencies = found.map((row) => row.ms);
    console.log(JSON.stringify({ round, scenario, ...figures(latencies), pruned_per_second: rate }));
    return { scenario, latencies, rate };
  } finally {
    await daemon.stop('SIGKILL');
    await db.end();
  }
}

const cluster = await Cluster.start();
const results = [];
const load1 = [os.loadavg()[0]];
try {
  for (let round = 1; round <= rounds; round++) {
    const scenarios = round % 2 ? ['quiet', 'pruning'] : ['pruning', 'quiet'];
    for (const scenario of scenarios) results.push(await slice(cluster, scenario, round));
    load1.push(os.loadavg()[0]);
  }
} finally {
  cluster.stop();
  rmSync(dir, { recursive: true, force: true });
}
console.log(`\n${os.cpus().length} cores, ${os.cpus()[0].model.trim()}; fsync on; ${rows} payloads; ${perSecond} operations/s for ${seconds} s; ${rounds} rounds; load ${Math.min(...load1).toFixed(1)} to ${Math.max(...load1).toFixed(1)}; ms`);
console.log('           operations     p50     p90     p99   pruned/s');
for (const scenario of ['quiet', 'pruning']) {
  const mine = results.filter((r) => r.scenario === scenario);
  const { n, p50, p90, p99 } = figures(mine.flatMap((r) => r.latencies));
  console.log(scenario.padEnd(10), String(n).padStart(10), ...[p50, p90, p99].map((x) => x.toFixed(2).padStart(7)), String(Math.round(mine.reduce((sum, r) => sum + r.rate, 0) / mine.length)).padStart(10));
}
