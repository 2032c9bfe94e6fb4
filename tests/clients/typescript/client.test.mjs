// The TypeScript client on a plain `pg`: the harness sets PG* and POOLER_PORT. Run with node --test.
import assert from 'node:assert/strict';
import { after, before, beforeEach, test } from 'node:test';
import * as outbox from '../../../docs/clients/typescript/index.js';
import { encode } from '../../../docs/clients/typescript/json.js';
import pg from '../../e2e/pg.mjs';

const inAnHour = new Date(Date.now() + 3600_000);
let db;
let other;
let n = 0;
let id;

async function connect(more = {}) {
  const client = new pg.Client(more);
  client.on('error', () => {});
  await client.connect();
  return client;
}

before(async () => { db = await connect(); other = await connect(); });
after(async () => { await db.end(); await other.end(); });
beforeEach(() => { id = `ts-${n += 1}`; });

const channels = async (client = db) => (await client.query('SELECT pg_listening_channels() AS c')).rows.map((r) => r.c);

test('a call joins the caller\'s transaction', async () => {
  await db.query('BEGIN');
  const receipt = await outbox.enqueue(db, 'create_ticket', { title: 'no' }, { operationId: id });
  assert.deepEqual([receipt.status, receipt.replayed, receipt.final], ['pending', false, false]);
  assert.equal(await outbox.get(other, id), null);
  await db.query('ROLLBACK');
  assert.equal(await outbox.get(db, id), null);

  await db.query('BEGIN');
  await outbox.enqueue(db, 'create_ticket', { title: 'yes' }, { operationId: id });
  await db.query('COMMIT');
  const done = await outbox.wait(db, id, { timeoutMs: 60_000 });
  assert.deepEqual([done.status, done.final, done.tool, done.attempts], ['succeeded', true, 'create_ticket', 1]);
  assert.match(done.result.id, /^T-/);
  assert.ok(done.createdAt instanceof Date && done.finishedAt >= done.startedAt);
});

test('a pool is refused where a transaction is joined, and polled where it is not', async () => {
  const pool = new pg.Pool({ max: 1 });
  try {
    await assert.rejects(outbox.enqueue(pool, 'create_ticket', {}, { operationId: id }), /got a pool/);
    await assert.rejects(outbox.cancel(pool, id), /got a pool/);
    const client = await pool.connect();
    await outbox.enqueue(client, 'create_ticket', { title: 'x' }, { operationId: id });
    client.release();
    assert.equal((await outbox.wait(pool, id, { timeoutMs: 60_000 })).status, 'succeeded');
    assert.equal((await outbox.get(pool, id)).status, 'succeeded');
  } finally {
    await pool.end();
  }
});

test('no type parser of the caller matters', async () => {
  const client = await connect({ types: { getTypeParser: () => () => 'the caller\'s own' } });
  const receipt = await outbox.enqueue(db, 'create_ticket', { title: 'x' }, { operationId: id, runAt: inAnHour });
  assert.equal(receipt.status, 'scheduled');
  await client.query(`SET DateStyle = 'SQL, DMY'`);
  await assert.rejects(outbox.get(client, id), SyntaxError);  // text itself is replaced: nothing can help
  await client.end();
  const dated = await connect();
  await dated.query(`SET DateStyle = 'SQL, DMY'`);
  assert.equal((await outbox.get(dated, id)).createdAt.getTime(), receipt.createdAt.getTime());
  await dated.end();
});

test('the same call in one run is one operation', async () => {
  const first = await outbox.enqueue(db, 'create_ticket', { title: 'disk', n: 200 }, { runId: id });
  const again = await outbox.enqueue(db, 'create_ticket', { n: 200n, title: ' disk ', gone: undefined }, { runId: id });
  assert.deepEqual([again.operationId, first.replayed, again.replayed], [first.operationId, false, true]);
  assert.match(again.message, /Nothing was executed again/);
  assert.equal(outbox.forModel(again).message, again.message);
  const second = await outbox.enqueue(db, 'create_ticket', { title: 'disk', n: 200 }, { runId: id, occurrence: 2 });
  const tuesday = await outbox.enqueue(db, 'create_ticket', { title: 'disk', n: 200 }, { runId: `${id}-tuesday` });
  assert.equal(new Set([first, second, tuesday].map((r) => r.operationId)).size, 3);
  await outbox.wait(db, first.operationId, { timeoutMs: 60_000 });
  const told = await outbox.enqueue(db, 'create_ticket', { title: 'disk', n: 200 }, { runId: id });
  assert.match(outbox.forModel(told).result.id, /^T-/);
});

test('the run comes from the context, and a tool may be a function', async () => {
  const createTicket = outbox.action('create_ticket');
  const inner = await outbox.withRun(id, async () => {
    assert.equal(outbox.currentRun(), id);
    return createTicket(db, { title: 'x' });
  });
  const explicit = await createTicket(db, { title: 'x' }, { runId: id });
  assert.deepEqual([explicit.operationId, explicit.replayed], [inner.operationId, true]);
  assert.equal(outbox.currentRun(), undefined);
  await assert.rejects(createTicket(db, { title: 'x' }), outbox.BadRequest);
  assert.throws(() => outbox.withRun('', () => {}), TypeError);
  await assert.rejects(createTicket(db, { title: 'x' }, { run_id: id }), /no option run_id/);
});

test('failed means no effect and may be armed again', async () => {
  const call = (more) => outbox.enqueue(db, 'create_ticket', { title: 'rude' }, { operationId: 'ts-refused', ...more });
  await call();
  const failed = await outbox.wait(db, 'ts-refused', { timeoutMs: 60_000 });
  assert.deepEqual([failed.status, failed.error.code], ['failed', 'rude_title']);
  assert.equal(outbox.forModel(await call()).error.code, 'rude_title');
  const armed = await call({ retryFailed: true });
  assert.deepEqual([armed.replayed, armed.status], [false, 'pending']);
  assert.equal((await outbox.wait(db, 'ts-refused', { timeoutMs: 60_000 })).status, 'succeeded');
});

test('many are all or none, in the order of the request', async () => {
  const receipts = await outbox.withRun(id, () => outbox.enqueueMany(db, [
    { tool: 'create_ticket', arguments: { title: 'b' } },
    { tool: 'create_ticket', arguments: { title: 'a' }, runAt: inAnHour, labels: { team: 'x' }, priority: -3 },
    { tool: 'create_ticket', arguments: { title: 'b' } },
  ]));
  assert.deepEqual(receipts.map((r) => r.replayed), [false, false, true]);
  assert.equal(receipts[1].status, 'scheduled');
  assert.deepEqual(await outbox.enqueueMany(db, []), []);
  await assert.rejects(outbox.enqueueMany(db, [{ tool: 'create_ticket', operationId: id }, { tool: 'create_ticket' }]),
    (error) => error instanceof outbox.BadRequest && error.detail.includes('requests[1]'));
  assert.equal(await outbox.get(db, id), null);
});

test('what the outbox refuses has a class, a detail and a hint', async () => {
  const refused = async (kind, code, tool, args, options) => {
    const error = await outbox.enqueue(db, tool, args, options).then(() => assert.fail('not refused'), (e) => e);
    assert.ok(error instanceof kind && error instanceof outbox.OutboxError, error);
    assert.equal(error.code, code);
    assert.ok(error.detail && error.hint && error.cause);
    return error;
  };
  await refused(outbox.BadRequest, 'OB400', 'create_ticket', {});
  assert.match((await refused(outbox.UnknownTool, 'OB404', 'create_tickets', {}, { operationId: id })).hint, /create_ticket/);
  await refused(outbox.TooLarge, 'OB413', 'create_ticket', { title: 'x'.repeat(1_100_000) }, { operationId: id });
  await outbox.enqueue(db, 'create_ticket', { title: 'one' }, { operationId: id });
  await refused(outbox.IdConflict, 'OB422', 'create_ticket', { title: 'two' }, { operationId: id });
});

test('cancel', async () => {
  await outbox.enqueue(db, 'create_ticket', { title: 'x' }, { operationId: id, runAt: inAnHour });
  assert.equal(await outbox.cancel(db, id, 'no longer'), 'cancelled');
  assert.equal(await outbox.cancel(db, id), 'already_cancelled');
  assert.equal(await outbox.cancel(db, 'ts-nobody'), 'not_found');
});

test('compensate', async () => {
  id = 'ts-undo';
  await outbox.enqueue(db, 'create_ticket', { title: 'x' }, { operationId: id });
  const done = await outbox.wait(db, id, { timeoutMs: 60_000 });
  const undo = await outbox.compensate(db, id, { name: 'close', arguments: { note: 'ts' }, reason: 'a mistake' });
  assert.deepEqual([undo.operationId, undo.replayed, undo.status], [`${id}:compensate:close`, false, 'pending']);
  const closed = await outbox.wait(db, undo.operationId, { timeoutMs: 60_000 });
  assert.deepEqual([closed.status, closed.result, closed.compensates], ['succeeded', { state: 'closed' }, id]);
  const again = await outbox.compensate(db, id, { arguments: { note: 'ts' } });  // the only one needs no name
  assert.deepEqual([again.operationId, again.replayed, again.result], [undo.operationId, true, closed.result]);
  assert.equal((await outbox.get(db, id)).compensatedBy, undo.operationId);
  const replay = await outbox.enqueue(db, 'create_ticket', { title: 'x' }, { operationId: id });
  assert.deepEqual([replay.replayed, replay.result], [true, done.result]);
  assert.match(replay.message, /then undone/);
  await assert.rejects(outbox.compensate(db, id, { name: 'close', arguments: { note: 'another' } }), outbox.IdConflict);
  await assert.rejects(outbox.compensate(new pg.Pool(), id), /got a pool/);
});

test('nothing to compensate', async () => {
  await outbox.enqueue(db, 'create_ticket', { title: 'x' }, { operationId: id, runAt: inAnHour });
  const instead = await outbox.compensate(db, id, { name: 'close' });
  assert.deepEqual([instead.operationId, instead.status, instead.replayed], [id, 'cancelled', false]);
  const nothing = await outbox.compensate(db, id, { name: 'close' });
  assert.deepEqual([nothing.operationId, nothing.status, nothing.replayed], [id, 'cancelled', true]);
  assert.match(nothing.message, /nothing to compensate/);
  assert.equal(await outbox.get(db, `${id}:compensate:close`), null);
});

test('a compensation that is not there', async () => {
  await outbox.enqueue(db, 'create_ticket', { title: 'x' }, { operationId: id });
  for (const [original, name, message, hint] of [
    [id, 'clsoe', /tool "create_ticket" has no compensation "clsoe"/, /Did you mean "close"/],
    ['ts-nobody', 'close', /there is no operation "ts-nobody"/, /operation_id that enqueue returned/],
  ]) {
    await assert.rejects(outbox.compensate(db, original, { name }), (error) => {
      assert.ok(error instanceof outbox.UnknownTool, error);
      assert.match(error.message, message);
      assert.ok(error.detail);
      assert.match(error.hint, hint);
      return true;
    });
  }
});

test('what is not JSON is refused with its place before anything is sent', async () => {
  await db.query('BEGIN');
  for (const [value, place] of [
    [{ a: [1, { when: new Date() }] }, /arguments\.a\[1\]\.when is a Date/], [{ a: NaN }, /arguments\.a is NaN/], [{ a: new Map() }, /a is a Map/],
    [{ a: () => 1 }, /function/], [{ a: 'x\0' }, /NUL/], [{ a: '\ud800' }, /surrogate/], [['a'], /must be an object/], [{ a: [undefined] }, /a\[0\]/],
  ]) await assert.rejects(outbox.enqueue(db, 'create_ticket', value, { operationId: id }), place);
  await db.query('SELECT 1');  // the transaction is alive
  await db.query('ROLLBACK');
  const value = { a: 'a"\\\n\u2028é😀', n: [null, true, 0.1, -0], big: 2n ** 70n };
  assert.equal(encode(value), '{"a":"a\\"\\\\\\n\u2028é😀","n":[null,true,0.1,0],"big":1180591620717411303424}');
});

test('running out of time raises nothing', async () => {
  await outbox.enqueue(db, 'create_ticket', { title: 'x' }, { operationId: id, runAt: inAnHour });
  const seen = await outbox.wait(db, id, { timeoutMs: 300 });
  assert.deepEqual([seen.status, seen.final], ['scheduled', false]);
  assert.equal((await outbox.wait(db, id, { timeoutMs: 0 })).status, 'scheduled');
  assert.equal(await outbox.wait(db, 'ts-nobody', { timeoutMs: 100 }), null);
});

test('waiting inside an open transaction is an error that says so', async () => {
  await db.query('BEGIN');
  await outbox.enqueue(db, 'create_ticket', { title: 'x' }, { operationId: id });
  await assert.rejects(outbox.wait(db, id), outbox.InTransaction);
  await db.query('COMMIT');
  assert.equal((await outbox.wait(db, id, { timeoutMs: 60_000 })).status, 'succeeded');
  for (const begin of ['BEGIN', 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY']) {
    await db.query(begin);
    await assert.rejects(outbox.wait(db, id), /COMMIT first/);
    await db.query('COMMIT');
  }
});

test('it is woken by LISTEN, two at once, and leaves the session as it was', async () => {
  const runAt = new Date(Date.now() + 1000);
  await outbox.enqueue(db, 'create_ticket', { title: 'x' }, { operationId: id, runAt });
  await outbox.enqueue(db, 'create_ticket', { title: 'x' }, { operationId: `${id}b`, runAt: new Date(Date.now() + 2500) });
  const real = globalThis.setTimeout;
  globalThis.setTimeout = (work) => real(work, 60_000);  // only a notification ends a pause early
  let seen;
  try {
    seen = await Promise.all([outbox.wait(db, id, { timeoutMs: 50_000 }), outbox.wait(db, `${id}b`, { timeoutMs: 50_000 })]);
  } finally {
    globalThis.setTimeout = real;
  }
  assert.deepEqual(seen.map((s) => s.status), ['succeeded', 'succeeded']);
  assert.ok(seen.every((s) => Date.now() - s.finishedAt < 40_000));
  assert.deepEqual(await channels(), []);
  assert.equal(db.listenerCount('notification'), 0);

  await db.query('LISTEN outbox_done');  // a caller's own stays
  await outbox.wait(db, id);
  assert.deepEqual(await channels(), ['outbox_done']);
  await db.query('UNLISTEN *');
});

test('behind a pooler it polls', async () => {
  const client = await connect({ port: Number(process.env.POOLER_PORT) });
  for (let i = 0; i < 10; i += 1) await outbox.enqueue(client, 'create_ticket', { title: 'x' }, { operationId: id });
  assert.equal((await outbox.wait(client, id, { timeoutMs: 60_000, pollMs: 200 })).status, 'succeeded');
  assert.deepEqual(await channels(client), []);
  await client.end();
});

test('a lost connection is an error', async () => {
  const client = await connect();
  const lost = assert.rejects(outbox.wait(client, 'ts-nobody', { timeoutMs: 50_000 }));
  await other.query('SELECT pg_terminate_backend($1)', [client.processID]);
  await lost;
});

test('serialization failures and deadlocks are tried again, then given up', async () => {
  for (const code of ['40001', '40P01']) {
    let tries = 0;
    const receipt = await outbox.retryTransaction(db, async (client) => {
      tries += 1;
      const answer = await outbox.enqueue(client, 'create_ticket', { title: code }, { operationId: `ts-retry-${code}` });
      if (tries < 3) await client.query(`DO $$ BEGIN RAISE SQLSTATE '${code}'; END $$`);
      return answer;
    }, { isolation: 'serializable' });
    assert.deepEqual([tries, receipt.replayed], [3, false]);
  }
  const always = (client) => client.query(`DO $$ BEGIN RAISE SQLSTATE '40001'; END $$`);
  await assert.rejects(outbox.retryTransaction(db, always, { attempts: 2 }), { code: '40001' });
  await db.query('BEGIN');
  await assert.rejects(outbox.retryTransaction(db, always), outbox.InTransaction);
  await db.query('ROLLBACK');
});
