// A daemon that is stopped (kill -STOP) for longer than its lease, and goes on: before its request
// left, and after.
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { story } from './world.mjs';
import { eventually, sleep } from './util.mjs';

story('stopped before the bytes left: nothing is sent late, its answer changes nothing', async (w) => {
  const go = path.join(w.dir, 'go');
  const first = await w.start({ failpoints: `before_first_byte=pause:${go}*1` });
  await w.enqueue('early');
  await eventually('it is about to send', () => existsSync(`${go}.reached`));
  process.kill(first.pid, 'SIGSTOP');
  await w.start();
  const row = await w.settled('early');
  assert.deepEqual([row.status, row.attempts, row.result], ['succeeded', 2, { id: 'T-1' }]);

  writeFileSync(go, 'go');
  process.kill(first.pid, 'SIGCONT');
  await eventually('its report is evidence', async () => (await w.events('early')).includes('late_result'));
  const [late] = await w.events('early', 'late_result');
  assert.equal(late.detail.evidence, 'no_effect');
  assert.equal(late.detail.error.code, 'not_sent_deadline');
  const posts = await w.desk.posts('early');
  assert.equal(posts.length, 1, 'only the other daemon sent');
  const after = await w.get('early');
  assert.deepEqual([after.status, after.attempts, after.result, after.attention], ['succeeded', 2, { id: 'T-1' }, null]);
  assert.ok(await first.metric('outboxd_fenced_writes_total') >= 1);

  // It is as good as new.
  await w.enqueue('next');
  assert.equal((await w.settled('next')).status, 'succeeded');
});

story('stopped after the bytes left, nobody can be asked: the late answer settles the unknown', async (w) => {
  await w.desk.plan('sent', { posts: ['hold'], look: 'error' });
  const first = await w.start();
  await w.enqueue('sent');
  await eventually('the ticket exists', async () => (await w.desk.tickets('sent')).length === 1);
  process.kill(first.pid, 'SIGSTOP');
  await w.start();
  await w.until('sent', ['unknown']);
  await w.desk.release('sent');
  await sleep(3500);  // deadline and settle pass
  assert.equal((await w.get('sent')).status, 'unknown', 'a look-up that fails proves nothing');

  process.kill(first.pid, 'SIGCONT');
  const row = await w.settled('sent');
  assert.deepEqual([row.status, row.attempts, row.result, row.attention], ['succeeded', 1, { id: 'T-1' }, null]);
  const [late] = await w.events('sent', 'late_result');
  assert.equal(late.detail.evidence, 'effect');
  assert.equal((await w.desk.posts('sent')).length, 1);
});
