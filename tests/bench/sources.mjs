// What one database that is gone, or silent, costs another one that the same daemon serves: pickup latency (insert
// until the attempt begins) in orders at a steady pace, while support is well, stopped, or frozen. The three take
// turns; each database is on a server of its own, both with fsync, and support gets the same load while it is there.
//
//   node sources.mjs [--rounds 5] [--per-second 200] [--seconds 20]
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
const [rounds, perSecond, seconds] = [option('rounds', 5), option('per-second', 200), option('seconds', 20)];
const binary = path.resolve(process.env.OUTBOXD ?? 'build/release/outboxd');
const dir = mkdtempSync(path.join(os.tmpdir(), 'outboxd-sources-'));

// Inserts at a pace, by a clock that does not wait for the inserts; a server that is away loses them.
async function load(db, name, ms) {
  const began = performance.now();
  const inserts = [];
  for (let i = 0; i < (perSecond * ms) / 1000; i++) {
    await sleep(Math.max(0, began + (1000 * i) / perSecond - performance.now()));
    inserts.push(db.query(`INSERT INTO outbox.operation (operation_id, tool, arguments) VALUES ($1, 'note', '{"n": 1}')`, [`${name}-${i}`]).catch(() => {}));
  }
  await Promise.all(inserts);
}

async function latencies(db, name) {
  await eventually('all is done', async () => (await db.query('SELECT count(*)::int AS n FROM outbox.queue')).rows[0].n === 0, 120_000);
  const { rows } = await db.query(`SELECT extract(epoch FROM e.started_at - o.created_at)::float8 * 1000 AS ms
    FROM outbox.operation o JOIN outbox.outcome e USING (seq) WHERE o.operation_id LIKE $1`, [`${name}-%`]);
  return rows.map((row) => row.ms);
}

async function slice(orders, support, scenario, round) {
  const port = await freePort();
  const sources = [];
  const pools = {};
  for (const [name, cluster] of Object.entries({ orders, support })) {
    const database = await cluster.createDatabase();
    const dsn = cluster.dsn(database);
    const migrated = await run(binary, ['migrate', '--database', dsn], {});
    if (migrated.code !== 0) throw new Error(migrated.text);
    sources.push({ name, dsn });
    pools[name] = cluster.pool(database);
  }
  const file = path.join(dir, 'outboxd.yaml');
  writeFileSync(file, JSON.stringify({
    version: 1, database: { sources }, admin: { listen: `127.0.0.1:${port}` }, log: { level: 'error', format: 'json' },
    worker: { name: 'bench', concurrency: 256 }, tools: { note: { effect: 'read', concurrency: 16, execute: { type: 'log' } } },
  }));
  const daemon = new Program(binary, ['run', '-c', file]);
  const name = `${scenario}-${round}`;
  try {
    await eventually('the daemon is ready', async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).status === 200, 60_000);
    await Promise.all([load(pools.orders, 'warm', 3000), load(pools.support, 'warm', 3000)]);
    if (scenario === 'stopped') support.halt();
    const aside = scenario === 'stopped' ? Promise.resolve() : load(pools.support, name, seconds * 1000);
    if (scenario === 'frozen') await sleep(500).then(() => support.freeze());
    await load(pools.orders, name, seconds * 1000);
    const found = await latencies(pools.orders, name);
    if (scenario === 'stopped') await support.begin();
    support.thaw();
    await aside;
    console.log(JSON.stringify({ round, scenario, ...figures(found), load: os.loadavg()[0] }));
    return { scenario, latencies: found };
  } finally {
    support.thaw();
    await daemon.stop('SIGKILL');
    for (const pool of Object.values(pools)) await pool.end();
  }
}

const orders = await Cluster.start();
const support = await Cluster.start();
const results = [];
const all = ['well', 'stopped', 'frozen'];
try {
  for (let round = 1; round <= rounds; round++) {
    for (const scenario of [...all.slice(round % 3), ...all.slice(0, round % 3)]) results.push(await slice(orders, support, scenario, round));
  }
} finally {
  orders.stop();
  support.stop();
  rmSync(dir, { recursive: true, force: true });
}
console.log(`\n${os.cpus().length} cores, ${os.cpus()[0].model.trim()}; fsync on; ${perSecond} operations/s in each for ${seconds} s; ${rounds} rounds; ms`);
console.log('support    operations     p50     p90     p99   of well');
const p99 = {};
for (const scenario of all) {
  const { n, p50, p90, p99: last } = figures(results.filter((r) => r.scenario === scenario).flatMap((r) => r.latencies));
  p99[scenario] = last;
  console.log(scenario.padEnd(10), String(n).padStart(10), ...[p50, p90, last].map((x) => x.toFixed(2).padStart(7)), (last / p99.well).toFixed(2).padStart(9));
}
