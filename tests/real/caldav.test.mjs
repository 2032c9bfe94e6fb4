// config/cookbook/caldav_event.yaml with Radicale: created once, replayed, and what If-None-Match
// makes of a second request: the look-up says whether it was ours.
import assert from 'node:assert/strict';
import path from 'node:path';
import { eventually, providerKey, sleep } from '../e2e/util.mjs';
import { story } from '../e2e/world.mjs';
import { Authority } from './certificates.mjs';
import { ConnectProxy } from './connect_proxy.mjs';
import { folder } from './cookbook.mjs';
import { basic } from './providers/server.mjs';
import { Radicale } from './radicale.mjs';

const password = 'caldav-secret';
const address = (id) => `/bot/calendar/${providerKey(id)}.ics`;
const event = (uid, title) => ['BEGIN:VCALENDAR', 'VERSION:2.0', 'PRODID:-//test//EN', 'BEGIN:VEVENT', `UID:${uid}`, 'DTSTAMP:20261201T110000Z',
  'DTSTART:20261201T110000Z', `SUMMARY:${title}`, 'END:VEVENT', 'END:VCALENDAR', ''].join('\r\n');

async function open(w) {
  const authority = new Authority(w.dir);
  const radicale = await Radicale.start(w.dir, authority.issue(['dav.example.com']), { password });
  const proxy = await ConnectProxy.start();
  proxy.route('dav.example.com', radicale.port);
  w.write('caldav', `${password}\n`);
  w.env = { ...w.env, CREDENTIALS_DIRECTORY: w.dir };
  const settings = {
    tools: {}, include: [path.join(folder, 'caldav_event.yaml')],
    defaults: { timeout: '3s', reconcile: { interval: '500ms' }, http: { proxy: proxy.url, ca_file: authority.file } },
  };
  const asBot = (method, id, body, headers = {}) =>
    radicale.ask(method, address(id), { body, headers: { Authorization: basic('bot', password), 'Content-Type': 'text/calendar', ...headers } });
  const enqueue = (id, title) => w.enqueue(id, { tool: 'caldav_event', args: { title, start: '20261201T110000Z', end: '20261201T120000Z' } });
  const close = async () => { proxy.stop(); await radicale.stop(); };
  return { radicale, settings, asBot, enqueue, close };
}

story('Radicale: an event is put once; what is there already is ours, or a conflict', async (w) => {
  const { radicale, settings, asBot, enqueue, close } = await open(w);
  try {
    await w.start(settings);
    await enqueue('plain', 'Lunch, with; \\ and ünïcode');
    const done = await w.settled('plain');
    assert.deepEqual([done.status, done.attempts], ['succeeded', 1]);
    const { headers, text } = await asBot('GET', 'plain');
    assert.equal(done.result.etag, headers.etag, 'the version that Radicale gave it');
    assert.match(text, /SUMMARY:Lunch\\, with\\; \\\\ and ünïcode\r?\n/);
    const again = await enqueue('plain', 'Lunch, with; \\ and ünïcode');
    assert.deepEqual([again.replayed, again.result], [true, done.result]);

    // A request of a process that everybody gave up on was here before: 412, and it is ours.
    assert.equal((await asBot('PUT', 'ours', event(providerKey('ours'), 'late'), { 'If-None-Match': '*' })).status, 201);
    await enqueue('ours', 'late');
    const ours = await w.settled('ours');
    assert.deepEqual([ours.status, ours.attempts], ['succeeded', 1]);
    const [unknown] = await w.events('ours', 'unknown');
    assert.match(JSON.stringify(unknown.detail), /412/);
    assert.deepEqual((await w.events('ours', 'probe')).map((e) => e.detail.verdict), ['found']);
    // The same late request after us changes nothing.
    assert.equal((await asBot('PUT', 'ours', event(providerKey('ours'), 'later'), { 'If-None-Match': '*' })).status, 412);
    assert.equal(radicale.effects('late').length, 1);
    assert.equal(radicale.effects('later').length, 0);

    // Somebody else's event under our address: a person has to look, and it is not replaced.
    assert.equal((await asBot('PUT', 'taken', event('somebody', 'theirs'))).status, 201);
    await enqueue('taken', 'mine');
    await eventually('a person is asked', async () => (await w.get('taken')).attention === 'conflict');
    assert.equal((await w.get('taken')).status, 'unknown');
    assert.equal(radicale.effects('theirs').length, 1);
    assert.equal(radicale.effects('mine').length, 0);
    assert.equal(radicale.events().length, 3);

  } finally {
    await close();
  }
});

story('Radicale: a wrong password: not done, until it is right', async (w) => {
  const { radicale, settings, enqueue, close } = await open(w);
  try {
    w.write('caldav', 'wrong\n');
    const daemon = await w.start(settings);
    await enqueue('early', 'early');
    await eventually('it is refused', async () => (await w.events('early', 'retry')).some((e) => /401/.test(JSON.stringify(e.detail))));
    assert.deepEqual([(await w.get('early')).attempts, radicale.events().length], [0, 0]);
    w.write('caldav', `${password}\n`);
    process.kill(daemon.pid, 'SIGHUP');
    const row = await w.settled('early');
    assert.deepEqual([row.status, row.attempts, radicale.effects('early').length], ['succeeded', 1, 1]);
    assert.ok(!daemon.log.includes('wrong') && !daemon.log.includes(password), 'no password in the log');
  } finally {
    await close();
  }
});

story('Radicale: killed after the event was put: found under its address', async (w) => {
  const { radicale, settings, enqueue, close } = await open(w);
  try {
    const first = await w.start({ ...settings, failpoints: `after_effect_before_complete=pause:${path.join(w.dir, 'never')}` });
    await enqueue('crash', 'crash');
    await eventually('the event is there', () => radicale.effects('crash').length === 1);
    await sleep(200);
    await first.kill();
    await w.start(settings);
    const row = await w.settled('crash');
    assert.deepEqual([row.status, row.attempts, radicale.events().length], ['succeeded', 1, 1]);
    assert.ok((await w.events('crash')).includes('lease_expired'));
    assert.deepEqual((await w.events('crash', 'probe')).map((e) => e.detail.verdict), ['found']);
  } finally {
    await close();
  }
});
