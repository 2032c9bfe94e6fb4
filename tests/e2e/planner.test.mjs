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

story('1,000 enqueues per second of one id from 8 connections for 10 s: one effect, no deadlock', async (w) => {
  const daemon = await w.start();
  await w.db.query('CREATE TABLE state (id integer PRIMARY KEY, step bigint NOT NULL); INSERT INTO state SELECT i, 0 FROM generate_series(1, 8) i');
  const clients = await Promise.all(Array.from({ length: 8 }, () => connect(w)));
  const end = Date.now() + 10_000;
  const counts = { calls: 0, fresh: 0 };
  try {
    await Promise.all(clients.map(async (client, i) => {
      // 125 calls per second and connection, where the machine carries that; each in a transaction
      // of its own, which must never be aborted.
      for (let n = 0; Date.now() < end && n < 1250; n++) {
        await client.query('BEGIN');
        await client.query('UPDATE state SET step = step + 1 WHERE id = $1', [i + 1]);
        const { rows: [receipt] } = await client.query(call, [same, 'same']);
        await client.query('COMMIT');
        counts.calls++;
        if (!receipt.replayed) counts.fresh++;
        await sleep(Math.max(0, (end - 10_000) + (n + 1) * 8 - Date.now()));
      }
    }));
  } finally {
    await Promise.all(clients.map((client) => client.end()));
  }
  assert.equal(counts.fresh, 1, 'one call recorded it');
  assert.ok(counts.calls >= 400, `${counts.calls} calls in 10 s`);
  await w.settled('same');
  assert.equal((await w.desk.tickets('same')).length, 1);
  assert.equal((await w.desk.posts('same')).length, 1);
  assert.equal((await w.events('same', 'replayed')).length, counts.calls - 1, 'every replay is in the log');
  assert.equal(Number((await w.one('SELECT sum(step) AS n FROM state')).n), counts.calls, 'no transaction was lost');
  assert.doesNotMatch(w.cluster.log, /deadlock detected/);
  assert.equal(daemon.ended, null);
});

story('an open planner transaction holds back neither the daemon nor other planners', async (w) => {
  await w.start();
  const slow = await connect(w);
  const other = await connect(w);
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
    await w.desk.release('held');
  } finally {
    await slow.end();
    await other.end();
  }
  await w.settled('open', 60_000);
  await w.settled('held', 60_000);
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
