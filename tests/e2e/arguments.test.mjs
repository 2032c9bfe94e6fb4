// Arguments against the tool's schema.
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
