// How long the admin server takes to answer what the operator page asks, with a million operations:
// most of them final, and then all of them still to be done (a backlog nobody works on).
//
//   node page.mjs [--rows 1000000] [--rounds 20] [--limit-ms 200]
// prints a JSON line per request and a table; exit 1 if a request's median is over the limit
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Cluster } from '../e2e/cluster.mjs';
import { Program, eventually, freePort, run } from '../e2e/util.mjs';
import { figures } from './figures.mjs';

const option = (name, value) => {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? value : Number(process.argv[at + 1]);
};
const [rows, rounds, limit] = [option('rows', 1_000_000), option('rounds', 20), option('limit-ms', 200)];
const binary = path.resolve(process.env.OUTBOXD ?? 'build/release/outboxd');
const dir = mkdtempSync(path.join(os.tmpdir(), 'outboxd-page-bench-'));

// Twenty tools; of one few operations and early ones, of one a twentieth of the first half and none since;
// one operation in a hundred failed, all of one tool.
async function fill(db, open) {
  await db.query('ALTER TABLE outbox.operation DISABLE TRIGGER file_work');
  for (let done = 0; done < rows; done += 100_000) {
    const n = Math.min(100_000, rows - done);
    await db.query(`INSERT INTO outbox.operation (operation_id, tool, arguments, created_at)
      SELECT md5((i + ${done})::text), CASE WHEN i + ${done} IN (10, 1000, 5000) THEN 'rare'
               WHEN i % 20 = 4 AND i + ${done} < ${Math.floor(rows / 2)} THEN 'retired' ELSE 'tool-' || i % 20 END,
             jsonb_build_object('title', 'ticket ' || i, 'body', repeat(md5(i::text), 8)),
             now() - interval '60 days' + (i + ${done}) * interval '5 s' FROM generate_series(1, ${n}) i`);
  }
  const final = open ? 0 : 0.98;
  await db.query(`INSERT INTO outbox.outcome (seq, outcome, attempts, lease_epoch, result, error, started_at, finished_at, attention)
    SELECT seq, CASE seq % 100 WHEN 7 THEN 'failed' WHEN 8 THEN 'cancelled' ELSE 'succeeded' END, 1, 2, jsonb_build_object('id', seq),
           CASE seq % 100 WHEN 7 THEN '{"code": "rejected", "message": "no"}'::jsonb END, created_at, created_at,
           CASE WHEN seq % 10000 = 9 THEN 'late_effect' END FROM outbox.operation WHERE seq <= $1`, [Math.floor(rows * final)]);
  await db.query(`INSERT INTO outbox.queue (seq, tool, priority, status, due_at, unknown_since, attention)
    SELECT o.seq, o.tool, 0, k.status, CASE WHEN k.status <> 'pending' THEN now() + interval '1 h' END, CASE WHEN k.status = 'unknown' THEN now() END,
           CASE WHEN k.status = 'unknown' AND o.seq % 1000 = 1 THEN 'manual' END
      FROM outbox.operation o, LATERAL (SELECT CASE o.seq % 100 WHEN 1 THEN 'unknown' WHEN 2 THEN 'scheduled' ELSE 'pending' END AS status) k
     WHERE o.seq > $1`, [Math.floor(rows * final)]);
  await db.query(`INSERT INTO outbox.tally (at, tool, enqueued, replayed)
    SELECT date_bin('1 hour', now() - i * interval '1 hour', '2000-01-01Z'), 'tool-' || t, 1000, 20 FROM generate_series(1, 720) i, generate_series(0, 19) t`);
  await db.query(`INSERT INTO outbox.event (operation_id, kind) SELECT operation_id, 'replayed' FROM outbox.operation WHERE seq % 10 = 0`);
  await db.query(`INSERT INTO outbox.event (operation_id, kind) SELECT (SELECT operation_id FROM outbox.operation WHERE seq = 5), 'replayed' FROM generate_series(1, 100000)`);
  await db.query('UPDATE outbox.rollup SET counted = outbox.last_number(source), mark = outbox.last_number(source)');
  await db.query(`INSERT INTO outbox.stretch (tool, block, first, last, operations)
    SELECT tool, seq / 2048, min(seq), max(seq), count(*) FROM outbox.operation GROUP BY 1, 2`);
  await db.query('VACUUM ANALYZE');
  await db.query('CHECKPOINT');
}

const statuses = ['pending', 'scheduled', 'unknown', 'attempting', 'succeeded', 'failed', 'cancelled'];
const requests = (id, middle) => [
  ['page', '/'],
  ['overview', '/api/v1/stats'],
  ['overview', '/api/v1/tools'],
  ['overview', '/api/v1/workers'],
  ['list', '/api/v1/operations?limit=50'],
  ...[...statuses, 'failed,cancelled', 'unknown,succeeded'].map((status) => ['list', `/api/v1/operations?limit=50&status=${status}`]),
  // Every pair of a tool and a status, and what waits for a person; many hits, few, and none.
  ...['tool-7', 'tool-3', 'rare', 'retired', 'nobody'].flatMap((tool) => ['', ...statuses, 'failed,cancelled', 'pending,unknown'].map(
    (status) => ['list', `/api/v1/operations?limit=50&tool=${tool}${status && `&status=${status}`}`])),
  ['list', '/api/v1/operations?limit=50&attention=true'],
  ...['tool-7', 'tool-1', 'rare'].map((tool) => ['list', `/api/v1/operations?limit=50&attention=true&tool=${tool}`]),
  ...['unknown', 'succeeded', 'failed'].map((status) => ['list', `/api/v1/operations?limit=50&attention=true&status=${status}`]),
  ['list', `/api/v1/operations?limit=50&tool=tool-7&status=failed&after=${middle}`],
  ['list', `/api/v1/operations?limit=50&tool=rare&after=${middle}`],
  ['list', `/api/v1/operations?limit=50&after=${middle}`],
  ['list', '/api/v1/operations?limit=50&after=200'],
  ['list', '/api/v1/operations?limit=1000'],
  ['story', `/api/v1/operations/${id}`],
];

async function scenario(cluster, open) {
  const database = await cluster.createDatabase();
  const [db, dsn, port] = [cluster.pool(database), cluster.dsn(database), await freePort()];
  const migrated = await run(binary, ['migrate', '--database', dsn], {});
  if (migrated.code !== 0) throw new Error(migrated.text);
  await fill(db, open);
  const file = path.join(dir, 'outboxd.yaml');
  writeFileSync(file, JSON.stringify({
    version: 1, database: { dsn }, admin: { listen: `127.0.0.1:${port}` }, log: { level: 'error', format: 'json' },
    tools: { note: { effect: 'read', execute: { type: 'log' } } },
  }));
  const daemon = new Program(binary, ['run', '-c', file]);
  const table = [];
  try {
    await eventually('the daemon is ready', async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).status === 200, 30_000);
    const { rows: [{ id }] } = await db.query('SELECT operation_id AS id FROM outbox.operation WHERE seq = 5');
    for (const [what, url] of requests(id, Math.floor(rows / 2))) {
      const took = [];
      let bytes = 0;
      let status = 0;
      for (let i = 0; i <= rounds; i += 1) {
        const began = performance.now();
        const answer = await fetch(`http://127.0.0.1:${port}${url}`);
        bytes = (await answer.text()).length;
        ({ status } = answer);
        if (i > 0) took.push(performance.now() - began);  // the first one opens the connection
      }
      const row = { scenario: open ? 'all open' : 'mostly final', what, url, status, bytes, ...figures(took) };
      console.log(JSON.stringify(row));
      table.push(row);
    }
  } finally {
    await daemon.stop('SIGKILL');
    await db.end();
  }
  return table;
}

const cluster = await Cluster.start();
try {
  const all = [...await scenario(cluster, false), ...await scenario(cluster, true)];
  console.log(`\n${rows} operations, ms\n${'scenario'.padEnd(14)}${'p50'.padStart(8)}${'p99'.padStart(8)}  request`);
  for (const row of all) console.log(`${row.scenario.padEnd(14)}${String(row.p50).padStart(8)}${String(row.p99).padStart(8)}  ${row.url}${row.p50 > limit || row.status !== 200 ? '   <-- too slow' : ''}`);
  process.exitCode = all.every((row) => row.p50 <= limit && row.status === 200) ? 0 : 1;
} finally {
  cluster.stop();
  rmSync(dir, { recursive: true, force: true });
}
