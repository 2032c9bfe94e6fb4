// A daemon that is stopped (kill -STOP) for longer than its lease, and goes on: before its request
// left, and after.
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import http from 'node:http';
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

// A provider that accepts the connection and reads only when it is told to.
async function slowProvider() {
  const provider = { posts: [], done: [] };
  const server = http.createServer((request, response) => {
    const reply = (status, value) => response.writeHead(status, { 'Content-Type': 'application/json' }).end(JSON.stringify(value));
    if (request.method === 'GET') return reply(200, { items: provider.done.map((ref) => ({ ref })) });
    const post = { bytes: 0, whole: false, closed: false, length: Number(request.headers['content-length']) };
    provider.posts.push(post);
    post.read = () => request.on('data', (chunk) => { post.bytes += chunk.length; })
      .on('error', () => {})  // the connection is cut
      .on('close', () => { post.closed = true; })
      .on('end', () => {
        post.whole = true;
        provider.done.push(request.headers['idempotency-key']);
        reply(201, {});
      });
    if (provider.posts.length > 1) post.read();
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  provider.url = `http://127.0.0.1:${server.address().port}/posts`;
  provider.close = () => { server.closeAllConnections(); server.close(); };
  return provider;
}

story('stopped with half of the request written: the other half never follows', async (w) => {
  const provider = await slowProvider();
  try {
    const copies = Array.from({ length: 30 }, () => '{{ arguments.text }}');  // beyond what sockets buffer
    const tool = {
      effect: 'write',
      execute: { type: 'http', method: 'POST', url: provider.url, headers: { 'Idempotency-Key': '{{ operation.key }}' }, json: { copies },
        outcomes: [{ when: { status: 201 }, then: 'succeeded' }] },
      reconcile: { type: 'http', method: 'GET', url: provider.url, query: { ref: '{{ operation.key }}' }, items: '/items', match: { '/ref': '{{ operation.key }}' } },
    };
    const first = await w.start({ tools: { upload: tool } });
    await w.enqueue('half', { tool: 'upload', args: { text: 'x'.repeat(700_000) } });
    await eventually('the provider sees the request', () => provider.posts.length === 1);
    process.kill(first.pid, 'SIGSTOP');
    await w.start({ tools: { upload: tool } });
    const row = await w.settled('half');
    assert.deepEqual([row.status, row.attempts], ['succeeded', 2]);

    process.kill(first.pid, 'SIGCONT');
    // It may look at its socket first: what it had not written by the deadline must not leave now.
    const [half] = provider.posts;
    half.read();
    await eventually('the stopped request ends', () => half.closed);
    assert.equal(half.whole, false);
    assert.ok(half.bytes < half.length, `${half.bytes} of ${half.length}`);
    assert.equal(provider.done.length, 1);
    const after = await w.get('half');
    assert.deepEqual([after.status, after.attempts, after.attention], ['succeeded', 2, null]);
  } finally {
    provider.close();
  }
});
