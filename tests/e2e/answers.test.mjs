// What the other side answers, and what becomes of it.
import assert from 'node:assert/strict';
import { story } from './world.mjs';
import { eventually, providerKey, sleep } from './util.mjs';

for (const [mode, what] of [['cut', 'the answer is lost'], ['error', 'a 500'], ['hang', 'a time-out']]) {
  story(`${what} after the effect: unknown, probed, succeeded`, async (w) => {
    await w.desk.plan(mode, { posts: [mode], look: 'error' });
    await w.start();
    await w.enqueue(mode);
    await w.until(mode, ['unknown']);
    const replay = await w.enqueue(mode);
    assert.deepEqual([replay.replayed, replay.status], [true, 'unknown']);
    assert.ok(replay.message.length > 0);

    await w.desk.plan(mode, { look: 'ok' });
    const row = await w.settled(mode);
    assert.deepEqual([row.status, row.attempts, row.result], ['succeeded', 1, { id: 'T-1' }]);
    assert.equal((await w.desk.posts(mode)).length, 1);
    const kinds = await w.events(mode);
    assert.ok(kinds.includes('unknown') && kinds.includes('probe'), `${kinds}`);
  });
}

story('the request is lost before the effect: absent is believed late, the same key goes again', async (w) => {
  await w.desk.plan('lost', { posts: ['drop'] });
  await w.start();
  await w.enqueue('lost');
  const row = await w.settled('lost');
  assert.deepEqual([row.status, row.attempts], ['succeeded', 2]);
  const [first, second] = await w.desk.posts('lost');
  assert.equal(first.key, providerKey('lost'));
  assert.equal(second.key, first.key);
  assert.equal(second.header, first.header);
  // Not before the hard deadline (2 s) and settle (1 s); the clocks of desk and database are one.
  assert.ok(second.at - first.at >= 2900, `sent again after ${second.at - first.at} ms`);
});

story('connect refused: retried without a probe, and without using up attempts', async (w) => {
  await w.desk.stop();
  await w.start();
  await w.enqueue('down');
  await eventually('three retries', async () => (await w.events('down', 'retry')).length >= 3);
  const waiting = await w.get('down');
  assert.ok(['scheduled', 'pending', 'attempting'].includes(waiting.status), waiting.status);

  const desk = await w.startDesk({ port: w.desk.port, journal: 0 });
  const row = await w.settled('down');
  assert.deepEqual([row.status, row.attempts], ['succeeded', 1]);
  assert.equal((await desk.posts('down')).length, 1);
  assert.equal((await desk.looks('down')).length, 0, 'nothing to ask: not a byte had left');
  const kinds = await w.events('down');
  assert.ok(!kinds.includes('unknown') && !kinds.includes('probe'), `${kinds}`);
});

story('refused (422): failed with code and message; retry_failed arms it again, one effect', async (w) => {
  await w.desk.plan('rude', { posts: ['refuse'] });
  await w.start();
  await w.enqueue('rude');
  const failed = await w.settled('rude');
  assert.equal(failed.status, 'failed');
  assert.deepEqual([failed.error.code, failed.error.message], ['rude_title', 'The title is rude.']);
  const replay = await w.enqueue('rude');
  assert.deepEqual([replay.replayed, replay.status, replay.error.code], [true, 'failed', 'rude_title']);
  assert.equal((await w.desk.posts('rude')).length, 1, 'a replay executes nothing');

  const again = await w.enqueue('rude', { retryFailed: true });
  assert.deepEqual([again.replayed, again.status], [false, 'pending']);
  const row = await w.settled('rude');
  assert.equal(row.status, 'succeeded');
  assert.equal((await w.desk.tickets('rude')).length, 1);
  assert.ok((await w.events('rude')).includes('retried'));
});

story('busy (429): waits as told, and the attempt is given back', async (w) => {
  await w.desk.plan('busy', { posts: ['busy', 'busy'] });
  await w.start();
  await w.enqueue('busy');
  const row = await w.settled('busy');
  assert.deepEqual([row.status, row.attempts], ['succeeded', 1]);
  const posts = await w.desk.posts('busy');
  assert.equal(posts.length, 3);
  assert.ok(posts[1].at - posts[0].at >= 950, 'Retry-After: 1');
});

story('a transaction that rolls back leaves nothing; a cancelled one is not run', async (w) => {
  await w.start();
  const client = await w.db.connect();
  await client.query('BEGIN');
  await client.query(`SELECT outbox.enqueue('create_ticket', '{"title": "no"}', 'rolled-back')`);
  await client.query(`INSERT INTO outbox.operation (operation_id, tool, arguments) VALUES ('rolled-back-2', 'create_ticket', '{"title": "no"}')`);
  await client.query('ROLLBACK');
  await client.query(`SELECT outbox.enqueue('create_ticket', '{"title": "later"}', 'cancelled', run_at => now() + interval '1 hour')`);
  const { cancel } = (await client.query(`SELECT outbox.cancel('cancelled', 'changed my mind')`)).rows[0];
  client.release();
  assert.equal(cancel, 'cancelled');
  await w.enqueue('marker');
  await w.settled('marker');
  await sleep(1000);
  const { tickets, requests } = await w.desk.state();
  assert.deepEqual(tickets.map((t) => t.operation_id), ['marker']);
  assert.equal(requests.length, 1);
  assert.equal(await w.get('rolled-back'), undefined);
});
