// The planner's side under load: one id from many connections, open transactions, wake-ups.
import assert from 'node:assert/strict';
import pg from 'pg';
import { story } from './world.mjs';
import { eventually, sleep } from './util.mjs';

const connect = async (w) => {
  const client = new pg.Client({ host: '127.0.0.1', port: w.cluster.port, user: 'postgres', database: w.db.options.database });
  await client.connect();
  return client;
};
const call = `SELECT status, replayed FROM outbox.enqueue('create_ticket', $1::jsonb, $2)`;
const same = JSON.stringify({ title: 'ticket same' });

// How long the load lasts; the claim is made of 10 s (OUTBOXD_PLANNER_SECONDS=10), CI has a taste of it.
const seconds = Number(process.env.OUTBOXD_PLANNER_SECONDS ?? 3);
const perSecond = 125;  // calls of each of the 8 connections, where the machine carries that

// Who holds up whom, looked at every 25 ms until it is stopped: "daemon" is what calls itself outboxd.
function watchLocks(w) {
  const seen = { looks: 0, daemonBlocksPlanner: 0, plannerBlocksDaemon: 0 };
  let going = true;
  const done = (async () => {
    while (going) {
      const row = await w.one(`SELECT count(*) FILTER (WHERE b.application_name = 'outboxd' AND a.application_name <> 'outboxd')::int AS daemon,
               count(*) FILTER (WHERE b.application_name <> 'outboxd' AND a.application_name = 'outboxd')::int AS planner
          FROM pg_stat_activity a CROSS JOIN LATERAL unnest(pg_blocking_pids(a.pid)) AS held(pid)
          JOIN pg_stat_activity b ON b.pid = held.pid
         WHERE a.datname = current_database() AND a.wait_event_type = 'Lock'`);
      seen.looks++;
      seen.daemonBlocksPlanner += row.daemon;
      seen.plannerBlocksDaemon += row.planner;
      await sleep(25);
    }
  })();
  return { seen, stop: async () => { going = false; await done; return seen; } };
}

const quantile = (sorted, q) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))];

story('1,000 enqueues per second of one id from 8 connections: one effect, no deadlock, nobody held up', async (w, t) => {
  const daemon = await w.start();
  await w.db.query('CREATE TABLE state (id integer PRIMARY KEY, step bigint NOT NULL); INSERT INTO state SELECT i, 0 FROM generate_series(1, 8) i');
  const clients = await Promise.all(Array.from({ length: 8 }, () => connect(w)));
  const watch = watchLocks(w);
  const begin = performance.now();
  const end = begin + seconds * 1000;
  const latencies = [];
  let fresh = 0;
  let finished = begin;
  try {
    await Promise.all(clients.map(async (client, i) => {
      // Each call is in a transaction of its own, which must never be aborted.
      for (let n = 0; performance.now() < end && n < perSecond * seconds; n++) {
        const from = performance.now();
        await client.query('BEGIN');
        await client.query('UPDATE state SET step = step + 1 WHERE id = $1', [i + 1]);
        const { rows: [receipt] } = await client.query(call, [same, 'same']);
        await client.query('COMMIT');
        finished = performance.now();
        latencies.push(finished - from);
        if (!receipt.replayed) fresh++;
        await sleep(Math.max(0, begin + ((n + 1) * 1000) / perSecond - performance.now()));
      }
    }));
  } finally {
    await Promise.all(clients.map((client) => client.end()));
  }
  const seen = await watch.stop();
  const calls = latencies.length;
  latencies.sort((a, b) => a - b);
  t.diagnostic(`${Math.round(calls / ((finished - begin) / 1000))} transactions/s for ${((finished - begin) / 1000).toFixed(1)} s (${calls} calls of one id, 8 connections, each transaction UPDATE + enqueue), `
    + `p50 ${quantile(latencies, 0.5).toFixed(1)} ms, p99 ${quantile(latencies, 0.99).toFixed(1)} ms, worst ${latencies.at(-1).toFixed(1)} ms; ${seen.looks} looks at the locks`);
  assert.equal(fresh, 1, 'one call recorded it');
  assert.ok(calls >= 40 * seconds, `${calls} calls in ${seconds} s`);
  await w.settled('same');
  assert.equal((await w.desk.tickets('same')).length, 1);
  assert.equal((await w.desk.posts('same')).length, 1);
  assert.equal((await w.events('same', 'replayed')).length, calls - 1, 'every replay is in the log');
  assert.equal(Number((await w.one('SELECT sum(step) AS n FROM state')).n), calls, 'no transaction was lost');
  assert.doesNotMatch(w.cluster.log, /deadlock detected/);
  assert.ok(seen.looks > 0);
  assert.deepEqual([seen.daemonBlocksPlanner, seen.plannerBlocksDaemon], [0, 0], 'nobody waited for the other side\'s lock');
  assert.equal(daemon.ended, null);
});

// Else "nobody waited" above could be said by a watch that sees nothing.
story('the watch sees a daemon that holds up a planner, and a planner that holds up a daemon', async (w) => {
  await w.db.query('CREATE TABLE state (id integer PRIMARY KEY, step bigint NOT NULL); INSERT INTO state VALUES (1, 0)');
  const daemon = await connect(w);
  const planner = await connect(w);
  try {
    await daemon.query(`SET application_name = 'outboxd'`);
    for (const [first, second, field] of [[daemon, planner, 'daemonBlocksPlanner'], [planner, daemon, 'plannerBlocksDaemon']]) {
      const watch = watchLocks(w);
      await first.query('BEGIN');
      await first.query('UPDATE state SET step = step + 1');
      const waits = second.query('UPDATE state SET step = step + 1');
      await eventually('it is seen', () => watch.seen[field] > 0, 30_000);
      await first.query('COMMIT');
      await waits;
      await watch.stop();
    }
  } finally {
    await daemon.end();
    await planner.end();
  }
});

story('an open planner transaction holds back neither the daemon nor other planners', async (w) => {
  await w.start();
  const slow = await connect(w);
  const other = await connect(w);
  const watch = watchLocks(w);
  try {
    await slow.query('BEGIN');
    await slow.query(call, [JSON.stringify({ title: 'ticket open' }), 'open']);
    // The daemon works on what others file meanwhile, by both roads.
    for (let i = 1; i <= 20; i++) {
      if (i % 2) await w.enqueue(`op-${i}`);
      else await w.db.query(`INSERT INTO outbox.operation (operation_id, tool, arguments) VALUES ($1, 'create_ticket', $2)`, [`op-${i}`, { title: `ticket op-${i}` }]);
    }
    await w.allSettled(20, 60_000);
    assert.equal((await w.desk.tickets('open')).length, 0, 'nothing runs before the commit');
    // A second planner with the same id waits for this one; with another id it does not.
    const waits = other.query(call, [JSON.stringify({ title: 'ticket open' }), 'open']);
    await w.enqueue('free');
    await w.settled('free', 60_000);
    await slow.query('COMMIT');
    assert.equal((await waits).rows[0].replayed, true);

    // A lease holds its row for a moment only: while an attempt runs, planners replay and cancel at once.
    await w.desk.plan('held', { posts: ['hold'] });
    await w.enqueue('held');
    await w.until('held', ['attempting'], 60_000);
    await other.query(`SET lock_timeout = '30s'`);
    assert.deepEqual((await other.query(call, [JSON.stringify({ title: 'ticket held' }), 'held'])).rows, [{ status: 'attempting', replayed: true }]);
    assert.equal((await other.query(`SELECT outbox.cancel('held') AS answer`)).rows[0].answer, 'too_late');
    // And the attempt ends under the eyes of a transaction that has replayed it, tried to cancel it and
    // recorded another one, and stays open.
    await slow.query('BEGIN');
    assert.equal((await slow.query(call, [JSON.stringify({ title: 'ticket held' }), 'held'])).rows[0].replayed, true);
    assert.equal((await slow.query(`SELECT outbox.cancel('held') AS answer`)).rows[0].answer, 'too_late');
    await slow.query(call, [JSON.stringify({ title: 'ticket more' }), 'more']);
    await w.desk.release('held');
    await w.settled('held', 60_000);
    await w.settled('open', 60_000);
    assert.equal((await watch.stop()).plannerBlocksDaemon, 0, 'no daemon waited for a planner\'s lock');
    assert.equal(watch.seen.daemonBlocksPlanner, 0, 'no planner waited for a daemon\'s lock');
    await slow.query('COMMIT');
  } finally {
    await watch.stop();
    await slow.end();
    await other.end();
  }
  await w.settled('more', 60_000);
}, { timeout: 240_000 });

story('a plain insert wakes a sleeping daemon as the function does', async (w) => {
  // Without a wake-up nothing would be picked up before ten minutes are over.
  const daemon = await w.start({ worker: { poll: { busy: '5ms', idle: '10m' } } });
  const asleep = () => eventually('the daemon sleeps', async () => (await w.one(
    `SELECT count(*)::int AS n FROM pg_locks WHERE locktype = 'advisory' AND classid = 1869968504
        AND mode = 'ExclusiveLock' AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`)).n === 1, 60_000);
  for (let i = 1; i <= 3; i++) {
    await asleep();
    await w.enqueue(`function-${i}`);
    await w.settled(`function-${i}`, 60_000);
    await asleep();
    await w.db.query(`INSERT INTO outbox.operation (operation_id, tool, arguments) VALUES ($1, 'create_ticket', $2) ON CONFLICT DO NOTHING`, [`plain-${i}`, { title: `ticket plain-${i}` }]);
    await w.settled(`plain-${i}`, 60_000);
  }
  // Around the moment of falling asleep: commits from four connections, with pauses near the 100 ms
  // after which a tool without work falls asleep. A lost wake-up would stay pending.
  const clients = await Promise.all(Array.from({ length: 4 }, () => connect(w)));
  try {
    await Promise.all(clients.map(async (client, c) => {
      for (let i = 1; i <= 25; i++) {
        await client.query('BEGIN');
        if (i % 2) await client.query(call, [JSON.stringify({ title: `ticket race-${c}-${i}` }), `race-${c}-${i}`]);
        else await client.query(`INSERT INTO outbox.operation (operation_id, tool, arguments) VALUES ($1, 'create_ticket', $2)`, [`race-${c}-${i}`, { title: `ticket race-${c}-${i}` }]);
        if (i % 3 === 0) await sleep(20);
        await client.query('COMMIT');
        await sleep(80 + (i * 37 + c * 11) % 60);
      }
    }));
  } finally {
    await Promise.all(clients.map((client) => client.end()));
  }
  await w.allSettled(106, 60_000);
  assert.equal(daemon.ended, null);
}, { timeout: 300_000 });
