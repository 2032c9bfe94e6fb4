// The tests the seeds name, word for word, on the whole path.
import assert from 'node:assert/strict';
import { story } from './world.mjs';
import { sleep } from './util.mjs';

const call = (w, title, run, occurrence = 1) => w.one(
  `SELECT * FROM outbox.enqueue('create_ticket', $1::jsonb, run_id => $2, occurrence => $3)`,
  [JSON.stringify({ title }), run, occurrence]);

story('a retried call produces one effect', async (w) => {
  await w.start();
  const first = await call(w, 'seal failure', 'run-1');
  await w.settled(first.operation_id);
  const second = await call(w, 'seal failure', 'run-1');
  assert.deepEqual([first.replayed, second.replayed], [false, true]);
  assert.equal(second.operation_id, first.operation_id);
  assert.deepEqual([second.status, second.result], ['succeeded', { id: 'T-1' }]);
  assert.match(second.message, /already/);
  await sleep(500);
  assert.equal((await w.desk.state()).tickets.length, 1);
});

story('argument order does not change the key', async (w) => {
  await w.start();
  const key = (text) => w.one(`SELECT outbox.operation_key('t', $1::jsonb, 'r') AS key`, [text]);
  assert.deepEqual(await key('{"sku": "SKU-4411", "quantity": 200}'), await key('{"quantity": 200, "sku": " SKU-4411\\n"}'));
  assert.notDeepEqual(await key('{"quantity": 200}'), await key('{"quantity": 201}'));
});

// A key with a timestamp in it would be unique, and therefore useless.
story('the same request produces the same key', async (w) => {
  await w.start();
  const derive = () => w.one(`SELECT outbox.derive_id('create_ticket', '{"sku": "SKU-4411"}', 'r1') AS key, pg_sleep(0.01)`);
  const first = await derive();
  assert.deepEqual(await derive(), first);
  const { code, text } = await w.cli('key', '--tool', 'create_ticket', '--run-id', 'r1', '--arguments', '{"sku": "SKU-4411"}');
  assert.deepEqual([code, text.trim()], [0, first.key]);
});

// Monday's ticket and Tuesday's ticket for a recurring fault are two tickets.
story('a new run is a new intent', async (w) => {
  await w.start();
  const monday = await call(w, 'seal failure', 'monday');
  const tuesday = await call(w, 'seal failure', 'tuesday');
  assert.notEqual(monday.operation_id, tuesday.operation_id);
  for (const { operation_id: id } of [monday, tuesday]) assert.equal((await w.settled(id)).status, 'succeeded');
  assert.equal((await w.desk.state()).tickets.length, 2);
});

story('a second intended call in one run says so with occurrence', async (w) => {
  await w.start();
  const first = await call(w, 'pump noise', 'run-1');
  const second = await call(w, 'pump noise', 'run-1', 2);
  assert.notEqual(first.operation_id, second.operation_id);
  for (const { operation_id: id } of [first, second]) await w.settled(id);
  assert.equal((await w.desk.state()).tickets.length, 2);
});

story('failure not recorded, retry completes', async (w) => {
  await w.start();
  await w.desk.plan('order-99', { posts: ['refuse'] });
  await w.enqueue('order-99');
  assert.equal((await w.settled('order-99')).status, 'failed');
  assert.equal((await w.desk.tickets('order-99')).length, 0, 'it moved nothing, so it is free to run');
  const retry = await w.enqueue('order-99', { retryFailed: true });
  assert.equal(retry.replayed, false);
  assert.equal((await w.settled('order-99')).status, 'succeeded');
  assert.equal((await w.enqueue('order-99')).replayed, true);
  assert.equal((await w.desk.tickets('order-99')).length, 1);
});

story('in progress is neither done nor failed: do not send it again', async (w) => {
  await w.desk.plan('slow', { posts: ['hold'] });
  await w.start({ defaults: { timeout: '20s' } });
  await w.enqueue('slow');
  await w.until('slow', ['attempting']);
  const replay = await w.enqueue('slow');
  assert.deepEqual([replay.replayed, replay.status, replay.result, replay.error], [true, 'attempting', null, null]);
  assert.ok(replay.message);
  await sleep(300);
  await w.desk.release('slow');
  assert.equal((await w.settled('slow')).status, 'succeeded');
  assert.equal((await w.desk.posts('slow')).length, 1);
});
