// type: mcp against servers on the SDK that others wrote, over Streamable HTTP and over their standard
// streams: server-everything, which has no effects, and one of our own, which counts them.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Program, eventually, freePort, providerKey, sleep } from './util.mjs';
import { story } from './world.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const everything = path.join(here, 'node_modules/@modelcontextprotocol/server-everything/dist/index.js');
const own = path.join(here, 'mcp_server.mjs');
// A process of node is started for each call where the server is not running already.
const defaults = { timeout: '10s', reconcile: { settle: '500ms', interval: '200ms', max_interval: '500ms' } };

const read = (server, tool, args, outcomes) => ({ effect: 'read', retry: { max_attempts: 1 }, execute: { type: 'mcp', ...server, tool, arguments: args, ...(outcomes && { outcomes }) } });

const issueTool = (server, more = {}) => ({
  effect: 'write',
  execute: {
    type: 'mcp', ...server, tool: 'create_issue', arguments: { title: '{{ arguments.title }}', external_id: '{{ operation.key }}' },
    outcomes: [
      { when: { is_error: false }, then: 'succeeded', result: { id: '/structuredContent/id' } },
      { when: { is_error: true, text: { matches: '^title ' } }, then: 'rejected', code: 'invalid', message: '/content/0/text' },
    ],
  },
  reconcile: {
    type: 'mcp', ...server, tool: 'search_issues', arguments: { external_id: '{{ operation.key }}' },
    items: '/structuredContent/items', match: { '/external_id': '{{ operation.key }}' }, must_equal: { '/title': '{{ arguments.title }}' }, result: { id: '/id' },
  },
  ...more,
});

class Journal {
  constructor(w, name) { this.file = path.join(w.dir, name); }
  issues(id) {
    const lines = existsSync(this.file) ? readFileSync(this.file, 'utf8').trim().split('\n').filter(Boolean) : [];
    return lines.map((line) => JSON.parse(line)).filter((issue) => issue.external_id === providerKey(id));
  }
}

// Our own server on a port, which stays the same when it is started again.
class Running {
  static async start(journal, port = 0) {
    const server = new Running();
    server.program = new Program(process.execPath, [own, journal.file, String(port)]);
    server.port = Number(await eventually('the MCP server listens', () => /^(\d+)\n/.exec(server.program.stdout)?.[1], 60_000));
    return server;
  }
  get url() { return `http://127.0.0.1:${this.port}/mcp`; }
  get sessions() { return this.program.stdout.match(/^session /gm)?.length ?? 0; }
  stop() { return this.program.stop('SIGKILL'); }
}

async function everythingOnPort() {
  const port = await freePort();
  const program = new Program(process.execPath, [everything, 'streamableHttp'], { env: { ...process.env, PORT: String(port) } });
  await eventually('server-everything listens', () => /listening on port/.test(program.output), 60_000);
  return { program, url: `http://127.0.0.1:${port}/mcp` };
}

story('server-everything, over both transports: success, a tool\'s error, an unknown tool, a long run', async (w) => {
  const running = await everythingOnPort();
  try {
    const servers = { http: { url: running.url }, stdio: { command: [process.execPath, everything, 'stdio'] } };
    const tools = {};
    for (const [way, server] of Object.entries(servers)) {
      tools[`echo_${way}`] = read(server, 'echo', { message: '{{ arguments.message }}' });
      tools[`weather_${way}`] = read(server, 'get-structured-content', { location: '{{ arguments.city }}' }, [
        { when: { is_error: false, body: { '/structuredContent/conditions': { exists: true } } }, then: 'succeeded', result: { sky: '/structuredContent/conditions' } },
        { when: { is_error: true, text: { matches: 'Invalid arguments' } }, then: 'rejected', code: 'invalid' },
      ]);
      tools[`none_${way}`] = { ...read(server, 'no-such-tool', {}), effect: 'write', reconcile: { type: 'manual', reason: 'a test' } };
      tools[`long_${way}`] = read(server, 'trigger-long-running-operation', { duration: 1, steps: 5 });
    }
    await w.start({ tools, defaults });
    for (const way of Object.keys(servers)) {
      await w.enqueue(`${way}-echo`, { tool: `echo_${way}`, args: { message: 'a "quoted" {{ thing }} äöü' } });
      await w.enqueue(`${way}-weather`, { tool: `weather_${way}`, args: { city: 'Chicago' } });
      await w.enqueue(`${way}-invalid`, { tool: `weather_${way}`, args: { city: 'Atlantis' } });
      await w.enqueue(`${way}-none`, { tool: `none_${way}`, args: {} });
      await w.enqueue(`${way}-long`, { tool: `long_${way}`, args: {} });
    }
    for (const way of Object.keys(servers)) {
      const echo = await w.settled(`${way}-echo`, 60_000);
      assert.deepEqual([echo.status, echo.result], ['succeeded', { text: 'Echo: a "quoted" {{ thing }} äöü' }], way);
      const weather = await w.settled(`${way}-weather`, 60_000);
      assert.deepEqual([weather.status, weather.result], ['succeeded', { sky: 'Light rain / drizzle' }], way);
      const invalid = await w.settled(`${way}-invalid`, 60_000);
      assert.deepEqual([invalid.status, invalid.error.code], ['failed', 'invalid'], way);
      // The SDK words an unknown tool as an error of the tool: nothing tells it from one that acted.
      await w.until(`${way}-none`, ['unknown'], 60_000);
      await eventually('the log says why', () => new RegExp(`operation_id=${way}-none .*code=tool_error error="MCP error -32602: Tool no-such-tool not found"`).test(w.daemons[0].log));
      assert.equal((await w.settled(`${way}-long`, 60_000)).status, 'succeeded', way);
    }
  } finally {
    await running.program.stop('SIGKILL');
  }
}, { timeout: 180_000 });

story('an MCP tool with effects: lost, late and refused answers over both transports, one effect each, and the key in arguments and _meta', async (w) => {
  const journals = { http: new Journal(w, 'http.jsonl'), stdio: new Journal(w, 'stdio.jsonl') };
  const running = await Running.start(journals.http);
  try {
    const servers = { http: { url: running.url }, stdio: { command: [process.execPath, own, journals.stdio.file] } };
    const tools = {};
    for (const [way, server] of Object.entries(servers)) tools[`issue_${way}`] = issueTool(server, { timeout: '8s' });
    tools.hasty_http = issueTool(servers.http, { timeout: '1500ms' });
    await w.start({ tools, defaults });
    const ask = (way, name, title, tool = `issue_${way}`) => w.enqueue(`${way}-${name}`, { tool, args: { title } });
    for (const way of Object.keys(servers)) {
      await ask(way, 'plain', 'plain');
      await ask(way, 'talks', 'talks much');
      await ask(way, 'refused', 'refused');
      await ask(way, 'late', 'fails late');
      if (way === 'stdio') await ask(way, 'dies', 'dies after it');
    }
    await ask('http', 'hangs', 'hangs', 'hasty_http');
    const expected = { plain: 'succeeded', talks: 'succeeded', late: 'succeeded', dies: 'succeeded', hangs: 'succeeded', refused: 'failed' };
    for (const [way, names] of Object.entries({ http: ['plain', 'talks', 'refused', 'late', 'hangs'], stdio: ['plain', 'talks', 'refused', 'late', 'dies'] })) {
      for (const name of names) {
        const id = `${way}-${name}`;
        const row = await w.settled(id, 90_000);
        const effects = journals[way].issues(id);
        assert.deepEqual([row.status, effects.length], [expected[name], name === 'refused' ? 0 : 1], `${id}: ${JSON.stringify(row)}`);
        const probes = (await w.events(id, 'probe')).map((event) => event.detail.verdict);
        const looked = ['late', 'dies', 'hangs'].includes(name);
        assert.equal(probes.includes('found'), looked, `${id}: ${probes}`);
        if (name === 'refused') continue;
        assert.equal(row.result.id, effects[0].id, id);
        assert.equal(row.attempts, 1, id);
        assert.deepEqual([effects[0].meta['dev.outboxd/idempotency-key'], effects[0].meta['dev.outboxd/operation-id']], [providerKey(id), id]);
      }
    }
    assert.equal(running.sessions, 1, 'all tools of one server share its session');
  } finally {
    await running.stop();
  }
}, { timeout: 180_000 });

story('an MCP tool: the daemon killed between effect and record finds its effect, and sends nothing twice', async (w) => {
  const journals = { http: new Journal(w, 'http.jsonl'), stdio: new Journal(w, 'stdio.jsonl') };
  let running = await Running.start(journals.http);
  try {
    const servers = { http: { url: running.url }, stdio: { command: [process.execPath, own, journals.stdio.file] } };
    const tools = Object.fromEntries(Object.entries(servers).map(([way, server]) => [`issue_${way}`, issueTool(server, { timeout: '6s' })]));
    const settings = { tools, defaults };
    const first = await w.start({ ...settings, failpoints: `after_effect_before_complete=pause:${path.join(w.dir, 'never')}` });
    for (const way of Object.keys(servers)) await w.enqueue(`${way}-crash`, { tool: `issue_${way}`, args: { title: 'crash' } });
    for (const way of Object.keys(servers)) await eventually(`${way} has its effect`, () => journals[way].issues(`${way}-crash`).length === 1, 60_000);
    await sleep(300);
    await first.kill();
    for (const way of Object.keys(servers)) assert.equal((await w.get(`${way}-crash`)).status, 'attempting', way);
    // Neither knows the other's sessions: a server that was restarted forgets them as well.
    const { port } = running;
    await running.stop();
    running = await Running.start(journals.http, port);
    const second = await w.start(settings);
    for (const way of Object.keys(servers)) {
      const row = await w.settled(`${way}-crash`, 60_000);
      assert.deepEqual([row.status, row.attempts, row.result.id], ['succeeded', 1, 1], way);
      assert.deepEqual((await w.events(`${way}-crash`, 'probe')).map((event) => event.detail.verdict).at(-1), 'found', way);
      assert.equal(journals[way].issues(`${way}-crash`).length, 1, way);
    }
    // The session of a server that is restarted while the daemon runs is opened anew.
    await running.stop();
    running = await Running.start(journals.http, port);
    await w.enqueue('http-again', { tool: 'issue_http', args: { title: 'again' } });
    assert.equal((await w.settled('http-again', 60_000)).status, 'succeeded');
    assert.equal(journals.http.issues('http-again').length, 1);

    // Killed while the started server works: the keeper ends it with the daemon.
    await w.enqueue('stdio-hangs', { tool: 'issue_stdio', args: { title: 'hangs' } });
    const [effect] = await eventually('it has its effect', () => journals.stdio.issues('stdio-hangs').length === 1 && journals.stdio.issues('stdio-hangs'), 60_000);
    await second.kill();
    await eventually('the server is gone', () => {
      try {
        process.kill(effect.pid, 0);
        return false;
      } catch {
        return true;
      }
    });
    await w.start(settings);
    assert.equal((await w.settled('stdio-hangs', 60_000)).status, 'succeeded');
    assert.equal(journals.stdio.issues('stdio-hangs').length, 1);
  } finally {
    await running.stop();
  }
}, { timeout: 240_000 });
