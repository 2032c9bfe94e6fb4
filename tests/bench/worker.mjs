// A peer's worker, in its own process: the library in its best documented mode (docs/benchmarks.md has
// the settings and where they come from), a handler that does what ours does, and a line of JSON to the
// bench for what it has to know. Times are of CLOCK_MONOTONIC, in ms, the same for all processes.
//
//   worker.mjs '{"peer": …, "connection": …, "mode": "noop" | "http" | "pace", "concurrency": n, "expect": n, "url": …}'
import pg from 'pg';
import { Agent, request } from 'undici';
import { now } from './time.mjs';

const task = JSON.parse(process.argv[2]);
const tell = (message) => process.stdout.write(`${JSON.stringify(message)}\n`);

let [started, done] = [0, 0];
let pickups = [];
const agent = task.url && new Agent({ connections: task.concurrency, pipelining: 1 });
const headers = { 'content-type': 'application/json' };

async function post(id) {
  const answer = await request(`${task.url}/tickets`, {
    method: 'POST', dispatcher: agent, headers: { ...headers, 'idempotency-key': id },
    body: JSON.stringify({ title: `ticket ${id}`, external_ref: id, note: 'x'.repeat(120) }),
  });
  const text = await answer.body.text();
  if (answer.statusCode !== 201) throw new Error(`${answer.statusCode} ${text}`);
  return JSON.parse(text);
}

function begin(job) {
  if (started++ === 0) {
    process.cpuUsage();
    tell({ first: now(), cpu: cpu() });
  }
  if (task.mode === 'pace') pickups.push([job.i, now()]);
}

const cpu = () => { const { user, system } = process.cpuUsage(); return user + system; };

function end(count = 1) {
  done += count;
  if (done === task.expect) tell({ handled: now(), cpu: cpu() });
}

async function handle(job) {
  begin(job);
  if (task.mode === 'http') await post(String(job.i));
  end();
}

setInterval(() => {
  if (pickups.length > 0) tell({ pickups });
  pickups = [];
}, 250);

const peers = {
  // worker.graphile.org/docs/performance: a local queue and batched completion.
  async graphile() {
    const { Logger, run } = await import('graphile-worker');
    const quiet = new Logger(() => () => {});
    await run({
      preset: {
        worker: {
          connectionString: task.connection, concurrentJobs: task.mode === 'http' ? task.concurrency : 24, maxPoolSize: 20,
          localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0, logger: quiet,
        },
      },
      taskList: { work: handle },
    });
  },

  // Batches, several workers, a fetch at once after a full one, LISTEN for an idle queue.
  async pgboss() {
    const { PgBoss } = await import('pg-boss');
    const boss = new PgBoss({ connectionString: task.connection, max: 20, useListenNotify: true });
    boss.on('error', (error) => { console.error(error); process.exit(1); });
    await boss.start();
    const shape = {
      noop: { batchSize: 1000, localConcurrency: 4 },
      http: { batchSize: 16, localConcurrency: Math.max(1, task.concurrency / 16) },
      pace: { batchSize: 50, localConcurrency: 2 },
    }[task.mode];
    await boss.work('work', { ...shape, burstWhenBatchFull: true, pollingIntervalSeconds: 0.5, notifyPollingIntervalSeconds: 0.5 },
      async (jobs) => { await Promise.all(jobs.map((job) => handle(job.data))); });
  },

  // Read a page, handle it, delete it in one statement; two loops, so that the handlers of one page run
  // beside the statements of the other. pgmq has no LISTEN: 5 ms between two looks at an empty queue.
  async pgmq() {
    const pool = new pg.Pool({ connectionString: task.connection, max: 4 });
    const qty = task.mode === 'http' ? Math.ceil(task.concurrency / 2) : 500;
    const loop = async () => {
      for (;;) {
        const { rows } = await pool.query({ name: 'read', text: 'SELECT msg_id, message FROM pgmq.read($1, $2)', values: [60, qty] });
        if (rows.length === 0) {
          await new Promise((resolve) => setTimeout(resolve, 5));
          continue;
        }
        await Promise.all(rows.map((row) => handle(row.message)));
        await pool.query({ name: 'delete', text: 'SELECT count(*) FROM pgmq.delete($1)', values: [rows.map((row) => row.msg_id)] });
      }
    };
    for (const running of [loop(), loop()]) running.catch((error) => { console.error(error); process.exit(1); });
  },

  // No queue at all: the floor of the HTTP comparison.
  async client() {
    let next = 0;
    const loop = async () => { while (next < task.expect) await handle({ i: next++ }); };
    await Promise.all(Array.from({ length: task.concurrency }, loop));
  },
};

await peers[task.peer]();
tell({ ready: now() });
