// A tool behind nginx: mutual TLS, kept connections, gzip. Who is refused, by us or by nginx, had no
// effect; a connection that nginx closed is replaced; what nginx makes of a broken upstream is looked up.
import assert from 'node:assert/strict';
import { ticketTool } from '../e2e/config.mjs';
import { eventually, sleep } from '../e2e/util.mjs';
import { story } from '../e2e/world.mjs';
import { Authority } from './certificates.mjs';
import { Nginx } from './nginx.mjs';

// OpenSSL's form of a time, so many seconds from now.
const at = (seconds) => `${new Date(Date.now() + 1000 * seconds).toISOString().replace(/[-:T]/g, '').slice(2, 14)}Z`;

const credential = ({ cert, key }) => ({ kind: 'mtls', cert_file: cert, key_file: key });

function tool(url, { ca, client, ...more }) {
  const made = ticketTool(url, { http: { ca_file: ca }, ...more });
  if (client) for (const part of [made.execute, made.reconcile]) part.mtls = client;
  return made;
}

async function served(w, body, { names = ['localhost'], dates = {}, ...options } = {}) {
  const authority = new Authority(w.dir);
  const clients = new Authority(w.dir, 'clients');
  const nginx = await Nginx.start(w.dir, { ...authority.issue(names, dates), clientCa: clients.file, upstream: w.desk.url, ...options });
  try {
    await body({ nginx, authority, clients, bot: clients.issue(['bot'], { usage: 'clientAuth' }) });
  } catch (error) {
    error.message += `\nnginx: ${nginx.errors.slice(-2000)}`;
    throw error;
  } finally {
    await nginx.stop();
  }
}

story('nginx: a client certificate, connections that are kept, answers in gzip; a broken upstream is looked up', (w) => served(w, async ({ nginx, authority, bot }) => {
  await w.start({ credentials: { bot: credential(bot) }, tools: { create_ticket: tool(nginx.url, { ca: authority.file, client: 'bot' }) } });
  const count = 40;
  await w.desk.plan('op-7', { posts: ['cut'] });  // nginx says 502: it happened all the same
  await w.desk.plan('op-8', { posts: ['drop'] });  // the same 502, and it did not
  for (let i = 0; i < count; i++) await w.enqueue(`op-${i}`);
  await w.allSettled(count, 60_000);
  const { rows } = await w.db.query(`SELECT status, count(*)::int AS n FROM outbox.operations GROUP BY 1`);
  assert.deepEqual(rows, [{ status: 'succeeded', n: count }]);
  assert.equal((await w.desk.state()).tickets.length, count);
  for (const id of ['op-7', 'op-8']) assert.match(JSON.stringify(await w.events(id, 'unknown')), /502/);
  const { calls } = nginx;
  const connections = new Set(calls.map((call) => call.connection)).size;
  assert.ok(connections <= 34 && calls.length >= count + 2, `${calls.length} requests on ${connections} connections`);
  assert.ok(calls.some((call) => call.request > 1), 'a connection is used again');
  assert.ok(calls.every((call) => call.verify === 'SUCCESS' && call.protocol === 'TLSv1.3'), JSON.stringify(calls[0]));
  assert.ok(calls.some((call) => call.method === 'GET' && call.status === 200 && call.gzip !== '-'), 'a look-up came in gzip');
}));

story('nginx: no client certificate, one of another authority, one that expired meanwhile: nothing happened', (w) => served(w, async ({ nginx, authority, clients }) => {
  const stranger = new Authority(w.dir, 'strangers').issue(['bot'], { usage: 'clientAuth' });
  const ends = 6;
  const brief = clients.issue(['brief'], { usage: 'clientAuth', from: at(-60), to: at(ends) });
  const born = Date.now();
  const ca = authority.file;
  await w.start({
    credentials: { stranger: credential(stranger), brief: credential(brief) },
    tools: {
      nobody: tool(nginx.url, { ca }), stranger: tool(nginx.url, { ca, client: 'stranger' }), brief: tool(nginx.url, { ca, client: 'brief' }),
    },
  });
  const enqueue = (id, name) => w.enqueue(id, { tool: name, args: { title: id } });
  await enqueue('in-time', 'brief');
  assert.equal((await w.settled('in-time')).status, 'succeeded');
  await sleep(Math.max(0, born + 1000 * ends + 1500 - Date.now()));
  for (const name of ['nobody', 'stranger', 'brief']) await enqueue(`as-${name}`, name);
  for (const name of ['nobody', 'stranger']) {
    const row = await w.settled(`as-${name}`);
    assert.deepEqual([row.status, row.attempts], ['failed', 1], name);
    assert.ok(!(await w.events(`as-${name}`)).includes('unknown'), name);
  }
  // What has expired is not even shown.
  await eventually('it is tried again', async () => (await w.events('as-brief', 'retry')).length >= 2);
  assert.deepEqual([(await w.get('as-brief')).attempts, (await w.events('as-brief')).includes('unknown')], [0, false]);
  assert.match(JSON.stringify(await w.events('as-brief', 'retry')), /not_sent_\w+.*expired/);
  assert.equal((await w.desk.state()).tickets.length, 1);
  assert.equal((await w.desk.state()).requests.length, 1, 'the service was not asked');
  const verdicts = new Set(nginx.calls.filter((call) => call.status === 400).map((call) => call.verify.split(':')[0]));
  assert.deepEqual([...verdicts].sort(), ['FAILED', 'NONE']);

  // One that has expired does not even load, and the message says so.
  const expired = clients.issue(['expired'], { usage: 'clientAuth', from: '200101000000Z', to: '200201000000Z' });
  const file = w.configure({ credentials: { bot: credential(expired) }, tools: { create_ticket: tool(nginx.url, { ca, client: 'bot' }) } });
  const { code, text } = await w.cli('check-config', file);
  assert.equal(code, 3, text);
  assert.match(text, /expired/);
}));

for (const [what, options, trusted] of [
  ['an unknown authority', {}, false],
  ['the wrong name', { names: ['elsewhere.example'] }, true],
  ['dates that have passed', { dates: { from: '200101000000Z', to: '200201000000Z' } }, true],
]) {
  story(`nginx with ${what}: nothing is sent, and it is tried again`, (w) => served(w, async ({ nginx, authority, bot, clients }) => {
    await w.start({ credentials: { bot: credential(bot) }, tools: { create_ticket: tool(nginx.url, { ca: trusted ? authority.file : clients.file, client: 'bot' }) } });
    await w.enqueue('spied');
    await eventually('it is tried again', async () => (await w.events('spied', 'retry')).length >= 2);
    const row = await w.get('spied');
    assert.deepEqual([row.attempts, nginx.calls.length, (await w.desk.state()).requests.length], [0, 0, 0]);
    assert.match(JSON.stringify(await w.events('spied', 'retry')), /not_sent_tls/);
    assert.ok(!(await w.events('spied')).includes('unknown'));
  }, options));
}

story('nginx closes idle connections: replaced before a byte was written, and never twice', (w) => served(w, async ({ nginx, authority, bot }) => {
  const daemon = await w.start({ credentials: { bot: credential(bot) }, tools: { create_ticket: tool(nginx.url, { ca: authority.file, client: 'bot' }) } });
  await w.enqueue('first');
  await w.settled('first');
  await sleep(800);  // nginx gave up on it after 200 ms
  await w.enqueue('second');
  const second = await w.settled('second');
  assert.deepEqual([second.status, second.attempts, await w.events('second')], ['succeeded', 1, []], 'nothing unusual');
  const [one, two] = nginx.calls;
  assert.ok(one.connection !== two.connection && two.request === 1, JSON.stringify(nginx.calls));

  // Around the moment at which nginx closes, again and again; then its workers are replaced under load.
  let count = 2;
  const some = async (n) => { for (let i = 0; i < n; i++) await w.enqueue(`op-${count++}`); };
  for (let i = 0; i < 25; i++) {
    await some(3);
    await sleep(160 + 3 * i);
  }
  for (let i = 0; i < 3; i++) {
    await some(20);
    nginx.reload();
    await some(20);
    await sleep(150);
  }
  await w.allSettled(count, 60_000);
  const { tickets, requests } = await w.desk.state();
  const { rows } = await w.db.query('SELECT status, count(*)::int AS n FROM outbox.operations GROUP BY 1');
  assert.deepEqual([rows, tickets.length], [[{ status: 'succeeded', n: count }], count]);
  const posts = requests.filter((request) => request.method === 'POST').map((request) => request.key);
  assert.equal(posts.length, new Set(posts).size, 'nothing reached the service twice');
  assert.equal(await daemon.metric('outboxd_duplicate_effects_total'), 0);
}, { keepalive: '200ms' }));
