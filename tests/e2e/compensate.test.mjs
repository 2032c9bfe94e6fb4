// Compensations with a real daemon: at most one effect, and never without one to undo.
import assert from 'node:assert/strict';
import path from 'node:path';
import { story } from './world.mjs';
import { closableTool } from './config.mjs';
import { eventually, sleep } from './util.mjs';

const paused = (w, name) => `${name}=pause:${path.join(w.dir, 'go')}`;
const tools = (w) => ({ create_ticket: closableTool(w.desk.url) });
const undo = (id) => `${id}:compensate:close`;

story('a ticket is closed by its compensation, once, however often it is asked for', async (w) => {
  const daemon = await w.start({ tools: tools(w) });
  await w.enqueue('twice');
  await w.settled('twice');
  const answers = await Promise.all(Array.from({ length: 5 }, () => w.compensate('twice', 'close', { note: 'wrong queue' }, 'by mistake')));
  assert.deepEqual(answers.map((a) => a.operation_id), Array(5).fill(undo('twice')));
  assert.equal(answers.filter((a) => !a.replayed).length, 1);
  const row = await w.settled(undo('twice'));
  assert.deepEqual([row.status, row.attempts, row.result, row.compensates], ['succeeded', 1, { state: 'closed' }, 'twice']);
  const [close, ...more] = await w.desk.closes(undo('twice'));
  assert.deepEqual([close.closes, close.note, close.title, close.of, more.length], ['T-1', 'wrong queue', 'ticket twice', 'twice', 0]);

  // Who sends the original again learns of it; nothing happens.
  const replay = await w.enqueue('twice');
  assert.deepEqual([replay.replayed, replay.status, replay.compensated_by], [true, 'succeeded', undo('twice')]);
  assert.match(replay.message, /then undone/);
  const again = await w.compensate('twice', null, { note: 'wrong queue' });
  assert.deepEqual([again.replayed, again.status, again.result], [true, 'succeeded', { state: 'closed' }]);
  await sleep(500);
  assert.equal((await w.desk.state()).closes.length, 1);
  assert.equal((await w.desk.posts('twice')).length, 1);
  assert.equal(await daemon.metric('outboxd_attempts_total', 'tool="create_ticket:close"'), 1);
});

story('asked for while the original is in doubt: it waits, and is done once that has happened', async (w) => {
  const first = await w.start({ tools: tools(w), failpoints: paused(w, 'after_effect_before_complete') });
  await w.enqueue('doubt');
  await eventually('the ticket exists', async () => (await w.desk.tickets('doubt')).length === 1);
  const answer = await w.compensate('doubt', 'close');
  assert.deepEqual([answer.status, answer.replayed], ['scheduled', false]);
  assert.match((await w.get('doubt')).message, /will undo it/);
  await first.kill();
  assert.equal((await w.desk.state()).closes.length, 0);

  await w.start({ tools: tools(w) });
  assert.equal((await w.settled('doubt')).status, 'succeeded');
  assert.equal((await w.settled(undo('doubt'))).status, 'succeeded');
  assert.equal((await w.desk.tickets('doubt')).length, 1);
  assert.equal((await w.desk.closes(undo('doubt'))).length, 1);
});

story('killed after the compensation and before its record: found, not repeated', async (w) => {
  const first = await w.start({ tools: tools(w) });
  await w.enqueue('killed');
  await w.settled('killed');
  await first.stop();
  const second = await w.start({ tools: tools(w), failpoints: paused(w, 'after_effect_before_complete') });
  await w.compensate('killed', 'close');
  await eventually('it is closed', async () => (await w.desk.closes(undo('killed'))).length === 1);
  await second.kill();
  assert.equal((await w.get(undo('killed'))).status, 'attempting');

  await w.start({ tools: tools(w) });
  const row = await w.settled(undo('killed'));
  assert.deepEqual([row.status, row.attempts, row.result], ['succeeded', 1, { state: 'closed' }]);
  assert.ok((await w.events(undo('killed'), 'probe')).some((e) => e.detail.verdict === 'found'));
  assert.equal((await w.desk.closes(undo('killed'))).length, 1);
});

story('what has not run yet is cancelled instead, and never runs', async (w) => {
  const first = await w.start({ tools: tools(w) });
  await first.stop();
  await w.enqueue('early');
  const answer = await w.compensate('early', 'close');
  assert.deepEqual([answer.operation_id, answer.status, answer.replayed], ['early', 'cancelled', false]);
  await w.start({ tools: tools(w) });
  await w.enqueue('marker');
  await w.settled('marker');
  await sleep(500);
  assert.equal((await w.desk.posts('early')).length, 0);
  assert.equal(await w.get(undo('early')), undefined);
});

story('an original that did not happen is not made to happen only to be undone', async (w) => {
  await w.desk.plan('lost', { posts: ['drop'] });
  await w.start({ tools: tools(w) });
  await w.enqueue('lost');
  await w.until('lost', ['unknown']);
  assert.equal((await w.compensate('lost', 'close')).status, 'scheduled');
  const row = await w.settled('lost');
  assert.equal(row.status, 'cancelled');
  const compensation = await w.settled(undo('lost'));
  assert.deepEqual([compensation.status, compensation.error.code], ['cancelled', 'nothing_to_compensate']);
  assert.equal((await w.desk.posts('lost')).length, 1);
  assert.deepEqual((await w.desk.state()).closes, []);
  const nothing = await w.compensate('lost', 'close');
  assert.deepEqual([nothing.operation_id, nothing.status, nothing.replayed], ['lost', 'cancelled', true]);
});

story('a compensation whose answer is lost is looked for; one that is refused leaves the original standing', async (w) => {
  await w.start({ tools: tools(w) });
  for (const id of ['cut', 'refused']) {
    await w.enqueue(id);
    await w.settled(id);
  }
  await w.desk.plan(undo('cut'), { posts: ['cut'] });
  await w.desk.plan(undo('refused'), { posts: ['refuse'] });
  await w.compensate('cut', 'close');
  await w.compensate('refused', 'close');
  const cut = await w.settled(undo('cut'));
  assert.deepEqual([cut.status, cut.attempts], ['succeeded', 1]);
  assert.equal((await w.desk.closes(undo('cut'))).length, 1);

  assert.deepEqual([(await w.settled(undo('refused'))).status, (await w.get('refused')).compensated_by], ['failed', null]);
  assert.equal((await w.compensate('refused', 'close')).status, 'failed', 'a second call is a replay');
  const { retry } = await w.one(`SELECT outbox.retry($1, 'the desk changed its mind')`, [undo('refused')]);
  assert.equal(retry, 'armed');
  await w.until(undo('refused'), ['succeeded']);
  assert.equal((await w.get('refused')).compensated_by, undo('refused'));
});

story('a plain insert cannot pass for a compensation', async (w) => {
  await w.start({ tools: tools(w) });
  await assert.rejects(
    w.db.query(`INSERT INTO outbox.operation (operation_id, tool) VALUES ('forged', 'create_ticket:close')`),
    { code: '23514', constraint: 'operation_tool_reserved' });
  // One that was filed before that was refused is left to the daemon.
  await w.db.query(`ALTER DOMAIN outbox.valid_operation DROP CONSTRAINT operation_tool_reserved`);
  await w.db.query(`INSERT INTO outbox.operation (operation_id, tool, priority) VALUES ('forged', 'create_ticket:close', 1)`);
  const row = await w.settled('forged');
  assert.deepEqual([row.status, row.error.code], ['failed', 'not_a_compensation']);
  assert.equal((await w.desk.state()).requests.length, 0);
});

story('the command line undoes, waits, replays, and says what cannot be', async (w) => {
  await w.start({ tools: tools(w) });
  await w.desk.plan('failed', { posts: ['refuse'] });
  for (const id of ['cli', 'other', 'failed']) await w.enqueue(id);
  for (const id of ['cli', 'other', 'failed']) await w.settled(id);

  let out = await w.cli('compensate', 'cli', '--arguments', '{"note": "cli"}', '--reason', 'by mistake', '--wait', '30s', '--json');
  assert.equal(out.code, 0, out.text);
  const row = JSON.parse(out.out);
  assert.deepEqual([row.operation_id, row.status, row.replayed], [undo('cli'), 'succeeded', false]);
  assert.equal((await w.desk.closes(undo('cli')))[0].note, 'cli');
  assert.equal((await w.one('SELECT reason FROM outbox.operations WHERE operation_id = $1', [undo('cli')])).reason, 'by mistake');
  out = await w.cli('compensate', 'cli', 'close', '--arguments', '{"note": "cli"}', '--json');
  assert.deepEqual([out.code, JSON.parse(out.out).replayed], [0, true]);
  for (const [code, what, ...args] of [
    [1, /OB422/, 'cli', 'close'],
    [1, /OB404[^]*Did you mean "close"/, 'other', 'clsoe'],
    [1, /nothing to compensate/, 'failed'],
    [1, /no operation/, 'nowhere', 'close'],
    [2, /OB400|object/, 'other', 'close', '--arguments', '[1]'],
    [2, /--help/],
    [2, /--wait/, 'other', '--wait', 'soon'],
  ]) {
    out = await w.cli('compensate', ...args);
    assert.equal(out.code, code, out.text);
    assert.match(out.text, what);
  }
  assert.equal(await w.get(undo('other')), undefined, 'nothing was recorded on the way');
});
