// Arguments against the tool's schema, and the figures for people: what was enqueued and replayed.
import assert from 'node:assert/strict';
import { story } from './world.mjs';
import { eventually } from './util.mjs';

const row = (w, id) => w.db.query('SELECT status, attempts, attention, coalesce(error, last_error) AS error FROM outbox.operations WHERE operation_id = $1', [id])
  .then((answer) => answer.rows[0]);

story('arguments that do not fit the schema fail before anything is sent, also when armed again', async (w) => {
  await w.start();
  await w.db.query("SELECT outbox.enqueue('create_ticket', '{\"title\": 5}', operation_id => 'odd')");
  await eventually('it failed', async () => (await row(w, 'odd')).status === 'failed');
  const failed = await row(w, 'odd');
  assert.equal(failed.error.code, 'invalid_arguments');
  assert.match(failed.error.message, /at "\/title": expected string, not number/);
  assert.equal(failed.attempts, 0, 'nothing was sent');
  await w.db.query("SELECT outbox.retry('odd', 'to see whether it is checked again')");
  await eventually('it failed again', async () => (await w.db.query(
    "SELECT count(*)::int AS n FROM outbox.event WHERE operation_id = 'odd' AND kind = 'failed'")).rows[0].n === 2);
  assert.deepEqual(await w.desk.posts('odd'), []);
});

story('the replay rate: two daemons count each enqueue and each replay once, between them', async (w) => {
  const daemons = [await w.start(), await w.start()];
  for (const id of ['a', 'b', 'a', 'a', 'b']) await w.enqueue(id);
  const sum = async (name) => (await Promise.all(daemons.map((d) => d.metric(name, 'tool="create_ticket"')))).reduce((x, y) => x + y, 0);
  await eventually('everything is counted', async () => await sum('outboxd_enqueued_total') === 2 && await sum('outboxd_replayed_total') === 3, 60_000);
  const stats = (await w.cli('stats', '--json')).text.trim().split('\n').map((line) => JSON.parse(line));
  const own = stats.find((s) => s.tool === 'create_ticket' && s.status === null);
  assert.deepEqual([own.enqueued_1h, own.replayed_1h, own.replay_rate_1h, own.replay_rate_30d], [2, 3, 0.6, 0.6]);
  assert.match((await w.cli('stats')).text, /^tool +status +count +oldest_age +enqueued_1h/);
});
