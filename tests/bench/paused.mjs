// What one tool's trouble costs another: pickup latency of tool B (its insert until its attempt begins)
// while tool A does nothing, while A runs, and while A answers 429 with Retry-After: 30 to a backlog that
// grows. All on one daemon and one Postgres with fsync; the three take turns within each round, in a
// new order each time, each on a database of its own.
//
//   node paused.mjs [--rounds 4]      prints a JSON line per slice and a table
import http from 'node:http';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Cluster } from '../e2e/cluster.mjs';
import { Program, eventually, freePort, run, sleep } from '../e2e/util.mjs';
import { figures } from './figures.mjs';

const at = process.argv.indexOf('--rounds');
const rounds = at < 0 ? 4 : Number(process.argv[at + 1]);
const binary = path.resolve(process.env.OUTBOXD ?? 'build/release/outboxd');
const dir = mkdtempSync(path.join(os.tmpdir(), 'outboxd-paused-'));

const kBacklog = 2000;  // of A, filed before the slice begins
// Busy: the daemon polls all the time. Idle: it sleeps, and each operation has to wake it.
const paces = { busy: { perSecond: 200, seconds: 4 }, idle: { perSecond: 4, seconds: 8 } };
const scenarios = { 'A does nothing': null, 'A runs': 201, 'A is told to wait': 429 };

const asked = { a: 0, b: 0 };
let answerOfA = 201;
const service = http.createServer((request, response) => {
  const tool = request.url[1];
  ++asked[tool];
  request.resume().on('end', () => {
    const status = tool === 'a' ? answerOfA : 201;
    response.writeHead(status, { 'Content-Type': 'application/json', ...(status === 429 ? { 'Retry-After': '30' } : {}) });
    response.end('{}');
  });
});
service.keepAliveTimeout = 60_000;
await new Promise((resolve) => service.listen(0, '127.0.0.1', resolve));

const tool = (name) => ({
  effect: 'write',
  execute: { type: 'http', method: 'POST', url: `http://127.0.0.1:${service.address().port}/${name}`, json: { key: '{{ operation.key }}' },
    outcomes: [{ when: { status: 201 }, then: 'succeeded' }, { when: { status: 429 }, then: 'retry', retry_after: 'header' }] },
  reconcile: { type: 'manual', reason: 'a benchmark' },
});

// Inserts at a pace, by a clock that does not wait for the inserts.
async function load(db, name, { perSecond, seconds }) {
  const began = performance.now();
  const inserts = [];
  for (let i = 0; i < perSecond * seconds; i++) {
    await sleep(Math.max(0, began + (1000 * i) / perSecond - performance.now()));
    inserts.push(db.query('INSERT INTO outbox.operation (operation_id, tool, arguments) VALUES ($1, $2, $3)', [`${name}-${i}`, name, '{}']));
  }
  await Promise.all(inserts);
}

async function slice(cluster, scenario, pace, number) {
  const database = await cluster.createDatabase();
  const [db, dsn, port] = [cluster.pool(database), cluster.dsn(database), await freePort()];
  const migrated = await run(binary, ['migrate', '--database', dsn], {});
  if (migrated.code !== 0) throw new Error(migrated.text);
  const file = path.join(dir, 'outboxd.yaml');
  writeFileSync(file, JSON.stringify({
    version: 1, database: { dsn }, admin: { listen: `127.0.0.1:${port}` }, log: { level: 'error', format: 'json' },
    worker: { name: 'bench', concurrency: 256 }, tools: { a: tool('a'), b: tool('b') },
  }));
  answerOfA = scenarios[scenario];
  asked.a = asked.b = 0;
  const daemon = new Program(binary, ['run', '-c', file]);
  try {
    await eventually('the daemon is ready', async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).status === 200, 30_000);
    if (answerOfA === 429) {
      await db.query(`INSERT INTO outbox.operation (operation_id, tool, arguments) SELECT 'backlog-' || i, 'a', '{}' FROM generate_series(1, $1::int) i`, [kBacklog]);
      await eventually('A is told to wait', () => asked.a > 0, 30_000);
    }
    await sleep(1500);
    const before = asked.a;
    await Promise.all([load(db, 'b', paces[pace]), answerOfA ? load(db, 'a', paces[pace]) : null]);
    await eventually('B is through', async () =>
      (await db.query(`SELECT count(*)::int AS n FROM outbox.queue WHERE tool = 'b'`)).rows[0].n === 0, 60_000);
    if (answerOfA === 429 && asked.a !== before) throw new Error(`A was asked ${asked.a - before} times while it was to wait`);
    const { rows } = await db.query(`SELECT extract(epoch FROM started_at - created_at)::float8 * 1000 AS ms FROM outbox.operations WHERE tool = 'b' AND status = 'succeeded'`);
    const { perSecond, seconds } = paces[pace];
    if (rows.length !== perSecond * seconds) throw new Error(`${rows.length} of B succeeded`);
    const latencies = rows.map((row) => row.ms);
    console.log(JSON.stringify({ round: number, scenario, pace, ...figures(latencies), asked_of_a: asked.a }));
    return { scenario, pace, latencies };
  } finally {
    await daemon.stop('SIGKILL');
    await db.end();
  }
}

const cluster = await Cluster.start();
const results = [];
const load1 = [os.loadavg()[0]];
try {
  for (let i = 1; i <= rounds; i++) {
    for (const pace of Object.keys(paces)) {
      const order = Object.keys(scenarios);
      for (let turn = 0; turn < i % order.length; turn++) order.push(order.shift());
      for (const scenario of order) results.push(await slice(cluster, scenario, pace, i));
    }
    load1.push(os.loadavg()[0]);
  }
} finally {
  cluster.stop();
  service.close();
  service.closeAllConnections();
  rmSync(dir, { recursive: true, force: true });
}
console.log(`\n${os.cpus().length} cores, ${os.cpus()[0].model.trim()}; fsync on; ${rounds} rounds; load ${Math.min(...load1).toFixed(1)} to ${Math.max(...load1).toFixed(1)}; ms`);
console.log('pace   tool A              operations of B    p50     p90     p99');
for (const pace of Object.keys(paces)) {
  for (const scenario of Object.keys(scenarios)) {
    const { n, p50, p90, p99 } = figures(results.filter((r) => r.pace === pace && r.scenario === scenario).flatMap((r) => r.latencies));
    console.log(pace.padEnd(6), scenario.padEnd(19), String(n).padStart(15), ...[p50, p90, p99].map((x) => x.toFixed(2).padStart(7)));
  }
}
