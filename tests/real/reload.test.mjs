// SIGHUP under load: nothing is lost and nothing is done twice, a file that does not compile changes
// nothing but the log, what runs ends under the configuration it began with, and a secret that was
// changed is used by the next attempt.
import assert from 'node:assert/strict';
import { rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { configuration, ticketTool } from '../e2e/config.mjs';
import { eventually, sleep } from '../e2e/util.mjs';
import { story } from '../e2e/world.mjs';

const reloads = async (daemon, result) => daemon.metric('outboxd_config_reloads_total', `result="${result}"`);

// The daemon's file, to be written anew; reload() answers once the daemon has read it.
class File {
  constructor(w, daemon) {
    Object.assign(this, { w, daemon, file: path.join(w.dir, `outboxd-${w.daemons.indexOf(daemon)}.yaml`), ok: 0, error: 0 });
  }

  write(tools, more = {}) { this.text(JSON.stringify(configuration({ port: this.daemon.port, tools, ...more }), null, 2)); }
  text(text) { writeFileSync(this.file, text); }

  async reload(result) {
    ++this[result];
    process.kill(this.daemon.pid, 'SIGHUP');
    await eventually(`reload ${result} number ${this[result]}`, async () => await reloads(this.daemon, result) === this[result], 30_000);
  }
}

story('twenty reloads under load, some of them bad: every operation settles, once', async (w) => {
  const tool = (more) => ({ create_ticket: ticketTool(w.desk.url, more) });
  const daemon = await w.start();
  const file = new File(w, daemon);
  const count = 600;
  for (let i = 0; i < count; i += 10) {
    await w.desk.plan(`op-${i}`, { posts: [['cut'], ['error'], ['slow'], ['busy'], ['drop']][(i / 10) % 5] });
  }
  let filed = 0;
  const filing = (async () => {
    while (filed < count) {
      await w.db.query(`INSERT INTO outbox.operation (operation_id, tool, arguments) SELECT 'op-' || i, 'create_ticket', jsonb_build_object('title', 'ticket op-' || i)
        FROM generate_series($1::int, $2::int) i`, [filed, filed + 9]);
      filed += 10;
      await sleep(60);
    }
  })();
  const bad = {
    'a typing error': () => file.text('version: 1\ntools: [\n'),
    'an unknown key': () => file.write({ create_ticket: { ...tool().create_ticket, concurency: 3 } }),
    'a template that does not compile': () => { const broken = tool().create_ticket; broken.execute.json.title = '{{ arguments.title | nonsense }}'; file.write({ create_ticket: broken }); },
    'no environment': () => file.write(tool(), { credentials: { a: { kind: 'bearer', token: '${env:NOT_THERE_AT_ALL}' } } }),
    'no file at all': () => rmSync(file.file),
    'an authority that is not there': () => file.write(tool({ http: { ca_file: path.join(w.dir, 'nowhere.pem') } })),
  };
  const kinds = Object.values(bad);
  const inFlow = [];
  for (let i = 0; i < 20; i++) {
    if (i % 3 === 2) {
      kinds[(i - 2) / 3]();
      await file.reload('error');
    } else {
      // Every second good one changes limits, and one leaves the tool out for a while.
      file.write(i === 9 ? { other: { effect: 'read', execute: { type: 'log' } } } : tool({ concurrency: 4 + i, description: `number ${i}` }));
      await file.reload('ok');
    }
    inFlow.push((await w.one('SELECT count(*)::int AS n FROM outbox.queue')).n);
    await sleep(80);
  }
  await filing;
  await w.allSettled(count, 60_000);
  const { rows } = await w.db.query('SELECT status, count(*)::int AS n FROM outbox.operations GROUP BY 1');
  assert.deepEqual(rows, [{ status: 'succeeded', n: count }]);
  assert.equal((await w.desk.state()).tickets.length, count);
  assert.deepEqual([file.ok, file.error], [14, 6]);
  assert.ok(inFlow.filter((n) => n > 0).length >= 15, `in flow at each reload: ${inFlow}`);
  assert.equal((await w.one(`SELECT count(*)::int AS n FROM outbox.event WHERE kind IN ('attention', 'late_result', 'result_lost')`)).n, 0);

  // Each refusal is in the log, with place and hint, and nothing else came of it.
  assert.match(daemon.log, /outboxd-0\.yaml:\d+:\d+: error: .*concurency/);
  assert.match(daemon.log, /outboxd-0\.yaml:\d+:\d+: error: .*nonsense/);
  assert.match(daemon.log, /outboxd-0\.yaml:\d+:\d+: error: .*NOT_THERE_AT_ALL/);
  assert.match(daemon.log, /nowhere\.pem/);
  assert.equal(daemon.log.split('the configuration was not reloaded, the old one stays').length - 1, 6);
  assert.equal((await daemon.ask('/readyz')).status, 200);
  assert.equal(daemon.ended, null);
  await daemon.stop();
}, { timeout: 180_000 });

story('an attempt in flight ends under the configuration it began with, however long that takes', async (w) => {
  const tools = (more = {}) => ({ create_ticket: ticketTool(w.desk.url, { timeout: '20s', ...more }) });
  const worker = { drain_timeout: '500ms' };  // it is about the daemon's end, not about a reload
  const daemon = await w.start({ tools: tools(), worker });
  const file = new File(w, daemon);
  for (const id of ['long', 'longer']) await w.desk.plan(id, { posts: ['hold'] });
  await w.enqueue('long');
  await eventually('it is under way', async () => (await w.desk.tickets('long')).length === 1);
  file.write(tools({ timeout: '2s' }), { worker });
  await file.reload('ok');
  await w.enqueue('longer');
  await eventually('the next one too', async () => (await w.desk.tickets('longer')).length === 1);
  // The second one's two seconds pass; the first one's twenty do not.
  assert.equal((await w.settled('longer')).status, 'succeeded');
  assert.ok((await w.events('longer')).includes('unknown'));
  assert.equal((await w.get('long')).status, 'attempting');
  await w.enqueue('next');
  assert.equal((await w.settled('next')).status, 'succeeded');
  await w.desk.release('long');
  const row = await w.settled('long');
  assert.deepEqual([row.status, row.attempts, row.result], ['succeeded', 1, { id: 'T-1' }]);
  assert.deepEqual(await w.events('long'), [], 'nobody had to be asked');

  // A stop is another matter: then drain_timeout counts for what an earlier reload left, too.
  await w.desk.plan('cut', { posts: ['hold'] });
  file.write(tools(), { worker });
  await file.reload('ok');
  await w.enqueue('cut');
  await eventually('it is under way', async () => (await w.desk.tickets('cut')).length === 1);
  await file.reload('ok');
  const { code } = await daemon.stop(10_000);
  assert.equal(code, 0);
  assert.equal((await w.get('cut')).status, 'unknown');
  await w.start({ tools: tools(), worker });
  assert.equal((await w.settled('cut')).status, 'succeeded');
});

// A receiver that remembers who spoke, and answers when it is told to.
async function receiver() {
  const calls = [];
  const server = http.createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const call = { method: request.method, authorization: request.headers.authorization, answer: (status, value) => {
      response.writeHead(status, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify(value));
    } };
    call.id = request.method === 'GET' ? request.url.split('/').at(-1) : JSON.parse(Buffer.concat(chunks)).id;
    calls.push(call);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { calls, url: `http://127.0.0.1:${server.address().port}`, close: () => { server.close(); server.closeAllConnections(); } };
}

story('a secret that was changed: attempts in flight end with theirs, the next ones and their look-ups use the new one', async (w) => {
  const { calls, url, close } = await receiver();
  try {
    const secret = w.write('secret', 'first-secret\n', 0o600);
    const settings = {
      credentials: { bot: { kind: 'bearer', token_file: secret } },
      tools: {
        note: {
          effect: 'write', timeout: '20s',
          execute: { type: 'http', method: 'POST', url: `${url}/notes`, credential: 'bot', json: { id: '{{ operation.id }}', key: '{{ operation.key }}' },
            outcomes: [{ when: { status: 201 }, then: 'succeeded' }] },
          reconcile: { type: 'http', method: 'GET', url: `${url}/notes/{{ operation.id }}`, credential: 'bot',
            verdicts: [{ when: { status: 200 }, then: 'found' }, { when: { status: 404 }, then: 'absent' }] },
        },
      },
    };
    const daemon = await w.start(settings);
    const file = new File(w, daemon);
    const enqueue = (id) => w.enqueue(id, { tool: 'note', args: {} });
    const call = (id, method = 'POST') => eventually(`${method} of ${id}`, () => calls.find((c) => c.id === id && c.method === method));
    await enqueue('old');
    await enqueue('doubt');
    await call('old');
    await call('doubt');

    writeFileSync(secret, 'second-secret\n');
    await enqueue('before');  // the file alone changes nothing
    assert.equal((await call('before')).authorization, 'Bearer first-secret');
    await file.reload('ok');
    await enqueue('new');
    assert.equal((await call('new')).authorization, 'Bearer second-secret');

    for (const id of ['old', 'before', 'new']) (await call(id)).answer(201, {});
    for (const id of ['old', 'before', 'new']) assert.deepEqual([(await w.settled(id)).status, (await w.get(id)).attempts], ['succeeded', 1], id);
    assert.equal((await call('old')).authorization, 'Bearer first-secret');
    // In doubt since the old one's time: asked with the new one.
    (await call('doubt')).answer(500, {});
    const look = await call('doubt', 'GET');
    assert.equal(look.authorization, 'Bearer second-secret');
    look.answer(200, {});
    assert.equal((await w.settled('doubt')).status, 'succeeded');
    assert.equal(calls.length, 5);

    // A file that is gone is a reload that is refused: the old secret stays.
    rmSync(secret);
    await file.reload('error');
    await enqueue('still');
    assert.equal((await call('still')).authorization, 'Bearer second-secret');
    (await call('still')).answer(201, {});
    await w.settled('still');
    assert.ok(!/(first|second)-secret/.test(daemon.log), 'no secret in the log');
  } finally {
    close();
  }
});
