// Who takes part, and how each is set up, filled, fed and started. Settings: docs/benchmarks.md.
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { ticketTool } from '../e2e/config.mjs';
import { Program, eventually, freePort, run, sleep } from '../e2e/util.mjs';
import { processCpu } from './cpu.mjs';
import { now } from './time.mjs';

const sql = (name) => readFileSync(new URL(name, import.meta.url), 'utf8');
const chunks = function* (rows, size) {
  for (let from = 1; from <= rows; from += size) yield [from, Math.min(from + size - 1, rows)];
};
// The same 80 bytes or so for everybody.
const payload = (i) => `json_build_object('i', ${i}, 'title', 'ticket ' || ${i}, 'queue', 'operations', 'severity', 2)`;
const job = (i) => ({ i, title: `ticket ${i}`, queue: 'operations', severity: 2 });

// A worker that tells its times itself (worker.mjs).
class PeerWorker extends Program {
  constructor(task, onPickups) {
    super(process.execPath, [new URL('worker.mjs', import.meta.url).pathname, JSON.stringify(task)]);
    this.told = {};
    let rest = '';
    this.child.stdout.on('data', (data) => {
      const lines = (rest + data).split('\n');
      rest = lines.pop();
      for (const line of lines) {
        const message = JSON.parse(line);
        if (message.pickups) onPickups?.(message.pickups);
        else if (message.first !== undefined) this.told.first = message;
        else if (message.handled !== undefined) this.told.handled = message;
        else this.told.ready = message;
      }
    });
  }

  async until(what, ms = 120_000) {
    await eventually(`${what} of the worker`, () => {
      if (this.ended) throw new Error(`it ended: ${this.output.slice(-2000)}`);
      return this.told[what];
    }, ms);
    return this.told[what];
  }
}

const peer = (name, more) => ({
  name,
  start(bench, database, task, onPickups) {
    const worker = new PeerWorker({ peer: name, connection: bench.url(database), ...task }, onPickups);
    return {
      program: worker,
      ready: () => worker.until('ready'),
      // From the first handler's start; the CPU of starting up is not counted.
      first: async () => (await worker.until('first')).first,
      handled: async () => (await worker.until('handled')).handled,
      cpu: () => worker.told.handled.cpu - worker.told.first.cpu,
      stop: () => worker.stop('SIGKILL'),
    };
  },
  ...more,
});

class Daemon extends Program {
  constructor(bench, file, onPickups) {
    super(bench.binary, ['run', '-c', file]);
    if (!onPickups) return;
    this.child.stderr.removeAllListeners('data');  // a line per operation is a lot to keep
    let rest = '';
    this.child.stderr.on('data', (data) => {
      const at = now();
      const lines = (rest + data).split('\n');
      rest = lines.pop();
      const pickups = [];
      for (const line of lines) {
        const found = /tool log.*"operation_id":"new-(\d+)"/.exec(line);
        if (found) pickups.push([Number(found[1]), at]);
      }
      if (pickups.length > 0) onPickups(pickups);
    });
  }
}

const toolOf = (mode, url) => mode === 'http'
  ? ticketTool(url, { arguments: { type: 'object', properties: { title: { type: 'string', maxLength: 200 } } } })
  : { description: 'writes a line', effect: 'read', execute: { type: 'log' } };

export const outboxd = {
  name: 'outboxd',
  left: 'SELECT EXISTS (SELECT FROM outbox.queue) AS left',
  async setup(bench, database) {
    const { code, text } = await run(bench.binary, ['migrate', '--database', bench.cluster.dsn(database)], {});
    if (code !== 0) throw new Error(text);
  },
  // Many rows are filed as the trigger files them, but by one statement for each table.
  async fill(bench, database, db, rows) {
    await db.query('BEGIN; SET LOCAL session_replication_role = replica');
    await db.query(`INSERT INTO outbox.operation (operation_id, tool, arguments)
      SELECT 'op-' || i, 'work', ${payload('i')}::jsonb FROM generate_series(1, $1::int) i`, [rows]);
    await db.query(`INSERT INTO outbox.queue (seq, tool, priority, status) SELECT seq, tool, priority, 'pending' FROM outbox.operation ORDER BY seq`);
    await db.query('COMMIT');
  },
  async feed(bench, database) {
    const pool = bench.cluster.pool(database);
    return {
      send: (i) => pool.query({ name: 'send', text: 'SELECT * FROM outbox.enqueue($1, $2, operation_id => $3)', values: ['work', job(i), `new-${i}`] }),
      stop: () => pool.end(),
    };
  },
  async start(bench, database, { mode, concurrency, url, expect }, onPickups) {
    const port = await freePort();
    const file = path.join(bench.dir, `${database}.yaml`);
    writeFileSync(file, JSON.stringify({
      version: 1,
      database: { dsn: bench.cluster.dsn(database) },
      admin: { listen: `127.0.0.1:${port}` },
      log: { level: onPickups ? 'info' : 'error', format: 'json' },
      worker: { name: 'bench', concurrency, ...(mode === 'pace' && { poll: { busy: '1ms' } }) },
      ...(mode === 'http' && { defaults: { http: { max_connections_per_host: concurrency } } }),
      tools: { work: toolOf(mode, url) },
    }));
    const program = new Daemon(bench, file, onPickups);
    const alive = () => { if (program.ended) throw new Error(`the daemon ended: ${program.output.slice(-2000)}`); };
    const metrics = async () => {
      alive();
      const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
      return (name, label = '') => [...text.matchAll(new RegExp(`^${name}(?:\\{[^}]*${label}[^}]*\\})? ([0-9.e+-]+)$`, 'gm'))]
        .reduce((sum, found) => sum + Number(found[1]), 0);
    };
    let cpu = 0;
    return {
      program,
      metrics,
      ready: () => eventually('the daemon is ready', async () => { alive(); return (await fetch(`http://127.0.0.1:${port}/readyz`)).status === 200; }, 60_000),
      // The database's time of the first lease, moved to this process's clock.
      async first() {
        const db = await bench.client(database);
        const { rows: [{ ms }] } = await db.query(`SELECT extract(epoch FROM clock_timestamp() - min(started_at))::float8 * 1000 AS ms FROM outbox.outcome`);
        await db.end();
        return now() - ms;
      },
      async handled() {
        await eventually('all is handled', async () => {
          if ((await metrics())('outboxd_attempts_total') >= expect) return true;
          await sleep(20);
          return false;
        }, 600_000);
        cpu = processCpu(program.pid);
        return now();
      },
      cpu: () => cpu,
      stop: () => program.stop('SIGKILL'),
    };
  },
};

const graphile = peer('graphile', {
  title: 'graphile-worker',
  left: `SELECT EXISTS (SELECT FROM graphile_worker._private_jobs) AS left`,
  async setup(bench, database) {
    const { runMigrations } = await import('graphile-worker');
    await runMigrations({ connectionString: bench.url(database) });
  },
  async fill(bench, database, db, rows) {
    for (const [from, to] of chunks(rows, 10_000)) {
      await db.query(`SELECT count(*) FROM graphile_worker.add_jobs((SELECT array_agg(
        ROW('work', ${payload('i')}, NULL, NULL, NULL, NULL, NULL, NULL)::graphile_worker.job_spec ORDER BY i) FROM generate_series($1::int, $2::int) i))`, [from, to]);
    }
  },
  async feed(bench, database) {
    const pool = bench.cluster.pool(database);
    return {
      send: (i) => pool.query({ name: 'send', text: `SELECT graphile_worker.add_job('work', $1)`, values: [job(i)] }),
      stop: () => pool.end(),
    };
  },
});

const pgboss = peer('pgboss', {
  title: 'pg-boss',
  left: `SELECT EXISTS (SELECT FROM pgboss.job WHERE state < 'completed') AS left`,
  async boss(bench, database) {
    const { PgBoss } = await import('pg-boss');
    const boss = new PgBoss({ connectionString: bench.url(database), max: 8, supervise: false, schedule: false });
    boss.on('error', () => {});
    await boss.start();
    return boss;
  },
  async setup(bench, database) {
    const boss = await this.boss(bench, database);
    await boss.createQueue('work', { notify: true });
    await boss.stop({ graceful: false });
  },
  async fill(bench, database, db, rows) {
    const boss = await this.boss(bench, database);
    for (const [from, to] of chunks(rows, 5000)) {
      await boss.insert('work', Array.from({ length: to - from + 1 }, (_, k) => ({ data: job(from + k) })));
    }
    await boss.stop({ graceful: false });
  },
  async feed(bench, database) {
    const boss = await this.boss(bench, database);
    return { send: (i) => boss.send('work', job(i)), stop: () => boss.stop({ graceful: false }) };
  },
});

const pgmq = peer('pgmq', {
  title: 'pgmq (SQL)',
  left: 'SELECT EXISTS (SELECT FROM pgmq.q_work) AS left',
  setup: (bench, database, db) => db.query(sql('pgmq.sql')),
  fill: (bench, database, db, rows) => db.query(`INSERT INTO pgmq.q_work (vt, message) SELECT now(), ${payload('i')}::jsonb FROM generate_series(1, $1::int) i`, [rows]),
  async feed(bench, database) {
    const pool = bench.cluster.pool(database);
    return {
      send: (i) => pool.query({ name: 'send', text: 'SELECT pgmq.send($1)', values: [job(i)] }),
      stop: () => pool.end(),
    };
  },
});

// The statements alone, inside the server: what the design costs before there is a daemon.
export const prototype = {
  name: 'prototype',
  async setup(bench, database, db) {
    await db.query(`DO $$ BEGIN CREATE ROLE outbox_planner NOLOGIN; EXCEPTION WHEN duplicate_object THEN NULL; END $$`);
    await db.query(sql('floor.sql'));
  },
  // Each of two sessions has a tool of its own.
  fill: (bench, database, db, rows) => db.query(`INSERT INTO floor.operation (operation_id, tool, arguments)
    SELECT 'op-' || i, 'tool' || (i % 2), ${payload('i')}::jsonb FROM generate_series(1, $1::int) i`, [rows]),
};

export const peers = [graphile, pgboss, pgmq];
export const contestants = [outboxd, ...peers];
export const titleOf = (name) => contestants.find((c) => c.name === name)?.title ?? name;
export const clientAlone = peer('client', { left: null });
