// config/cookbook/request_tracker.yaml as it stands, with a Request Tracker that nobody wrote for it.
import assert from 'node:assert/strict';
import path from 'node:path';
import { eventually, sleep } from '../e2e/util.mjs';
import { story } from '../e2e/world.mjs';
import { Authority } from '../real/certificates.mjs';
import { ConnectProxy } from '../real/connect_proxy.mjs';
import { folder } from '../real/cookbook.mjs';
import { RequestTracker } from './server.mjs';

async function open(w, options) {
  const authority = new Authority(w.dir);
  const proxy = await ConnectProxy.start();
  const rt = await RequestTracker.start(w.dir, authority, options);
  proxy.route('rt.example.com', rt.nginx.port);
  w.write('request_tracker', `${rt.token}\n`);
  w.env = { ...w.env, CREDENTIALS_DIRECTORY: w.dir };
  const settings = {
    tools: {}, include: [path.join(folder, 'request_tracker.yaml')],
    defaults: { reconcile: { interval: '1s' }, http: { proxy: proxy.url, ca_file: authority.file } },
  };
  const enqueue = (id, more = {}) => w.enqueue(id, { tool: 'rt_ticket', args: { subject: id, text: 'It is on fire: "quotes", ünïcode', ...more } });
  const all = async () => (await rt.ask(`/REST/2.0/tickets?query=${encodeURIComponent('id > 0')}`)).body.total;
  const close = async () => { await rt.stop(); proxy.stop(); };
  return { rt, settings, enqueue, all, close };
}

story('Request Tracker: clean, killed after the effect, a lost answer: what it shows is what the outbox says', async (w) => {
  const { rt, settings, enqueue, all, close } = await open(w);
  try {
    const first = await w.start({ ...settings, failpoints: `after_effect_before_complete=pause:${path.join(w.dir, 'never')}` });
    await enqueue('crash');
    await eventually('the ticket is there', async () => (await rt.effects('crash')).length === 1, 60_000);
    await sleep(500);
    await first.kill();

    await w.start(settings);
    await enqueue('clean', { requestor: 'ada@example.org' });
    const clean = await w.settled('clean', 60_000);
    assert.deepEqual([clean.status, clean.attempts], ['succeeded', 1], JSON.stringify(clean));
    const [ticket] = await rt.effects('clean');
    assert.deepEqual([String(clean.result.id), clean.result.url], [String(ticket.id), ticket._url]);

    // RT's answer is lost on its way, nginx says 502: the ticket is there, and found.
    rt.lose = 1;
    await enqueue('lost');
    const lost = await w.settled('lost', 90_000);
    assert.equal(rt.lose, 0);
    assert.match(JSON.stringify(await w.events('lost', 'unknown')), /502/);
    assert.deepEqual([lost.status, lost.attempts, (await rt.effects('lost')).length], ['succeeded', 1, 1]);

    const crash = await w.settled('crash', 90_000);
    assert.deepEqual([crash.status, crash.attempts, (await rt.effects('crash')).length], ['succeeded', 1, 1]);
    assert.deepEqual((await w.events('crash', 'probe')).map((event) => event.detail.verdict), ['found']);
    assert.equal(await all(), 3);
  } finally {
    await close();
  }
}, { timeout: 600_000 });

// Subjects that would end the string of the query, or be taken for a pattern.
const subjects = ['it\'s "quoted"', 'back\\slash \\" end\\', 'ünï ☃ %_', 'a" OR id > 0 OR Subject = "b', "') OR (id > 0", '{{ operation.key }}'];

story('Request Tracker: hostile subjects are looked up for what they are', async (w) => {
  const { rt, settings, enqueue, all, close } = await open(w);
  try {
    await w.start(settings);
    await enqueue('other');
    await w.settled('other', 60_000);
    for (const [i, subject] of subjects.entries()) {
      rt.lose = 1;
      await enqueue(`hostile-${i}`, { subject });
      const row = await w.settled(`hostile-${i}`, 90_000);
      assert.deepEqual([row.status, row.attempts, rt.lose], ['succeeded', 1, 0], subject);
      assert.deepEqual((await w.events(`hostile-${i}`, 'probe')).map((event) => event.detail.verdict), ['found'], subject);
    }
    assert.equal(await all(), subjects.length + 1);
  } finally {
    await close();
  }
}, { timeout: 600_000 });

story('Request Tracker: a bot that may not set the field: its key is dropped in silence, and a person is asked', async (w) => {
  const { rt, settings, enqueue, all, close } = await open(w, { maySetField: false });
  try {
    await w.start(settings);
    rt.lose = 1;
    await enqueue('dropped', { subject: subjects[1] });
    await eventually('a person is asked', async () => (await w.get('dropped')).attention === 'conflict', 60_000);
    assert.equal(await all(), 1);
  } finally {
    await close();
  }
}, { timeout: 600_000 });
