// The MCP face as clients see it that others wrote: the official TypeScript SDK (the revisions that
// open a session), its successor (the current revision), and the inspector's command-line mode; each
// lists and calls tools over both transports.
import assert from 'node:assert/strict';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { closableTool } from '../e2e/config.mjs';
import { sleep, run } from '../e2e/util.mjs';
import { binary, story } from '../e2e/world.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const inspector = path.join(here, 'node_modules/@modelcontextprotocol/inspector-cli/build/index.js');
const token = 'a-token-that-is-long-enough';
const run_key = 'dev.outboxd/run-id';

async function open(w) {
  const settings = { tools: { create_ticket: { ...closableTool(w.desk.url), expose: true } }, admin: { token_file: w.write('token', `${token}\n`) }, mcp: { run_header: 'Agent-Run' } };
  const daemon = await w.start(settings);
  return { url: `http://127.0.0.1:${daemon.port}/mcp`, args: ['mcp', '-c', w.configure(settings), '--wait', '20s'] };
}

const headers = { Authorization: `Bearer ${token}` };
const transports = (w, { url, args }, stdio, http) => ({
  stdio: () => new stdio({ command: binary, args, env: w.env, stderr: 'pipe' }),
  http: () => new http(new URL(url), { requestInit: { headers } }),
});

// What any client must be able to do: list, call, call again, hear of progress, be refused, undo.
async function exercise(w, client, run) {
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((tool) => tool.name), ['create_ticket', 'outbox_compensate', 'outbox_status']);
  const call = (name, args, meta = { [run_key]: run }) => client.callTool({ name, arguments: args, _meta: meta });
  const [first, second] = await Promise.all([call('create_ticket', { title: run }), sleep(3).then(() => call('create_ticket', { title: run }))]);
  const told = [first, second].map((answer) => answer.structuredContent);
  assert.deepEqual([told[0].truth, told[0].operation_id, told[0].result], ['succeeded', told[1].operation_id, told[1].result]);
  assert.deepEqual(told.map((one) => one.replayed).sort(), [false, true]);
  assert.equal((await w.desk.tickets(told[0].operation_id)).length, 1);

  assert.equal((await call('outbox_status', { operation_id: told[0].operation_id }, {})).structuredContent.status, 'succeeded');
  const undone = await call('outbox_compensate', { operation_id: told[0].operation_id, name: 'close' }, {});
  assert.deepEqual([undone.isError, undone.structuredContent.result], [false, { state: 'closed' }]);
  for (const refused of [await call('create_ticket', { title: 'no run' }, {}), await call('create_ticket', { title: 'x'.repeat(201) })]) {
    assert.equal(refused.isError, true);
    assert.match(refused.content[0].text, /^Nothing was done/);
  }
  await assert.rejects(call('burn', {}), /Unknown tool|-32602/);
}

for (const transport of ['stdio', 'http']) {
  story(`the SDK's client over ${transport}`, async (w) => {
    const client = new Client({ name: 'test', version: '1.0.0' });
    await client.connect(transports(w, await open(w), StdioClientTransport, StreamableHTTPClientTransport)[transport]());
    try {
      assert.equal(client.getServerVersion().name, 'outboxd');
      assert.match(client.getInstructions(), /outbox/);
      await client.ping();
      await exercise(w, client, `sdk-${transport}`);

      const id = (await w.one(`SELECT outbox.derive_id('create_ticket', '{"title": "slow"}', 'p') AS id`)).id;
      await w.desk.plan(id, { posts: ['slow'] });
      const heard = [];
      const slow = await client.callTool(
        { name: 'create_ticket', arguments: { title: 'slow' }, _meta: { [run_key]: 'p' } }, undefined, { onprogress: (p) => heard.push(p), resetTimeoutOnProgress: true });
      assert.equal(slow.structuredContent.truth, 'succeeded');
      assert.ok(heard.length >= 1 && heard[0].progress === 1, JSON.stringify(heard));
      // Its own time-out, and the retry that every agent makes then.
      const late = (await w.one(`SELECT outbox.derive_id('create_ticket', '{"title": "late"}', 'p') AS id`)).id;
      await w.desk.plan(late, { posts: ['slow'] });
      const ask = (options) => client.callTool({ name: 'create_ticket', arguments: { title: 'late' }, _meta: { [run_key]: 'p' } }, undefined, options);
      await assert.rejects(ask({ timeout: 300 }), /timed out/i);
      assert.deepEqual([(await ask()).structuredContent.truth, (await w.desk.posts(late)).length], ['succeeded', 1]);
    } finally {
      await client.close();
    }
  });

  story(`the current revision's client over ${transport}`, async (w, t) => {
    if (Number(process.versions.node.split('.')[0]) < 20) return t.skip(`@modelcontextprotocol/client needs Node 20, this is ${process.version}`);
    const { Client: Modern, StreamableHTTPClientTransport: Http } = await import('@modelcontextprotocol/client');
    const { StdioClientTransport: Stdio } = await import('@modelcontextprotocol/client/stdio');
    const opened = await open(w);
    for (const mode of [{ pin: '2026-07-28' }, 'auto', 'legacy']) {
      const client = new Modern({ name: 'test', version: '1.0.0' }, { versionNegotiation: { mode } });
      await client.connect(transports(w, opened, Stdio, Http)[transport]());
      try {
        await exercise(w, client, `modern-${transport}-${mode.pin ?? mode}`);
      } finally {
        await client.close();
      }
    }
    return undefined;
  });

  story(`the inspector's command line over ${transport}`, async (w) => {
    const { url, args } = await open(w);
    const target = transport === 'stdio' ? [binary, ...args] : [url];
    const inspect = async (...more) => {
      // --header takes all that follows it; its own version is looked for where it is started.
      const options = transport === 'http' ? [...more, '--header', `Authorization: Bearer ${token}`, 'Agent-Run: inspected'] : [...more, '--tool-metadata', `${run_key}=inspected`];
      const { code, out, text } = await run(process.execPath, [inspector, ...target, ...options], { cwd: path.dirname(inspector), env: { ...w.env, NODE_NO_WARNINGS: '1' }, timeout: 60_000 });
      assert.equal(code, 0, text);
      return JSON.parse(out);
    };
    const { tools } = await inspect('--method', 'tools/list');
    assert.deepEqual(tools.map((tool) => tool.name), ['create_ticket', 'outbox_compensate', 'outbox_status']);
    for (const replayed of [false, true]) {
      const { structuredContent } = await inspect('--method', 'tools/call', '--tool-name', 'create_ticket', '--tool-arg', 'title=seen');
      assert.deepEqual([structuredContent.truth, structuredContent.replayed, structuredContent.result], ['succeeded', replayed, { id: 'T-1' }]);
    }
  });
}
