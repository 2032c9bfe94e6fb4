// The database came back on another timeline (failover, restore): what was open then may have been
// attempted on the one that is gone, so it is looked up before it is attempted.
import assert from 'node:assert/strict';
import { story } from './world.mjs';
import { eventually, providerKey, sleep } from './util.mjs';

// As a failover leaves it: what the outbox remembers is another place.
const elsewhere = (w) => w.db.query(`UPDATE outbox.setting SET value = '1:1:0000000A' WHERE name = 'timeline'`);

// An attempt that only the lost timeline knew of.
const doneBefore = (w, id) => fetch(`${w.desk.url}/tickets`, {
  method: 'POST',
  body: JSON.stringify({ title: `ticket ${id}`, external_ref: providerKey(id), operation_id: id }),
});

async function lookedUpFirst(w, ids) {
  for (const id of ids) {
    assert.deepEqual((await w.events(id)).slice(0, 2), ['timeline', 'probe'], id);
    const { requests } = await w.desk.state();
    const own = requests.filter((r) => r.key === providerKey(id) && r.header !== undefined || r.method === 'GET' && r.key === providerKey(id));
    assert.equal(own[0].method, 'GET', `${id} was attempted first`);
  }
}

story('started on another timeline: what was done is found, what was not runs once', async (w) => {
  const first = await w.start();
  await w.enqueue('early');
  await w.settled('early');
  assert.match((await w.one(`SELECT value FROM outbox.setting WHERE name = 'timeline'`)).value, /^\d+:\d+:[0-9A-F]{8}$/);
  await first.stop();

  const open = ['done', 'never', 'later'];
  await w.enqueue('done');
  await w.enqueue('never');
  await w.db.query(`INSERT INTO outbox.operation (operation_id, tool, arguments, run_at)
    VALUES ('later', 'create_ticket', '{"title": "ticket later"}', now() + interval '1 hour')`);
  await doneBefore(w, 'done');
  await elsewhere(w);
  const second = await w.start();
  assert.equal((await w.settled('done')).status, 'succeeded');
  const row = await w.settled('never');
  assert.deepEqual([row.status, row.attempts], ['succeeded', 1]);
  await w.settled('later');
  await lookedUpFirst(w, open);
  assert.equal((await w.events('done', 'timeline')).length, 1);
  assert.deepEqual(await w.events('early'), [], 'what had ended is left alone');
  assert.equal(await second.metric('outboxd_unknown_total', 'cause="timeline"'), 3);
  await w.enqueue('new');
  await w.settled('new');
  assert.deepEqual(await w.events('new'), []);
});

story('two running daemons that are cut off and come back to another timeline', async (w) => {
  const daemons = [await w.start(), await w.start()];
  const ids = Array.from({ length: 200 }, (_, i) => `op-${i}`);
  const client = await w.db.connect();
  // Nobody may lease between the commit and the end of the sessions that were checked before.
  await client.query(`SELECT outbox.pause_tool('create_ticket', 'failing over')`);
  await client.query('BEGIN');
  for (const id of ids) {
    await client.query(`INSERT INTO outbox.operation (operation_id, tool, arguments) VALUES ($1, 'create_ticket', $2)`,
      [id, JSON.stringify({ title: `ticket ${id}` })]);
  }
  await client.query(`UPDATE outbox.setting SET value = '1:1:0000000A' WHERE name = 'timeline'`);
  for (const id of ids.slice(0, 50)) await doneBefore(w, id);
  await client.query('COMMIT');
  await client.query(`SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
    WHERE application_name = 'outboxd' AND datname = current_database() AND pid <> pg_backend_pid()`);
  await client.query(`SELECT outbox.resume_tool('create_ticket')`);
  client.release();
  await w.allSettled(200, 60_000);
  const { n } = await w.one(`SELECT count(*)::int AS n FROM outbox.event WHERE kind = 'timeline'`);
  assert.equal(n, 200, 'each once');
  await lookedUpFirst(w, ids);
  let counted = 0;
  for (const daemon of daemons) counted += await daemon.metric('outboxd_unknown_total', 'cause="timeline"');
  assert.equal(counted, 200);
});

story('the offset of the clocks is measured', async (w) => {
  const daemon = await w.start();
  await eventually('it is', async () => (await daemon.ask('/metrics')).text.includes('outboxd_clock_offset_seconds{'));
  await sleep(200);
  assert.ok(Math.abs(await daemon.metric('outboxd_clock_offset_seconds')) < 1);
});
