// What grows with the number of intents: a planner's insert (its random id goes into an index that no
// longer fits into the server's memory) and an operation's way through the daemon, with 0, a tenth and
// all of --rows finished operations behind it. Not part of the full run: ten million take half an hour.
//
//   run.mjs --only growth [--rows 10000000]
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { run, sleep } from '../e2e/util.mjs';
import { clusterCpu } from './cpu.mjs';
import { outboxd } from './contestants.mjs';
import { now } from './time.mjs';

const kDrained = 20_000;
const mib = (bytes) => Math.round(Number(bytes) / 2 ** 20);

// Finished operations, as they lie there afterwards, with ids as planners derive them.
async function grow(db, from, to) {
  for (let at = from; at < to; at += 500_000) {
    await db.query('BEGIN; SET LOCAL session_replication_role = replica');
    await db.query(`INSERT INTO outbox.operation (operation_id, tool, arguments)
      SELECT encode(sha256(convert_to('intent ' || i, 'UTF8')), 'hex'), 'work', jsonb_build_object('title', 'ticket ' || i)
        FROM generate_series($1::int + 1, $2::int) i`, [at, Math.min(at + 500_000, to)]);
    await db.query(`INSERT INTO outbox.outcome (seq, outcome, attempts, lease_epoch, attempt_epoch, result, started_at)
      SELECT o.seq, 'succeeded', 1, 2, 1, '{"id": "T-1"}', now() FROM outbox.operation o
       WHERE o.seq > (SELECT coalesce(max(seq), 0) FROM outbox.outcome) ORDER BY o.seq`);
    await db.query('COMMIT');
  }
  await db.query('UPDATE outbox.rollup r SET counted = outbox.last_number(r.source), mark = outbox.last_number(r.source)');
  await db.query('VACUUM (ANALYZE)');
  await db.query('CHECKPOINT');
}

async function inserts(bench, database, seconds) {
  const file = path.join(bench.dir, 'insert.sql');
  writeFileSync(file, `\\set id random(1, 9000000000000000000)
INSERT INTO outbox.operation (operation_id, tool, arguments) VALUES (encode(sha256(convert_to(:id::text, 'UTF8')), 'hex'), 'other', '{"title": "disk full"}') ON CONFLICT DO NOTHING;
`);
  const before = clusterCpu(bench.cluster.pid);
  const { code, text } = await run(path.join(bench.cluster.bin, 'pgbench'), ['-n', '-M', 'prepared', '-c', '4', '-j', '2', '-T', String(seconds), '-f', file, bench.cluster.dsn(database)],
    { timeout: 1000 * seconds + 60_000 });
  if (code !== 0) throw new Error(text.slice(-2000));
  const done = Number(/actually processed: (\d+)/.exec(text)[1]);
  return { insert_tps: Math.round(Number(/tps = ([\d.]+)/.exec(text)[1])), insert_us: Math.round((clusterCpu(bench.cluster.pid) - before) / done) };
}

async function drained(bench, database, db) {
  await db.query(`INSERT INTO outbox.operation (operation_id, tool, arguments)
    SELECT gen_random_uuid()::text, 'work', '{"title": "disk full"}' FROM generate_series(1, $1::int)`, [kDrained]);
  await db.query('CHECKPOINT');
  const before = clusterCpu(bench.cluster.pid);
  const worker = await outboxd.start(bench, database, { mode: 'noop', concurrency: 512, expect: kDrained });
  try {
    const from = now();
    await worker.handled();
    while ((await db.query(`SELECT EXISTS (SELECT FROM outbox.queue WHERE tool = 'work') AS left`)).rows[0].left) await sleep(5);
    return { drain_rate: Math.round(kDrained / ((now() - from) / 1000)), database_us: Number(((clusterCpu(bench.cluster.pid) - before) / kDrained).toFixed(1)) };
  } finally {
    await worker.stop();
  }
}

export async function growth(bench, { rows, seconds }) {
  const database = await bench.database(outboxd, 0);
  const db = await bench.client(database);
  let filled = 0;
  for (const size of [0, Math.round(rows / 10), rows]) {
    await grow(db, filled, size);
    filled = size;
    const { rows: [sizes] } = await db.query(`SELECT pg_relation_size('outbox.operation_id_key') AS ids, pg_total_relation_size('outbox.operation') AS operation,
      pg_total_relation_size('outbox.outcome') AS outcome`);
    const figures = { ...await inserts(bench, database, seconds), ...await drained(bench, database, db) };
    bench.record(`growth`, String(size), 1, { ...figures, id_index_mib: mib(sizes.ids), operation_mib: mib(sizes.operation), outcome_mib: mib(sizes.outcome) });
  }
  await db.end();
  await bench.drop(database);
}
