// Answers that are hard to read or to store: the verdict is right, the row is written, and nobody
// else waits for it.
import assert from 'node:assert/strict';
import { ticketTool } from './config.mjs';
import { story } from './world.mjs';

// The whole answer is kept as the result, so that all of it must be stored.
function keepingAll(w) {
  const tool = ticketTool(w.desk.url);
  tool.execute.outcomes[0].result = { id: '/id', note: '/note' };
  return { create_ticket: tool };
}

// 201 says that it happened, whatever stands in the body. What jsonb cannot hold is replaced; what
// cannot be read at all is said in an event.
const notes = { nul: 'a\ufffdb', utf8: '\ufffd\ufffd\ufffd(', surrogate: '\ufffd and \ufffd' };
const unreadable = ['raw_nul', 'huge', 'deep', 'empty', 'text', 'short'];
const read = [...Object.keys(notes), ...unreadable, 'large', 'numbers'];
// No whole answer: asked, and found.
const unread = ['long', 'nonsense'];

story('whatever the answer holds: verdict right, result stored, others unaffected', async (w) => {
  for (const mode of [...read, ...unread]) await w.desk.plan(mode, { posts: [mode] });
  await w.start({ tools: keepingAll(w), defaults: { timeout: '10s', connect_timeout: '1s' } });
  // In one go, between ordinary ones: they share leases and completion batches.
  const plain = Array.from({ length: 40 }, (_, i) => `plain-${i}`);
  const mixed = [...read, ...unread].flatMap((mode, i) => [...plain.slice(i * 3, i * 3 + 3), mode]).concat(plain.slice(39));
  await w.db.query(`INSERT INTO outbox.operation (operation_id, tool, arguments)
    SELECT id, 'create_ticket', jsonb_build_object('title', 'ticket ' || id) FROM unnest($1::text[]) AS id`, [mixed]);
  const { rows: [started] } = await w.db.query('SELECT clock_timestamp() AS at');

  for (const id of plain) {
    const row = await w.settled(id);
    assert.deepEqual([row.status, row.attempts], ['succeeded', 1], id);
    assert.ok(row.finished_at - started.at < 5000, `${id} took ${row.finished_at - started.at} ms`);
  }
  const { tickets } = await w.desk.state();
  for (const mode of [...read, ...unread]) {
    const row = await w.settled(mode);
    assert.deepEqual([row.status, row.attempts, row.attention], ['succeeded', 1, null], mode);
    const mine = tickets.filter((t) => t.operation_id === mode);
    assert.equal(mine.length, 1, mode);
    if (notes[mode]) assert.deepEqual(row.result, { id: mine[0].id, note: notes[mode] }, mode);
    if (unread.includes(mode)) assert.deepEqual(row.result, { id: mine[0].id }, mode);
    if (unreadable.includes(mode)) assert.equal(row.result, null, mode);
    assert.equal((await w.events(mode)).includes('result_lost'), unreadable.includes(mode), mode);
    const probes = await w.events(mode, 'probe');
    assert.equal(probes.length > 0, unread.includes(mode), `${mode}: ${probes.length} probes`);
  }
  // limits.result: 64 KiB.
  const { result: large } = await w.get('large');
  assert.equal(large.truncated, true);
  assert.match(large.sha256, /^[0-9a-f]{64}$/);
  const { result: numbers } = await w.one(`SELECT result #>> '{note,2}' AS result FROM outbox.get('numbers')`);
  assert.equal(numbers, '12345678901234567890.123456789', 'exact digits');
});
