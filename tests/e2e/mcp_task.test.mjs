// type: mcp where the call is answered with a task, against servers on the SDK that others wrote: followed to
// its end, kept before it is followed, and asked about first by whoever has to find out what came of it.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Program, eventually, freePort, providerKey } from './util.mjs';
import { story } from './world.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const own = path.join(here, 'mcp_task_server.mjs');
const everything = path.join(here, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');
const defaults = { timeout: '10s', reconcile: { settle: '500ms', interval: '200ms', max_interval: '500ms' } };

const issueTool = (server, more = {}) => ({
  effect: 'write',
  execute: {
    type: 'mcp', ...server, tool: 'create_issue', arguments: { title: '{{ arguments.title }}', external_id: '{{ operation.key }}' },
    outcomes: [{ when: { is_error: false }, then: 'succeeded', result: { id: '/structuredContent/id' } }],
  },
  reconcile: {
    type: 'mcp', ...server, tool: 'search_issues', arguments: { external_id: '{{ operation.key }}' },
    items: '/structuredContent/items', match: { '/external_id': '{{ operation.key }}' }, result: { id: '/id' },
  },
  ...more,
});

class Journal {
  constructor(w, name) { this.file = path.join(w.dir, name); }
  lines() { return existsSync(this.file) ? readFileSync(this.file, 'utf8').trim().split('\n').filter(Boolean).map((line) => JSON.parse(line)) : []; }
  issues(id) { return this.lines().filter((line) => line.id && line.external_id === providerKey(id)); }
  searches(id) { return this.lines().filter((line) => line.search === providerKey(id)).length; }
  go() { writeFileSync(`${this.file}.go`, ''); }
}

class Running {
  static async start(journal, port = 0) {
    const server = new Running();
    server.program = new Program(process.execPath, [own, journal.file, String(port)]);
    server.port = Number(await eventually('the MCP server listens', () => /^(\d+)\n/.exec(server.program.stdout)?.[1], 60_000));
    return server;
  }
  get url() { return `http://127.0.0.1:${this.port}/mcp`; }
  stop() { return this.program.stop('SIGKILL'); }
}

const verdicts = async (w, id) => (await w.events(id, 'probe')).map((event) => event.detail.verdict).filter(Boolean);
const handles = async (w, id) => (await w.events(id, 'probe')).map((event) => event.detail.handle).filter(Boolean);

story('an MCP task is followed over both transports; its ends are success, a failure, a question, a cancellation', async (w) => {
  const journals = { http: new Journal(w, 'http.jsonl'), stdio: new Journal(w, 'stdio.jsonl') };
  const running = await Running.start(journals.http);
  try {
    const servers = { http: { url: running.url }, stdio: { command: [process.execPath, own, journals.stdio.file] } };
    await w.start({ tools: Object.fromEntries(Object.entries(servers).map(([way, server]) => [`issue_${way}`, issueTool(server)])), defaults });
    const ends = { quick: 'succeeded', slow: 'succeeded', fails: 'succeeded', cancelled: 'succeeded', forgotten: 'succeeded', asks: 'unknown' };
    for (const way of Object.keys(servers)) {
      for (const title of Object.keys(ends)) await w.enqueue(`${way}-${title}`, { tool: `issue_${way}`, args: { title } });
    }
    for (const way of Object.keys(servers)) {
      for (const [title, status] of Object.entries(ends)) {
        const id = `${way}-${title}`;
        const row = title === 'asks' ? await w.until(id, ['unknown'], 60_000) : await w.settled(id, 60_000);
        assert.equal(row.status, status, `${id}: ${JSON.stringify(row)}`);
        const effects = journals[way].issues(id);
        assert.deepEqual([effects.length, row.attempts], [1, 1], id);
        assert.deepEqual(await handles(w, id), [effects[0].task], id);
        if (title === 'asks') {
          const asked = await w.events(id, 'attention');
          assert.deepEqual([asked.length, asked[0].detail.reason, asked[0].detail.code], [1, 'provider', 'input_required'], id);
          continue;
        }
        assert.equal(row.result.id, effects[0].id, id);
        // What the task tells needs no look-up; what it does not, the look-up finds.
        const told = ['quick', 'slow'].includes(title);
        assert.deepEqual([journals[way].searches(id) > 0, (await verdicts(w, id)).length > 0], [!told, !told], id);
      }
    }
  } finally {
    await running.stop();
  }
}, { timeout: 240_000 });

story('an MCP task and a daemon that is killed: while it is followed, before its end is recorded, before it was told of', async (w) => {
  const journal = new Journal(w, 'http.jsonl');
  let running = await Running.start(journal);
  try {
    const settings = { tools: { issue: issueTool({ url: running.url }, { timeout: '4s' }) }, defaults };
    const kill = async (names, ready, more = {}) => {
      const daemon = await w.start({ ...settings, ...more });
      for (const name of names) await w.enqueue(name, { tool: 'issue', args: { title: name } });
      for (const name of names) await eventually(`${name} is ready`, () => ready(name), 60_000);
      await daemon.kill();
    };
    await kill(['long-followed'], async (name) => (await handles(w, name)).length === 1);
    await kill(['untold'], (name) => journal.issues(name).length === 1);
    await kill(['quick-unrecorded'], async (name) => (await handles(w, name)).length === 1, { failpoints: `after_effect_before_complete=pause:${path.join(w.dir, 'never')}` });
    for (const name of ['long-followed', 'untold', 'quick-unrecorded']) assert.notEqual((await w.get(name)).status, 'succeeded', name);
    await w.start(settings);
    // It is at work: the look-up, which would find the effect, is not asked at all.
    await eventually('the task is known to be at work', async () => (await verdicts(w, 'long-followed')).filter((v) => v === 'pending').length >= 2, 60_000);
    journal.go();
    for (const [name, looked] of [['long-followed', false], ['quick-unrecorded', false], ['untold', true]]) {
      const row = await w.settled(name, 60_000);
      const effects = journal.issues(name);
      assert.deepEqual([row.status, effects.length, row.attempts, row.result.id], ['succeeded', 1, 1, effects[0].id], `${name}: ${JSON.stringify(row)}`);
      assert.equal((await verdicts(w, name)).at(-1), 'found', name);
      assert.equal(journal.searches(name) > 0, looked, name);
    }
    // A server that lost its tasks with its process does not know it: that proves nothing, and the look-up finds it.
    const { port } = running;
    await w.enqueue('slow-restarted', { tool: 'issue', args: { title: 'slow restarted' } });
    await eventually('its task is kept', async () => (await handles(w, 'slow-restarted')).length === 1, 60_000);
    await running.stop();
    running = await Running.start(journal, port);
    const row = await w.settled('slow-restarted', 60_000);
    assert.deepEqual([row.status, row.attempts, journal.issues('slow-restarted').length, journal.searches('slow-restarted') > 0], ['succeeded', 1, 1, true]);
  } finally {
    await running.stop();
  }
}, { timeout: 240_000 });

story('server-everything runs a tool as a task, and the call waits for what it says', async (w) => {
  const port = await freePort();
  const program = new Program(process.execPath, [everything, 'streamableHttp'], { env: { ...process.env, PORT: String(port) } });
  try {
    await eventually('server-everything listens', () => /listening on port/.test(program.output), 60_000);
    const research = { effect: 'read', retry: { max_attempts: 1 }, timeout: '60s', execute: { type: 'mcp', url: `http://127.0.0.1:${port}/mcp`, tool: 'simulate-research-query', arguments: { topic: '{{ arguments.topic }}' } } };
    await w.start({ tools: { research }, defaults });
    await w.enqueue('r', { tool: 'research', args: { topic: 'outboxes' } });
    const row = await w.settled('r', 90_000);
    assert.equal(row.status, 'succeeded');
    assert.match(row.result.text, /outboxes/);
  } finally {
    await program.stop('SIGKILL');
  }
}, { timeout: 180_000 });
