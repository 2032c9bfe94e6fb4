// A probe that fails is never "absent": otherwise each of these would make a second ticket.
import assert from 'node:assert/strict';
import { story } from './world.mjs';
import { eventually, sleep } from './util.mjs';

const failing = ['error', 'unauthorized', 'missing', 'hang', 'cut', 'garbage', 'shape', 'bare', 'endless'];

story('whatever a look-up fails with, the operation stays unknown, and is found once it heals', async (w) => {
  for (const mode of failing) await w.desk.plan(mode, { posts: ['cut'], look: mode });
  await w.start();
  for (const mode of failing) await w.enqueue(mode);
  for (const mode of failing) await w.until(mode, ['unknown']);
  // Deadline (2 s) and settle (1 s) pass; then every one is asked twice more.
  await sleep(3200);
  const before = new Map();
  for (const mode of failing) before.set(mode, (await w.desk.looks(mode)).length);
  for (const mode of failing) {
    await eventually(`${mode} is asked again`, async () => (await w.desk.looks(mode)).length >= before.get(mode) + 2);
    const row = await w.get(mode);
    assert.equal(row.status, 'unknown', mode);
    assert.equal((await w.desk.posts(mode)).length, 1, mode);
    const verdicts = new Set((await w.events(mode, 'probe')).map((e) => e.detail.verdict));
    assert.deepEqual([...verdicts], ['inconclusive'], mode);
  }
  for (const mode of failing) await w.desk.plan(mode, { look: 'ok' });
  for (const mode of failing) {
    const row = await w.settled(mode);
    assert.deepEqual([row.status, row.attempts], ['succeeded', 1], mode);
    assert.equal((await w.desk.posts(mode)).length, 1, mode);
  }
});

story('a failing look-up delays what never happened as well; after it heals it runs once', async (w) => {
  await w.desk.plan('never', { posts: ['drop'], look: 'error' });
  await w.start();
  await w.enqueue('never');
  await w.until('never', ['unknown']);
  await sleep(4500);
  assert.equal((await w.get('never')).status, 'unknown');
  assert.equal((await w.desk.posts('never')).length, 1);
  await w.desk.plan('never', { look: 'ok' });
  const row = await w.settled('never');
  assert.deepEqual([row.status, row.attempts], ['succeeded', 2]);
});

story('nobody to ask: after_absent hold and a manual tool wait for a person', async (w) => {
  const { ticketTool } = await import('./config.mjs');
  const held = ticketTool(w.desk.url);
  held.reconcile.after_absent = 'hold';
  const manual = ticketTool(w.desk.url, { reconcile: { type: 'manual', reason: 'The desk has no search.' } });
  await w.desk.plan('held', { posts: ['drop'] });
  await w.desk.plan('manual', { posts: ['cut'] });
  await w.start({ tools: { create_ticket: held, blind_ticket: manual } });
  await w.enqueue('held');
  await w.enqueue('manual', { tool: 'blind_ticket' });
  for (const [id, reason] of [['held', 'hold'], ['manual', 'manual']]) {
    const row = await eventually(`${id} needs attention`, async () => {
      const r = await w.get(id);
      return r.attention && r;
    });
    assert.deepEqual([row.status, row.attention], ['unknown', reason]);
  }
  await sleep(1500);
  assert.equal((await w.desk.posts('held')).length, 1);
  assert.equal((await w.desk.posts('manual')).length, 1);
});
