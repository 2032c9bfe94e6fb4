// Answers that are hard to read or to store: the verdict is right, the row is written, and nobody
// else waits for it.
import assert from 'node:assert/strict';
import { ticketTool } from './config.mjs';
import { story } from './world.mjs';
import { eventually, sleep } from './util.mjs';

// The whole answer is kept as the result, so that all of it must be stored.
function keepingAll(w) {
  const tool = ticketTool(w.desk.url);
  tool.execute.outcomes[0].result = { id: '/id', note: '/note' };
  tool.reconcile.result = { id: '/id', note: '/note' };
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
    if (unread.includes(mode)) assert.deepEqual(row.result, { id: mine[0].id, note: null }, mode);
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

// The same, of a look-up: what can be read is found; what cannot proves nothing, although each of
// these says that nothing is there. "Absent" would open a second ticket.
const odd = { odd_nul: notes.nul, odd_utf8: notes.utf8, odd_surrogate: notes.surrogate, odd_large: null, odd_numbers: null };
const lies = ['raw_nul', 'huge', 'deep', 'empty', 'text', 'short', 'long', 'nonsense'];

story('whatever the look-up answers: found or inconclusive, never absent, others unaffected', async (w) => {
  const hostile = [...Object.keys(odd), ...lies];
  const plain = Array.from({ length: 26 }, (_, i) => `plain-${i}`);
  for (const mode of hostile) await w.desk.plan(mode, { posts: ['cut'], look: mode });
  // Every other bystander needs a look-up too.
  for (const id of plain.filter((_, i) => i % 2)) await w.desk.plan(id, { posts: ['cut'] });
  await w.start({ tools: keepingAll(w) });
  const mixed = hostile.flatMap((mode, i) => [...plain.slice(i * 2, i * 2 + 2), mode]);
  await w.db.query(`INSERT INTO outbox.operation (operation_id, tool, arguments)
    SELECT id, 'create_ticket', jsonb_build_object('title', 'ticket ' || id) FROM unnest($1::text[]) AS id`, [mixed]);

  for (const id of plain) {
    const row = await w.settled(id);
    assert.deepEqual([row.status, row.attempts], ['succeeded', 1], id);
  }
  for (const [mode, note] of Object.entries(odd)) {
    const row = await w.settled(mode);
    assert.deepEqual([row.status, row.attempts, row.attention], ['succeeded', 1, null], mode);
    const [ticket] = await w.desk.tickets(mode);
    if (note !== null) assert.deepEqual(row.result, { id: ticket.id, note }, mode);
  }
  assert.equal((await w.get('odd_large')).result.truncated, true);
  const { digits } = await w.one(`SELECT result #>> '{note,2}' AS digits FROM outbox.get('odd_numbers')`);
  assert.equal(digits, '12345678901234567890.123456789', 'exact digits');

  // Deadline (2 s) and settle (1 s) pass: from here on a whole "nothing there" would count.
  await sleep(3200);
  const before = new Map();
  for (const mode of lies) before.set(mode, (await w.desk.looks(mode)).length);
  for (const mode of lies) {
    await eventually(`${mode} is asked again`, async () => (await w.desk.looks(mode)).length >= before.get(mode) + 2);
    const row = await w.get(mode);
    assert.deepEqual([row.status, row.attempts], ['unknown', 1], mode);
    const verdicts = new Set((await w.events(mode, 'probe')).map((e) => e.detail.verdict));
    assert.deepEqual([...verdicts], ['inconclusive'], mode);
    assert.equal((await w.desk.posts(mode)).length, 1, mode);
  }
  for (const mode of lies) await w.desk.plan(mode, { look: 'ok' });
  for (const mode of lies) {
    const row = await w.settled(mode);
    assert.deepEqual([row.status, row.attempts], ['succeeded', 1], mode);
    assert.equal((await w.desk.posts(mode)).length, 1, mode);
  }
});
