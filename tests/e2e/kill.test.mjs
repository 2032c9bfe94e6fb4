// SIGKILL at the worst places, on a Postgres with fsync: one effect each, and the right verdict.
import assert from 'node:assert/strict';
import path from 'node:path';
import { story } from './world.mjs';
import { eventually, sleep } from './util.mjs';

const paused = (w, name) => `${name}=pause:${path.join(w.dir, 'go')}`;

story('killed before dispatch: nothing was sent, the next daemon sends it once', async (w) => {
  const first = await w.start({ failpoints: paused(w, 'after_lease_before_dispatch') });
  await w.enqueue('before');
  await w.until('before', ['attempting']);
  await sleep(200);
  await first.kill();
  assert.equal((await w.desk.posts('before')).length, 0);

  await w.start();
  const row = await w.settled('before');
  assert.deepEqual([row.status, row.attempts], ['succeeded', 2]);
  assert.equal((await w.desk.tickets('before')).length, 1);
  const kinds = await w.events('before');
  assert.ok(kinds.includes('lease_expired'), `${kinds}`);
  assert.ok((await w.events('before', 'probe')).some((e) => e.detail.verdict === 'absent'), 'the desk was asked first');
});

story('killed after the effect and before the record: found, not repeated', async (w) => {
  const first = await w.start({ failpoints: paused(w, 'after_effect_before_complete') });
  await w.enqueue('after');
  await eventually('the ticket exists', async () => (await w.desk.tickets('after')).length === 1);
  await sleep(200);
  await first.kill();
  assert.equal((await w.get('after')).status, 'attempting');

  await w.start();
  const row = await w.settled('after');
  assert.deepEqual([row.status, row.attempts, row.result], ['succeeded', 1, { id: 'T-1' }]);
  assert.equal((await w.desk.posts('after')).length, 1);
  assert.ok((await w.events('after')).includes('lease_expired'));
});

story('killed while completing, before the statement: found, not repeated', async (w) => {
  const first = await w.start({ failpoints: paused(w, 'before_complete') });
  for (let i = 0; i < 20; i++) await w.enqueue(`batch-${i}`);
  await eventually('the tickets exist', async () => (await w.desk.state()).tickets.length === 20);
  await sleep(200);
  await first.kill();

  await w.start();
  await w.allSettled(20);
  assert.equal((await w.desk.state()).tickets.length, 20);
  const { n } = await w.one(`SELECT count(*)::int AS n FROM outbox.operations WHERE status = 'succeeded' AND attempts = 1`);
  assert.equal(n, 20);
});

story('killed while completing, after the commit: the record stands, nothing is asked', async (w) => {
  const first = await w.start({ failpoints: paused(w, 'after_complete_before_ack') });
  await w.enqueue('acked');
  await w.settled('acked');
  await first.kill();

  await w.start();
  await sleep(1500);
  const row = await w.get('acked');
  assert.deepEqual([row.status, row.attempts], ['succeeded', 1]);
  assert.equal((await w.desk.posts('acked')).length, 1);
  assert.equal((await w.desk.looks('acked')).length, 0);
  assert.deepEqual(await w.events('acked'), [], 'the clean path writes no event');
});

story('frozen until after the deadline, before the first byte: nothing is sent late', async (w) => {
  await w.start({ failpoints: 'before_first_byte=delay:2400ms*1' });
  await w.enqueue('late');
  const row = await w.settled('late');
  assert.deepEqual([row.status, row.attempts], ['succeeded', 1], 'not sent gives the attempt back');
  assert.equal((await w.desk.posts('late')).length, 1);
  const kinds = await w.events('late');
  assert.ok(kinds.includes('retry') && !kinds.includes('unknown'), `${kinds}`);
});

story('frozen after the effect: the other daemon settles it, the late answer is evidence', async (w) => {
  await w.desk.plan('frozen', { posts: ['hold'] });
  const first = await w.start();
  await w.enqueue('frozen');
  await eventually('the ticket exists', async () => (await w.desk.tickets('frozen')).length === 1);
  process.kill(first.pid, 'SIGSTOP');
  await w.start();
  const row = await w.settled('frozen');
  assert.deepEqual([row.status, row.attempts, row.result], ['succeeded', 1, { id: 'T-1' }]);

  await w.desk.release('frozen');
  await sleep(300);
  process.kill(first.pid, 'SIGCONT');
  await eventually('its answer is evidence', async () => (await w.events('frozen')).includes('late_result'));
  const after = await w.get('frozen');
  assert.deepEqual([after.status, after.attempts, after.result, after.attention], ['succeeded', 1, { id: 'T-1' }, null]);
  assert.equal((await w.desk.posts('frozen')).length, 1);
  assert.ok(await first.metric('outboxd_fenced_writes_total') >= 1);
});

// What the one before left behind is never taken for its own: a start has nothing in common with it,
// not even with the same configuration on the same machine.
story('every start is a worker of its own, with a fresh UUID', async (w) => {
  const seen = new Map();
  for (const [i, end] of ['kill', 'stop', 'kill', 'stay', 'stay'].entries()) {
    const daemon = await w.start();
    const worker = await eventually('it has told of itself', async () => {
      const { rows } = await w.db.query('SELECT worker FROM outbox.worker');
      return rows.map((row) => row.worker).find((id) => !seen.has(id));
    });
    seen.set(worker, end);
    assert.match(worker, /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    if (end !== 'stay') {
      await w.desk.plan(`of-${i}`, { posts: ['hold'] });
      await w.enqueue(`of-${i}`);
      await eventually('it leased under that id', async () => (await w.one(
        `SELECT q.leased_by FROM outbox.queue q JOIN outbox.operation o USING (seq) WHERE operation_id = $1`, [`of-${i}`]))?.leased_by === worker);
      await w.desk.release(`of-${i}`);
      await w.settled(`of-${i}`);
      await (end === 'kill' ? daemon.kill() : daemon.stop());
    }
  }
  assert.equal(seen.size, 5);
  const { rows } = await w.db.query('SELECT worker, stopped_at IS NULL AS lives FROM outbox.worker WHERE heartbeat_at > now() - interval \'15 s\'');
  for (const { worker, lives } of rows) assert.equal(lives, seen.get(worker) !== 'stop', worker);
});
