// What belongs to one transport of the MCP face: odd messages, revisions, ends, who may ask.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import http from 'node:http';
import net from 'node:net';
import { ticketTool } from './config.mjs';
import { HttpAgent, StdioAgent, inRun, modern, modernMeta, told } from './mcp_client.mjs';
import { eventually, run as runProgram, sleep } from './util.mjs';
import { binary, story } from './world.mjs';

const token = 'a-token-that-is-long-enough';
const tools = (w) => ({ create_ticket: { ...ticketTool(w.desk.url), expose: true } });
const admin = (w) => ({ token_file: w.write('token', `${token}\n`) });
const derived = async (w, title, run = 'r') => (await w.one(`SELECT outbox.derive_id('create_ticket', $1::jsonb, $2) AS id`, [JSON.stringify({ title }), run])).id;

const odd = {
  'no JSON': ['{"jsonrpc": "2.0", "id": 1, "method"', -32700],
  'a batch': ['[{"jsonrpc": "2.0", "id": 1, "method": "ping"}]', -32600],
  'an empty batch': ['[]', -32600],
  'a text': ['"ping"', -32600],
  'not JSON-RPC': ['{"id": 1, "method": "ping"}', -32600],
  'the wrong version': ['{"jsonrpc": "1.0", "id": 1, "method": "ping"}', -32600],
  'an id of null': ['{"jsonrpc": "2.0", "id": null, "method": "ping"}', -32600],
  'an id with a fraction': ['{"jsonrpc": "2.0", "id": 1.5, "method": "ping"}', -32600],
  'no method': ['{"jsonrpc": "2.0", "id": 1}', -32600],
  'a method that is no text': ['{"jsonrpc": "2.0", "id": 1, "method": 7}', -32600],
  'params that are a list': ['{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}', -32602],
  '_meta that is a text': ['{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"_meta": "x"}}', -32602],
  'an unknown method': ['{"jsonrpc": "2.0", "id": 1, "method": "resources/list"}', -32601],
  'discover without its revision': ['{"jsonrpc": "2.0", "id": 1, "method": "server/discover"}', -32602],
  'a lone surrogate': ['{"jsonrpc": "2.0", "id": 1, "method": "\\ud800"}', -32700],
  'nested without end': ['['.repeat(100_000), -32700],
};

story('stdio: odd messages are answered one by one, and the next is served', async (w) => {
  await w.migrate();
  const agent = new StdioAgent(w, w.configure({ tools: tools(w) }));
  let seen = 0;
  for (const [what, [text, code]] of Object.entries(odd)) {
    agent.write(`${text}\n`);
    const answer = await eventually(what, () => agent.messages.length > seen && agent.messages[seen]);
    seen += 1;
    assert.equal(answer.error?.code, code, `${what}: ${JSON.stringify(answer)}`);
    assert.equal('id' in answer, /^{.*"id": 1[,}]/.test(text) && (code !== -32700 || what === 'a lone surrogate'), what);
  }
  agent.write(`{"jsonrpc": "2.0", "id": "long", "method": "${'x'.repeat(9 * 1024 * 1024)}"}\n`);
  await eventually('too long', () => agent.messages.length > seen && /8 MiB/.test(agent.messages[seen].error.message), 60_000);
  // Neither notifications nor answers are answered.
  agent.write('{"jsonrpc": "2.0", "method": "notifications/initialized"}\n\n \n{"jsonrpc": "2.0", "id": 9, "result": {}}\n');
  agent.send({ method: 'notifications/cancelled', params: { requestId: 'nobody' } });
  agent.send({ method: 'tools/call', params: { name: 'create_ticket', arguments: {} } });
  assert.deepEqual((await agent.ask('ping', {})).result, {});
  assert.equal(agent.messages.length, seen + 2);
  assert.deepEqual(await agent.close(), { code: 0, signal: null });
});

story('stdio: the current revision and the two before it', async (w) => {
  await w.migrate();
  const agent = new StdioAgent(w, w.configure({ tools: tools(w) }));
  for (const [wanted, spoken] of [['2025-11-25', '2025-11-25'], ['2025-06-18', '2025-06-18'], ['2024-11-05', '2025-11-25'], ['2999-01-01', '2025-11-25'], [modern, '2025-11-25']]) {
    const { result } = await agent.ask('initialize', { protocolVersion: wanted, capabilities: {}, clientInfo: { name: 't', version: '1' } });
    assert.equal(result.protocolVersion, spoken);
    assert.deepEqual([result.capabilities, result.serverInfo.name], [{ tools: {} }, 'outboxd']);
    assert.match(result.instructions, /do not report failure/);
  }
  const { result } = await agent.ask('server/discover', { _meta: modernMeta() });
  assert.deepEqual(result.supportedVersions, [modern, '2025-11-25', '2025-06-18']);
  assert.deepEqual([result.resultType, result.cacheScope, typeof result.ttlMs], ['complete', 'private', 'number']);
  assert.equal(result._meta['io.modelcontextprotocol/serverInfo'].name, 'outboxd');
  const listed = (await agent.ask('tools/list', { _meta: modernMeta() })).result;
  assert.deepEqual([listed.resultType, listed.cacheScope, listed.tools.length], ['complete', 'private', 2]);
  assert.equal((await agent.ask('ping', { _meta: modernMeta() })).error.code, -32601, 'modern has no ping');
  const old = await agent.ask('tools/list', { _meta: { ...modernMeta(), 'io.modelcontextprotocol/protocolVersion': '1900-01-01' } });
  assert.deepEqual([old.error.code, old.error.data.requested, old.error.data.supported[0]], [-32022, '1900-01-01', modern]);
  const bare = await agent.ask('tools/list', { _meta: { 'io.modelcontextprotocol/protocolVersion': modern } });
  assert.equal(bare.error.code, -32602, 'without its capabilities');
});

story('stdio: cancelling a call, or the end of the input, cancels no attempt', async (w) => {
  await w.start({ tools: tools(w), defaults: { timeout: '30s' } });
  for (const title of ['cancelled', 'left', 'killed']) await w.desk.plan(await derived(w, title), { posts: ['hold'] });
  const agent = new StdioAgent(w, w.configure({ tools: tools(w) }), ['--run-id', 'r', '--wait', '10m']);
  agent.send({ id: 'c', method: 'tools/call', params: { name: 'create_ticket', arguments: { title: 'cancelled' } } });
  await eventually('it is under way', async () => (await w.desk.tickets(await derived(w, 'cancelled'))).length === 1);
  agent.send({ method: 'notifications/cancelled', params: { requestId: 'c', reason: 'enough' } });
  assert.deepEqual((await agent.ask('ping', {})).result, {});

  agent.send({ id: 'l', method: 'tools/call', params: { name: 'create_ticket', arguments: { title: 'left' } } });
  await eventually('it is under way', async () => (await w.desk.tickets(await derived(w, 'left'))).length === 1);
  assert.deepEqual(await agent.close(), { code: 0, signal: null });
  assert.equal(agent.messages.find((m) => m.id === 'c'), undefined, 'nobody wanted this answer');
  const left = told(agent.messages.find((m) => m.id === 'l'));
  assert.deepEqual([left.truth, left.status], ['pending', 'attempting'], 'what is known at the end');

  // A client that just disappears, in the middle of a call.
  const other = new StdioAgent(w, w.configure({ tools: tools(w) }), ['--run-id', 'r', '--wait', '10m']);
  other.send({ id: 1, method: 'tools/call', params: { name: 'create_ticket', arguments: { title: 'killed' } } });
  await eventually('it is under way', async () => (await w.desk.tickets(await derived(w, 'killed'))).length === 1);
  await other.program.stop('SIGKILL');
  for (const title of ['cancelled', 'left', 'killed']) {
    const id = await derived(w, title);
    await w.desk.release(id);
    assert.equal((await w.settled(id)).status, 'succeeded', title);
    assert.equal((await w.desk.posts(id)).length, 1);
  }
});

story('stdio: a call that comes with the end of the input is still recorded, and a signal ends it cleanly', async (w) => {
  await w.start({ tools: tools(w) });
  const file = w.configure({ tools: tools(w) });
  const line = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'create_ticket', arguments: { title: 'last word' } } });
  const { code, out } = await runProgram(binary, ['mcp', '-c', file, '--run-id', 'r'], { env: w.env, input: line });
  assert.equal(code, 0);
  assert.equal(told(JSON.parse(out)).operation_id, await derived(w, 'last word'));
  assert.equal((await w.settled(await derived(w, 'last word'))).status, 'succeeded');
  const agent = new StdioAgent(w, file);
  await agent.ask('ping', {});
  assert.deepEqual(await agent.program.stop('SIGTERM'), { code: 0, signal: null });
});

story('stdio: a host that reads nothing any more does not keep the process from ending', async (w) => {
  await w.migrate();
  for (const end of ['SIGTERM', 'SIGINT', 'input']) {
    const child = spawn(binary, ['mcp', '-c', w.configure({ tools: tools(w) })], { env: w.env, stdio: ['pipe', 'pipe', 'ignore'] });
    const ended = new Promise((resolve) => { child.on('exit', (code, signal) => resolve({ code, signal })); });
    try {
      child.stdin.on('error', () => {});
      child.stdout.pause();  // 60 lists of tools are more than a pipe or a socket holds
      for (let n = 0; n < 60; n++) child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: n, method: n ? 'tools/list' : 'ping', params: { _meta: { pad: 'x'.repeat(10_000) } } })}\n`);
      child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id: 'y'.repeat(1024 * 1024), method: 'ping' })}\n`);
      await sleep(500);
      if (end === 'input') child.stdin.end(); else child.kill(end);
      const result = await Promise.race([ended, sleep(45_000).then(() => 'it stands')]);
      assert.deepEqual(result, { code: 0, signal: null }, end);
    } finally {
      child.kill('SIGKILL');
    }
  }
});

story('stdio: a planner\'s role is enough, and no secret of a tool is needed', async (w) => {
  await w.start({ tools: tools(w) });
  const role = `agent_${process.pid}`;
  await w.db.query(`CREATE ROLE ${role} LOGIN IN ROLE outbox_planner`);
  try {
    const agent = new StdioAgent(w, w.configure({ tools: tools(w) }), ['--run-id', 'r'], { ...w.env, OUTBOXD_DATABASE: w.dsn.replace('user=postgres', `user=${role}`) });
    const done = told(await agent.call('create_ticket', { title: 'as a planner' }));
    assert.deepEqual([done.truth, done.result], ['succeeded', { id: 'T-1' }]);
    assert.equal(told(await agent.call('outbox_status', { operation_id: done.operation_id })).truth, 'succeeded');
    assert.equal((await agent.close()).code, 0);
  } finally {
    await w.db.query(`DROP ROLE ${role}`);
  }
});

story('stdio: calls that wait are bounded; the end answers them all', async (w) => {
  await w.migrate();  // and no daemon: everything waits
  await w.db.query(`INSERT INTO outbox.tool (tool, effect, revision) VALUES ('create_ticket', 'write', 'r')`);
  const agent = new StdioAgent(w, w.configure({ tools: tools(w) }), ['--run-id', 'r', '--wait', '10m']);
  for (let n = 0; n < 300; n++) agent.send({ id: n, method: 'tools/call', params: { name: 'create_ticket', arguments: { title: `t${n}` } } });
  await eventually('the rest is refused', () => agent.messages.length === 44, 60_000);
  for (const { result } of agent.messages) assert.match(result.content[0].text, /^Nothing was done: too many calls/);
  await eventually('the others are recorded', async () => (await w.one('SELECT count(*)::int AS n FROM outbox.operation')).n === 256, 60_000);
  assert.equal((await agent.close()).code, 0);
  assert.equal(agent.messages.filter(({ result }) => result.structuredContent.truth === 'pending').length, 256);
});

story('stdio: what cannot be offered is said at once', async (w) => {
  const own = { effect: 'read', expose: true, execute: { type: 'log' } };
  for (const [config, args, pattern] of [
    [{ tools: { note: { effect: 'read', execute: { type: 'log' } } } }, [], /no tool is offered: give it expose: true/],
    [{ tools: tools(w) }, ['--tool', 'create_tickets'], /no tool create_tickets; did you mean create_ticket\?/],
    [{ tools: { outbox_status: own } }, [], /outbox_status.*expose/s],
    [{ tools: tools(w), mcp: { run_header: 'Mcp-Session-Id' } }, [], /run_header/],
  ]) {
    const { code, text } = await w.cli('mcp', '-c', w.configure(config), ...args);
    assert.equal(code, 3, text);
    assert.match(text, pattern);
  }
  assert.equal((await w.cli('mcp')).code, 2);
  assert.equal((await w.cli('mcp', '-c', w.configure({ tools: tools(w) }), '--wait', 'long')).code, 2);
});

story('http: who may ask, with which headers', async (w) => {
  const daemon = await w.start({ tools: tools(w), admin: admin(w), mcp: { run_header: 'Agent-Run' } });
  const agent = new HttpAgent(daemon.port, token);
  const list = { id: 1, method: 'tools/list' };
  const status = async (headers, message = list) => (await agent.send(message, headers)).status;
  assert.equal(await status({}), 200);
  assert.equal(await status({ Authorization: '' }), 401);
  assert.equal(await status({ Authorization: 'Bearer wrong-token-of-some-length' }), 401);
  assert.equal(await status({ Origin: 'https://evil.example' }), 403);
  assert.equal(await status({ 'Content-Type': 'text/plain' }), 415);
  assert.equal(await status({ Accept: 'text/html' }), 406);
  const host = await new Promise((resolve, reject) => {
    const request = http.request({ port: daemon.port, method: 'POST', path: '/mcp', headers: { ...agent.headers, Host: 'evil.example' } }, (response) => { response.resume(); resolve(response.statusCode); });
    request.on('error', reject).end(JSON.stringify({ jsonrpc: '2.0', ...list }));
  });
  assert.equal(host, 421);
  for (const method of ['GET', 'DELETE', 'PUT']) {
    const response = await fetch(agent.url, { method, headers: agent.headers });
    assert.deepEqual([response.status, response.headers.get('allow')], [405, 'POST'], method);
  }
  const response = await agent.post({ jsonrpc: '2.0', ...list }, { 'Mcp-Session-Id': 'abc', 'Last-Event-ID': '7' });
  assert.deepEqual([response.status, response.headers.get('mcp-session-id')], [200, null]);

  for (const [what, [text, code]] of Object.entries(odd)) {
    const reply = await agent.post(text);
    const body = await reply.json();
    assert.equal(body.error.code, code, what);
    assert.equal(reply.status, code === -32601 ? 200 : 400, what);
  }
  assert.equal((await agent.post('x'.repeat(3 * 1024 * 1024)).catch(() => ({ status: 413 }))).status, 413);
  for (const message of [{ method: 'notifications/initialized' }, { id: 3, result: {} }, { method: 'notifications/cancelled', params: { requestId: 1 } }]) {
    const { status: code, message: body } = await agent.send(message);
    assert.deepEqual([code, body], [202, '']);
  }
  assert.equal(await status({ 'MCP-Protocol-Version': '2025-06-18' }), 200);
  assert.equal(await status({ 'MCP-Protocol-Version': '1900-01-01' }), 400);
  assert.equal(await status({ 'MCP-Protocol-Version': modern }), 400, 'modern, but the body does not say so');

  const call = { id: 5, method: 'tools/call', params: { name: 'create_ticket', arguments: { title: 'x' }, _meta: modernMeta(inRun('r')) } };
  const right = { 'MCP-Protocol-Version': modern, 'Mcp-Method': 'tools/call', 'Mcp-Name': 'create_ticket' };
  for (const [wrong, value] of [['MCP-Protocol-Version', '2025-11-25'], ['MCP-Protocol-Version', undefined], ['Mcp-Method', 'tools/list'], ['Mcp-Method', undefined], ['Mcp-Name', 'other'], ['Mcp-Name', undefined], ['Mcp-Name', '=?base64?!?=']]) {
    const headers = { ...right, [wrong]: value };
    if (value === undefined) delete headers[wrong];
    const { status: code, message } = await agent.send(call, headers);
    assert.deepEqual([code, message.error.code, message.id], [400, -32020, 5], `${wrong}: ${value}`);
  }
  const done = await agent.send(call, { ...right, 'Mcp-Name': `=?base64?${Buffer.from('create_ticket').toString('base64')}?=` });
  assert.deepEqual([done.status, done.message.result.resultType, told(done.message).truth], [200, 'complete', 'succeeded']);
  const unknown = await agent.send({ id: 6, method: 'resources/list', params: { _meta: modernMeta() } }, { 'MCP-Protocol-Version': modern, 'Mcp-Method': 'resources/list' });
  assert.deepEqual([unknown.status, unknown.message.error.code], [404, -32601]);

  // The run of the header; the call's own is stronger.
  const title = 'of a run';
  const run = async (headers, meta) => told((await agent.send({ id: 7, method: 'tools/call', params: { name: 'create_ticket', arguments: { title }, _meta: meta } }, headers)).message).operation_id;
  assert.equal(await run({ 'Agent-Run': 'monday' }, {}), await derived(w, title, 'monday'));
  assert.equal(await run({ 'agent-run': 'monday' }, inRun('tuesday')), await derived(w, title, 'tuesday'));
});

story('http: without a token file, or without an exposed tool, there is nothing', async (w) => {
  const open = await w.start({ tools: tools(w) });
  assert.equal((await new HttpAgent(open.port).send({ id: 1, method: 'tools/list' })).status, 403);
  const none = await w.start({ tools: { create_ticket: ticketTool(w.desk.url) }, admin: admin(w) });
  const { status, message } = await new HttpAgent(none.port, token).send({ id: 1, method: 'tools/list' });
  assert.deepEqual([status, /expose: true/.test(JSON.stringify(message))], [404, true]);
});

story('http: agents have a token of their own, and it steers nothing', async (w) => {
  const own = 'the-token-of-the-agents';
  const daemon = await w.start({ tools: { create_ticket: { ...tools(w).create_ticket, title: 'Open a ticket' } }, admin: admin(w), mcp: { token_file: w.write('agents', `${own}\n`) } });
  const agent = new HttpAgent(daemon.port, own);
  const done = told(await agent.call('create_ticket', { title: 'own' }, inRun('r')));
  assert.equal(done.truth, 'succeeded');
  assert.equal((await agent.ask('tools/list', {})).result.tools[0].title, 'Open a ticket');
  assert.equal((await new HttpAgent(daemon.port, token).send({ id: 1, method: 'tools/list' })).status, 401, 'the page\'s token is none here');
  const steer = (key) => fetch(`http://127.0.0.1:${daemon.port}/api/v1/tools/create_ticket/pause`, {
    method: 'POST', headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' }, body: JSON.stringify({ reason: 'x' }),
  });
  const look = (key) => fetch(`http://127.0.0.1:${daemon.port}/api/v1/operations/${done.operation_id}`, { headers: { Authorization: `Bearer ${key}` } });
  assert.deepEqual([(await steer(own)).status, (await look(own)).status], [401, 401]);
  assert.deepEqual([(await steer(token)).status, (await look(token)).status], [200, 200]);
});

story('http: progress comes as events; a client that leaves loses nothing', async (w) => {
  const daemon = await w.start({ tools: tools(w), admin: admin(w), defaults: { timeout: '30s' } });
  const agent = new HttpAgent(daemon.port, token);
  const call = async (title, meta) => ({ id: title, method: 'tools/call', params: { name: 'create_ticket', arguments: { title }, _meta: inRun('r', meta) } });
  await w.desk.plan(await derived(w, 'slow'), { posts: ['hold'] });
  await w.desk.plan(await derived(w, 'gone'), { posts: ['hold'] });
  const slow = agent.send(await call('slow', { progressToken: 'p-1' }));
  await sleep(2500);
  await w.desk.release(await derived(w, 'slow'));
  const { status, events, message } = await slow;
  assert.equal(status, 200);
  assert.ok(events.length >= 3, JSON.stringify(events));
  const progress = events.slice(0, -1);
  for (const [n, { method, params }] of progress.entries()) {
    assert.deepEqual([method, params.progressToken, params.progress], ['notifications/progress', 'p-1', n + 1]);
    assert.equal(params.message, 'It is being carried out.');
  }
  assert.deepEqual([message.id, told(message).truth], ['slow', 'succeeded']);
  assert.ok((await agent.send(await call('quick', {}))).type.startsWith('application/json'), 'nobody asked for progress');

  const leaving = new AbortController();
  const gone = agent.send(await call('gone', { progressToken: 1 }), {}, { signal: leaving.signal });
  await eventually('it is under way', async () => (await w.desk.tickets(await derived(w, 'gone'))).length === 1);
  leaving.abort();
  await assert.rejects(gone);
  await w.desk.release(await derived(w, 'gone'));
  const retry = told((await agent.send(await call('gone', {}))).message);
  assert.deepEqual([retry.truth, retry.replayed], ['succeeded', true]);
  assert.equal((await w.desk.posts(retry.operation_id)).length, 1);
});

story('http: calls that wait are bounded, and keep no probe out, whoever has gone', async (w) => {
  const daemon = await w.start({ tools: tools(w), admin: admin(w), mcp: { wait: '10m' } });
  const agent = new HttpAgent(daemon.port, token);
  await w.db.query(`SELECT outbox.pause_tool('create_ticket', 'nothing moves')`);
  const sockets = [];
  try {
    for (let n = 0; n < 300; n++) {
      const body = JSON.stringify({ jsonrpc: '2.0', id: n, method: 'tools/call', params: { name: 'create_ticket', arguments: { title: `t${n}` }, _meta: inRun('r') } });
      const socket = net.connect(daemon.port, '127.0.0.1');
      socket.on('error', () => {});
      socket.write(`POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`);
      sockets.push(socket);
    }
    await eventually('as many wait as may', async () => (await w.one('SELECT count(*)::int AS n FROM outbox.operation')).n === 256, 60_000);
    for (const socket of sockets.slice(0, 150)) socket.destroy();
    for (const path of ['livez', 'readyz', 'metrics']) assert.equal((await fetch(`http://127.0.0.1:${daemon.port}/${path}`)).status, 200, path);
    const more = told(await agent.call('create_ticket', { title: 'one more' }, inRun('r')));
    assert.deepEqual([more.status, /too many calls/.test(more.message)], ['refused', true]);
    assert.equal((await agent.ask('tools/list', {})).result.tools.length, 2);
  } finally {
    for (const socket of sockets) socket.destroy();
  }
  assert.equal((await daemon.stop()).code, 0);
});

story('http: a daemon that stops tells those who wait what is known', async (w) => {
  const daemon = await w.start({ tools: tools(w), admin: admin(w), defaults: { timeout: '30s' } });
  const agent = new HttpAgent(daemon.port, token);
  const id = await derived(w, 'drained');
  await w.desk.plan(id, { posts: ['hold'] });
  const call = (meta) => agent.send({ id: 1, method: 'tools/call', params: { name: 'create_ticket', arguments: { title: 'drained' }, _meta: inRun('r', meta) } });
  const waiting = [call({}), call({ progressToken: 1 })];
  await eventually('it is under way', async () => (await w.desk.tickets(id)).length === 1);
  const stopped = daemon.stop();
  for (const answer of await Promise.all(waiting)) assert.deepEqual([told(answer.message).truth, told(answer.message).operation_id], ['pending', id]);
  await w.desk.release(id);
  assert.equal((await stopped).code, 0);
  assert.equal((await w.get(id)).status, 'succeeded', 'the attempt was waited for, as in every drain');
});

story('http: a reload changes what is offered', async (w) => {
  const daemon = await w.start({ tools: tools(w), admin: admin(w) });
  const agent = new HttpAgent(daemon.port, token);
  const names = async () => (await agent.ask('tools/list', {})).result?.tools.map((t) => t.name).join();
  assert.equal(await names(), 'create_ticket,outbox_status');
  const index = w.daemons.indexOf(daemon);
  const more = { ...tools(w), note: { effect: 'read', expose: true, execute: { type: 'log' } } };
  const { configuration } = await import('./config.mjs');
  w.write(`outboxd-${index}.yaml`, JSON.stringify(configuration({ port: daemon.port, tools: more, admin: admin(w) })));
  process.kill(daemon.pid, 'SIGHUP');
  await eventually('the new tool is listed', async () => (await names()) === 'create_ticket,note,outbox_status');
});
