// The planner's side of the bargain with a real daemon: identity, transactions, hints and mischief.
import assert from 'node:assert/strict';
import pg from 'pg';
import { story } from './world.mjs';
import { eventually, sleep } from './util.mjs';

// A session of its own, as the planner role: not even RESET ROLE leads out of it.
async function planner(w) {
  const { host, port, database } = w.db.options;
  const client = new pg.Client({ host, port, user: 'postgres', database });
  client.on('error', () => {});
  await client.connect();
  await client.query('SET SESSION AUTHORIZATION outbox_planner');
  return client;
}

const call = async (client, argumentsText, more = '') => (await client.query(
  `SELECT * FROM outbox.enqueue('create_ticket', $1::jsonb, run_id => 'run-1'${more})`, [argumentsText])).rows[0];

async function state(promise) {
  try {
    await promise;
    return '00000';
  } catch (error) {
    return error.code;
  }
}

story('key order, white space and 200 / 200.0 are one effect; occurrence 2 and a new run are others', async (w) => {
  await w.start();
  const client = await planner(w);
  const first = await call(client, '{"title": "seal failure", "quantity": 200, "to": {"a": 1, "b": [1, 2]}}');
  assert.equal(first.replayed, false);
  await w.settled(first.operation_id);
  for (const again of [
    '{"quantity": 200, "title": "seal failure", "to": {"b": [1, 2], "a": 1}}',
    '{ "to":{"b":[1,2.0],"a":1e0},\n "title" :"seal failure", "quantity":200.0 }',
    '{"title": "  seal failure\\n", "quantity": 2e2, "to": {"a": 1.00, "b": [1, 2]}}',
    '{"title": "other", "title": "\\u0073eal failure\\u00a0", "quantity": 20.0e1, "to": {"a": 1, "b": [10e-1, 2]}}',
  ]) {
    const replay = await call(client, again);
    assert.deepEqual([replay.replayed, replay.operation_id, replay.status, replay.result],
      [true, first.operation_id, 'succeeded', { id: 'T-1' }], again);
  }
  const second = await call(client, '{"quantity": 200, "title": "seal failure", "to": {"a": 1, "b": [1, 2]}}', ', occurrence => 2');
  const { rows: [tuesday] } = await client.query(`SELECT * FROM outbox.enqueue('create_ticket',
    '{"title": "seal failure", "quantity": 200, "to": {"a": 1, "b": [1, 2]}}', run_id => 'run-2')`);
  for (const { replayed, operation_id: id } of [second, tuesday]) {
    assert.equal(replayed, false);
    assert.equal((await w.settled(id)).status, 'succeeded');
  }
  assert.equal((await w.desk.state()).tickets.length, 3);
  await client.end();
});

story('a duplicate never aborts its transaction; other arguments under an explicit id are OB422', async (w) => {
  await w.start();
  await w.db.query('CREATE TABLE step (n integer)');
  await w.enqueue('op-1');
  await w.settled('op-1');
  const client = await w.db.connect();
  for (const level of ['READ COMMITTED', 'REPEATABLE READ', 'SERIALIZABLE']) {
    await client.query(`BEGIN ISOLATION LEVEL ${level}`);
    await client.query('INSERT INTO step VALUES (1)');
    const { rows: [replay] } = await client.query(`SELECT * FROM outbox.enqueue('create_ticket', '{"title": "ticket op-1 "}', 'op-1')`);
    assert.deepEqual([replay.replayed, replay.status], [true, 'succeeded']);
    await client.query('COMMIT');
  }
  client.release();
  assert.equal((await w.one('SELECT count(*)::int AS n FROM step')).n, 3);
  await assert.rejects(w.enqueue('op-1', { args: { title: 'another' } }), (error) => {
    assert.equal(error.code, 'OB422');
    assert.ok(error.detail && error.hint, `${error.detail} ${error.hint}`);
    return true;
  });
  await sleep(300);
  assert.equal((await w.desk.posts('op-1')).length, 1);
});

story('what was rolled back never runs; what was kept runs once', async (w) => {
  await w.start();
  const client = await w.db.connect();
  const enqueue = (id) => client.query('SELECT outbox.enqueue($1, $2::jsonb, $3)', ['create_ticket', `{"title": "${id}"}`, id]);
  const insert = (id) => client.query('INSERT INTO outbox.operation (operation_id, tool, arguments) VALUES ($1, $2, $3)',
    [id, 'create_ticket', { title: id }]);
  await client.query('BEGIN');
  await enqueue('rolled-back');
  await client.query('ROLLBACK');
  await client.query('BEGIN');
  await enqueue('kept');
  await client.query('SAVEPOINT s');
  await enqueue('in-savepoint');
  await insert('in-savepoint-plain');
  await client.query('ROLLBACK TO s');
  await client.query('SAVEPOINT t');
  await insert('in-subtransaction');
  await client.query('RELEASE t');
  await client.query('COMMIT');
  client.release();
  for (const id of ['kept', 'in-subtransaction']) assert.equal((await w.settled(id)).status, 'succeeded');
  await sleep(1000);
  const { tickets } = await w.desk.state();
  assert.deepEqual(tickets.map((t) => t.operation_id).sort(), ['in-subtransaction', 'kept']);
});

story('two-phase commit: committed later it runs, rolled back it never does', async (w) => {
  await w.start();
  const client = await w.db.connect();
  const prepare = async (id) => {
    await client.query(`SET outbox.wakeup = 'off'`);
    await client.query('BEGIN');
    await client.query(`SELECT outbox.enqueue('create_ticket', $1::jsonb, $2)`, [`{"title": "${id}"}`, id]);
    await client.query(`PREPARE TRANSACTION '${id}'`);
  };
  await prepare('later');
  await prepare('never');
  client.release();
  await sleep(1000);
  assert.equal((await w.desk.state()).tickets.length, 0);
  await w.db.query(`ROLLBACK PREPARED 'never'`);
  await w.db.query(`COMMIT PREPARED 'later'`);
  assert.equal((await w.settled('later')).status, 'succeeded');
  await sleep(500);
  assert.equal(await w.get('never'), undefined);
  assert.deepEqual((await w.desk.state()).tickets.map((t) => t.operation_id), ['later']);
});

story('expires_at in the past ends as failed, expired, without an attempt; far dates do no harm', async (w) => {
  await w.start();
  const at = (id, run, expires) => w.db.query(
    `SELECT outbox.enqueue('create_ticket', $1::jsonb, $2, run_at => $3::timestamptz, expires_at => $4::timestamptz)`, [`{"title": "${id}"}`, id, run, expires]);
  await at('yesterday', null, new Date(Date.now() - 86_400_000));
  await at('antiquity', null, '4713-01-01 BC');
  await at('contradiction', '294276-01-01', '2000-01-01');
  await at('never-due', '294276-01-01', null);
  await at('never-expires', null, '294276-01-01');
  for (const id of ['yesterday', 'antiquity', 'contradiction']) {
    const row = await w.settled(id);
    assert.deepEqual([row.status, row.error.code, row.attempts], ['failed', 'expired', 0], id);
  }
  assert.equal((await w.settled('never-expires')).status, 'succeeded');
  assert.equal((await w.get('never-due')).status, 'scheduled');
  // Armed again it has no expiry any more.
  const retry = await w.one(`SELECT * FROM outbox.enqueue('create_ticket', '{"title": "yesterday"}', 'yesterday', retry_failed => true)`);
  assert.deepEqual([retry.replayed, retry.status], [false, 'pending']);
  assert.equal((await w.settled('yesterday')).status, 'succeeded');
  assert.deepEqual((await w.desk.state()).tickets.map((t) => t.operation_id).sort(), ['never-expires', 'yesterday']);
});

story('outbox_done names what ended, as a JSON array, when it can be read', async (w) => {
  await w.start();
  const ear = await planner(w);
  await ear.query('LISTEN outbox_done');
  const heard = new Set();
  const payloads = [];
  let unread = 0;
  const reads = [];
  ear.on('notification', ({ payload }) => {
    payloads.push(payload);
    for (const id of JSON.parse(payload)) {
      heard.add(id);
      // It is sent after the commit: get has the end already.
      reads.push(w.get(id).then((row) => { if (!['succeeded', 'failed', 'cancelled'].includes(row.status)) unread += 1; }));
    }
  });
  const ids = Array.from({ length: 150 }, (_, n) => `${'x'.repeat(150)}-"\\é-${n}`);
  await w.desk.plan(ids[0], { posts: ['refuse'] });
  await w.db.query(`INSERT INTO outbox.operation (operation_id, tool, arguments)
    SELECT id, 'create_ticket', '{"title": "many"}' FROM unnest($1::text[]) id`, [ids]);
  await w.allSettled(ids.length, 60_000);
  // Ends that come without an attempt: by a person, by a planner, by time.
  await w.db.query(`SELECT outbox.enqueue('create_ticket', operation_id => id, run_at => now() + interval '1 h') FROM unnest('{called-off,undone}'::text[]) id`);
  await w.db.query(`SELECT outbox.enqueue('create_ticket', operation_id => 'expired', expires_at => now() - interval '1 s')`);
  assert.equal((await w.cli('cancel', 'called-off')).code, 0);
  await ear.query(`SELECT outbox.cancel('undone')`);
  ids.push('called-off', 'undone', 'expired');
  await eventually('every end was announced', () => ids.every((id) => heard.has(id)), 30_000);
  await Promise.all(reads);
  assert.equal(unread, 0);
  for (const payload of payloads) assert.ok(Buffer.byteLength(payload) < 8000);
  await ear.end();
});

// All a planner can do with the wake-up lock is to cost time: others' commits send more NOTIFYs, or
// daemons fall back to the idle poll (here 200 ms). Work goes on.
for (const [what, sql] of [
  ['exclusive', `SELECT pg_advisory_lock(1869968504, hashtext('create_ticket'))`],
  ['shared', `SELECT pg_advisory_lock_shared(1869968504, hashtext('create_ticket'))`],
]) {
  story(`a planner that keeps the wake-up lock (${what}) starves nobody`, async (w) => {
    await w.migrate();
    w.migrated = true;
    const client = await planner(w);
    await client.query(sql);
    await w.start();
    await sleep(500);
    for (let n = 0; n < 5; n += 1) {
      await w.enqueue(`locked-${n}`);
      assert.equal((await w.settled(`locked-${n}`)).status, 'succeeded');
      await sleep(150);
    }
    await client.end();
  });
}

story('forged notifications and a stuck listener are harmless', async (w) => {
  const daemon = await w.start();
  const client = await planner(w);
  const forged = ['', 'no JSON', '["op-1"]', 'create_ticket', 'no_such_tool', '\u0001', '{}', 'x'.repeat(7999), '💥'];
  for (let n = 0; n < 200; n += 1) {
    for (const channel of ['outbox_wake', 'outbox_done', 'outbox']) {
      await client.query('SELECT pg_notify($1, $2)', [channel, forged[n % forged.length]]);
    }
  }
  // A listener in an open transaction reads nothing, and holds up nobody.
  await client.query('LISTEN outbox_done');
  await client.query('BEGIN');
  await client.query('SELECT 1');
  await w.enqueue('op-1');
  assert.equal((await w.settled('op-1')).status, 'succeeded');
  assert.equal(daemon.ended, null);
  await client.query('ROLLBACK');
  await client.end();
});

story('a planner that locks and dawdles holds up its own operations at most', async (w) => {
  await w.start();
  const client = await planner(w);
  for (const sql of [
    ...['ACCESS SHARE', 'ROW SHARE', 'ROW EXCLUSIVE', 'SHARE', 'EXCLUSIVE', 'ACCESS EXCLUSIVE']
      .flatMap((mode) => ['operation', 'queue', 'outcome', 'tool'].map((table) => `LOCK TABLE outbox.${table} IN ${mode} MODE`)),
    'SELECT operation_id FROM outbox.operation FOR UPDATE',
    'SELECT operation_id FROM outbox.operation FOR KEY SHARE',
    'SET ROLE outbox_owner', 'SET ROLE outbox_worker',
    'CREATE EVENT TRIGGER t ON ddl_command_end EXECUTE FUNCTION pg_notify()',
  ]) {
    await client.query('BEGIN');
    assert.equal(await state(client.query(sql)), '42501', sql);
    await client.query('ROLLBACK');
  }
  // One open transaction with everything it may do.
  await w.enqueue('cancelled-later', { args: { title: 'x' } });
  await w.settled('cancelled-later');
  await w.db.query(`SELECT outbox.enqueue('create_ticket', '{"title": "x"}', 'to-cancel', run_at => now() + interval '1 hour')`);
  await client.query('BEGIN');
  await client.query(`SET LOCAL lock_timeout = '1s'`);
  await client.query(`SELECT outbox.cancel('to-cancel'), outbox.enqueue('create_ticket', '{"title": "x"}', 'mine')`);
  await client.query(`SELECT outbox.cancel('cancelled-later')`);
  for (let n = 0; n < 3; n += 1) {
    await w.enqueue(`other-${n}`);
    assert.equal((await w.settled(`other-${n}`)).status, 'succeeded');
  }
  assert.equal((await w.get('to-cancel')).status, 'scheduled');
  await client.query('COMMIT');
  assert.equal((await w.get('to-cancel')).status, 'cancelled');
  assert.equal((await w.settled('mine')).status, 'succeeded');
  // A time-out of the planner's own ends its own statement only.
  await client.query(`SET statement_timeout = '1ms'`);
  await state(client.query(`SELECT outbox.enqueue_many((SELECT jsonb_agg(jsonb_build_object('tool', 'create_ticket',
    'operation_id', 'timed-' || n)) FROM generate_series(1, 5000) n))`));
  await client.query('RESET statement_timeout');
  assert.equal((await client.query(`SELECT count(*)::int AS n FROM outbox.operation WHERE operation_id LIKE 'timed-%'`)).rows[0].n, 0);
  await client.end();
});
