// Many operations at once: two daemons, a Postgres that crashes, a daemon that is told to go.
import assert from 'node:assert/strict';
import { story } from './world.mjs';
import { eventually, sleep } from './util.mjs';

const bulk = (w, first, last) => w.db.query(
  `INSERT INTO outbox.operation (operation_id, tool, arguments)
   SELECT 'op-' || i, 'create_ticket', jsonb_build_object('title', 'ticket ' || i) FROM generate_series($1::int, $2::int) AS i
   ON CONFLICT DO NOTHING`, [first, last]);

async function eachOnce(w, count) {
  const tickets = new Map();
  for (const ticket of (await w.desk.state()).tickets) tickets.set(ticket.operation_id, (tickets.get(ticket.operation_id) ?? 0) + 1);
  assert.equal(tickets.size, count);
  assert.deepEqual([...tickets].filter(([, n]) => n !== 1), []);
  const { n } = await w.one(`SELECT count(*)::int AS n FROM outbox.operations WHERE status = 'succeeded'`);
  assert.equal(n, count);
}

story('two daemons on one database, 1,000 operations: each effect once', async (w) => {
  for (let i = 50; i <= 1000; i += 50) await w.desk.plan(`op-${i}`, { posts: [i % 100 ? 'cut' : 'drop'] });
  const daemons = [await w.start(), await w.start()];
  await Promise.all([bulk(w, 1, 500), bulk(w, 501, 1000)]);
  await w.allSettled(1000, 90_000);
  await eachOnce(w, 1000);
  const shares = [];
  for (const daemon of daemons) shares.push(await daemon.metric('outboxd_attempts_total', 'create_ticket'));
  assert.ok(shares.every((n) => n > 0), `both worked: ${shares}`);
});

story('Postgres crashes three times under load: the daemon goes on by itself', async (w) => {
  const daemon = await w.start();
  const total = 600;
  // A planner with the retry every client of a database needs: the same id again is the same intent.
  const planner = (async () => {
    for (let i = 1; i <= total; i += 5) {
      await eventually(`op-${i} is filed`, () => bulk(w, i, i + 4), 60_000);
      await sleep(40);
    }
  })();
  for (let i = 0; i < 3; i++) {
    await sleep(1200);
    await w.cluster.restart();
  }
  await planner;
  await w.allSettled(total, 90_000);
  await eachOnce(w, total);
  assert.equal(daemon.ended, null, 'the same process all along');
  assert.equal((await daemon.ask('/readyz')).status, 200);
}, { timeout: 240_000 });

story('SIGTERM: what runs is finished and recorded, the rest stays pending', async (w) => {
  for (let i = 1; i <= 20; i++) await w.desk.plan(`op-${i}`, { posts: ['slow'] });
  const daemon = await w.start({ worker: { concurrency: 4 }, defaults: { timeout: '10s' } });
  await bulk(w, 1, 20);
  await eventually('four are running', async () => (await w.desk.state()).tickets.length >= 4);
  assert.deepEqual(await daemon.stop(10_000), { code: 0, signal: null });

  const done = (await w.desk.state()).tickets.length;
  assert.ok(done <= 8, `it stopped leasing, ${done} were sent`);
  const { rows } = await w.db.query('SELECT status, count(*)::int AS n FROM outbox.operations GROUP BY 1');
  const counts = Object.fromEntries(rows.map((r) => [r.status, r.n]));
  assert.deepEqual(counts, { succeeded: done, pending: 20 - done });

  await w.start();
  await w.allSettled(20);
  await eachOnce(w, 20);
});

story('SIGTERM and an answer that does not come: cut at drain_timeout, unknown, found later', async (w) => {
  await w.desk.plan('stuck', { posts: ['hold'] });
  const daemon = await w.start({ worker: { drain_timeout: '500ms' }, defaults: { timeout: '20s' } });
  await w.enqueue('stuck');
  await eventually('the ticket exists', async () => (await w.desk.tickets('stuck')).length === 1);
  const { code } = await daemon.stop(10_000);
  assert.equal(code, 0);
  assert.equal((await w.get('stuck')).status, 'unknown');

  await w.start();
  const row = await w.settled('stuck');
  assert.deepEqual([row.status, row.attempts], ['succeeded', 1]);
  assert.equal((await w.desk.posts('stuck')).length, 1);
});
