// reconcile: resend against a provider that honours keys, look-ups that are told to wait, and what
// a changed configuration says about open work.
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import { eventually, providerKey, sleep } from './util.mjs';
import { story } from './world.mjs';

// One effect per key and the first answer again, as long as it remembers. `modes` says what becomes
// of the nth answer: ok, cut (lost after the effect), wait (429), busy (409), or a function.
class Provider {
  requests = [];
  answers = new Map();
  modes = [];

  static async start() {
    const provider = new Provider();
    provider.server = http.createServer((request, response) => {
      let body = '';
      request.on('data', (data) => { body += data; });
      request.on('end', () => provider.take(request, body, response));
    });
    await new Promise((resolve) => provider.server.listen(0, '127.0.0.1', resolve));
    provider.url = `http://127.0.0.1:${provider.server.address().port}`;
    return provider;
  }

  take(request, body, response) {
    const key = request.headers['idempotency-key'];
    const mode = this.modes.shift() ?? 'ok';
    this.requests.push({ method: request.method, url: request.url, key, body, at: Date.now(), mode });
    const say = (status, value, headers = {}) => response.writeHead(status, headers).end(JSON.stringify(value));
    if (typeof mode === 'function') return mode(say);
    if (mode === 'wait') return say(429, {}, { 'Retry-After': '3' });
    if (mode === 'busy') return say(409, { code: 'in_progress' });
    if (!this.answers.has(key)) this.answers.set(key, { id: `ch_${this.answers.size + 1}`, body });
    if (mode === 'cut') return response.socket.destroy();
    return say(201, this.answers.get(key));
  }

  of(id) { return this.requests.filter((r) => r.key === providerKey(id)); }
  stop() { this.server.closeAllConnections(); this.server.close(); }
}

const charge = (provider, { window = '1h', ...more } = {}) => ({
  effect: 'write',
  key: { window },
  execute: {
    type: 'http', method: 'POST', url: `${provider.url}/charges`,
    headers: { 'Idempotency-Key': '{{ operation.key }}' },
    json: { amount: '{{ arguments.amount }}' },
    outcomes: [{ when: { status: 201 }, then: 'succeeded', result: { id: '/id' } }],
  },
  reconcile: { type: 'resend' },
  ...more,
});
const pay = (w, id) => w.enqueue(id, { tool: 'charge', args: { amount: 5 } });

story('resend: a lost answer is asked for with the same request and key, one effect', async (w) => {
  const provider = await Provider.start();
  try {
    provider.modes = ['cut', 'busy', 'wait', 'cut'];
    const daemon = await w.start({ tools: { charge: charge(provider) } });
    await pay(w, 'lost');
    const row = await w.settled('lost', 60_000);
    assert.deepEqual([row.status, row.result], ['succeeded', { id: 'ch_1' }]);
    assert.equal(provider.answers.size, 1);
    const sent = provider.of('lost');
    assert.equal(sent.length, 5);
    assert.equal(row.attempts, 4, 'the 429 does not count, the 409 does');
    assert.equal(new Set(sent.map((r) => r.body)).size, 1);
    assert.ok(sent[3].at - sent[2].at >= 2900, 'Retry-After is kept');
    const probes = await w.events('lost', 'probe');
    assert.deepEqual(probes.filter((p) => p.detail.verdict).map((p) => p.detail.verdict), ['pending', 'pending', 'inconclusive', 'found']);
    assert.equal(await daemon.metric('outboxd_attempts_total', 'outcome="succeeded"'), 1);
    assert.equal(await daemon.metric('outboxd_reconciled_total', 'verdict="found"'), 1);
  } finally {
    provider.stop();
  }
});

// The journal entry is committed before the first byte; nothing in between adds an effect.
for (const failpoint of ['after_lease_before_dispatch', 'after_effect_before_complete']) {
  story(`resend: killed at ${failpoint} of the resend, one effect`, async (w) => {
    const provider = await Provider.start();
    try {
      provider.modes = ['cut'];
      const first = await w.start({ tools: { charge: charge(provider) }, failpoints: `${failpoint}=crash@1` });
      await pay(w, 'killed');
      await eventually('it crashes', () => first.ended, 30_000);
      const left = await w.get('killed');
      assert.deepEqual([left.status, left.attempts], ['unknown', 2]);
      await w.start({ tools: { charge: charge(provider) } });
      const row = await w.settled('killed', 60_000);
      assert.deepEqual([row.status, row.attempts, row.result], ['succeeded', 3, { id: 'ch_1' }]);
      assert.equal(provider.answers.size, 1);
    } finally {
      provider.stop();
    }
  });
}

story('resend: past the window nothing is sent and a person is asked, who cannot make it send either', async (w) => {
  const provider = await Provider.start();
  try {
    provider.modes = Array(50).fill('cut');
    const retry = { max_attempts: 100, initial: '200ms', max: '1s', multiplier: 2, jitter: 0, give_up_after: '1h' };
    await w.start({ tools: { charge: charge(provider, { window: '5s', timeout: '1s', retry }) } });
    await pay(w, 'late');
    const row = await eventually('a person is asked', async () => {
      const one = await w.get('late');
      return one.attention && one;
    }, 60_000);
    assert.deepEqual([row.status, row.attention], ['unknown', 'manual']);
    const sent = provider.of('late');
    assert.ok(sent.length >= 2 && sent.at(-1).at - sent[0].at <= 5000, 'within the window only');
    assert.equal(row.attempts, sent.length);
    const { code } = await w.cli('probe', 'late');
    assert.ok(code === 0 || code === 1);
    await sleep(1500);
    assert.equal(provider.of('late').length, sent.length);
    assert.equal(provider.answers.size, 1);
  } finally {
    provider.stop();
  }
});

const looked = (provider, more = {}) => ({
  ...charge(provider),
  reconcile: {
    type: 'http', url: `${provider.url}/charges/{{ operation.key }}`,
    verdicts: [{ when: { status: 200 }, then: 'found', result: { id: '/id' } }, { when: { status: 404 }, then: 'absent' }],
    ...more,
  },
});
const looks = (provider) => provider.requests.filter((r) => r.method === 'GET');

story('a look-up that is told to wait waits, also over a reload, and so do attempts on that host', async (w) => {
  const provider = await Provider.start();
  try {
    const found = (say) => say(200, { id: 'ch_1' });
    provider.modes = ['cut', (say) => say(429, {}, { 'Retry-After': '6' }), found, found, found];
    const daemon = await w.start({ tools: { charge: looked(provider) } });
    await pay(w, 'told');
    await eventually('it is told to wait', () => looks(provider).length === 1, 30_000);
    await eventually('the metric shows it', async () => (await daemon.metric('outboxd_lane_paused_seconds', 'tool="charge"')) > 6);
    process.kill(daemon.pid, 'SIGHUP');
    await eventually('it is reloaded', async () => (await daemon.metric('outboxd_config_reloads_total', 'ok')) === 1);
    await pay(w, 'other');
    await sleep(2000);
    assert.equal(provider.requests.length, 2, 'neither a look-up nor an attempt');
    assert.equal((await w.settled('told', 60_000)).status, 'succeeded');
    assert.ok(looks(provider)[1].at - looks(provider)[0].at >= 5900);
    assert.equal((await w.settled('other', 60_000)).status, 'succeeded');
  } finally {
    provider.stop();
  }
}, { timeout: 180_000 });

story('a reload says what it means for open operations, a second daemon that it differs', async (w) => {
  const provider = await Provider.start();
  try {
    provider.modes = ['cut', ...Array(500).fill((say) => say(500, {}))];
    const daemon = await w.start({ tools: { charge: looked(provider) } });
    await pay(w, 'open');
    await w.until('open', ['unknown']);
    const file = `${w.dir}/outboxd-0.yaml`;
    const edit = (change) => {
      const document = JSON.parse(readFileSync(file, 'utf8'));
      change(document.tools.charge);
      writeFileSync(file, JSON.stringify(document));
    };
    const drift = (kind) => daemon.metric('outboxd_config_drift_total', `kind="${kind}"`);
    assert.deepEqual([await drift('key'), await drift('request'), await drift('revision')], [0, 0, 0]);
    edit((tool) => { tool.reconcile.verdicts.pop(); });
    process.kill(daemon.pid, 'SIGHUP');
    await eventually('the changed look-up is reported', async () => (await drift('request')) === 1);
    assert.match(daemon.log, /target or reconcile changed while operations are open.*charge.*open.*1/s);
    edit((tool) => { tool.key.prefix = 'p-'; });
    process.kill(daemon.pid, 'SIGHUP');
    await eventually('the changed key is reported', async () => (await drift('key')) === 1);
    assert.equal(await drift('revision'), 0, 'a configuration of one process that follows another is no difference');
    const second = await w.start({ tools: { charge: looked(provider) } });
    await eventually('the other daemon is named', async () => (await second.metric('outboxd_config_drift_total', 'kind="revision"')) === 1);
    assert.match(second.log, /another daemon runs this tool with another configuration.*charge/s);
  } finally {
    provider.stop();
  }
});
