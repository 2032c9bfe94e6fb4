// Agents that speak MCP: the same stories over outboxd mcp (stdio) and over /mcp of the daemon.
import assert from 'node:assert/strict';
import net from 'node:net';
import { closableTool, ticketTool } from './config.mjs';
import { HttpAgent, StdioAgent, inRun, told } from './mcp_client.mjs';
import { eventually, sleep } from './util.mjs';
import { story } from './world.mjs';

const token = 'a-token-that-is-long-enough';
const lookTool = (url) => ({
  effect: 'read', expose: true, description: 'Lists tickets.',
  execute: { type: 'http', method: 'GET', url: `${url}/tickets`, query: { external_ref: '{{ arguments.ref }}' }, outcomes: [{ when: { status: 200 }, then: 'succeeded', result: { tickets: '/tickets' } }] },
});
const fax = { effect: 'write', expose: true, execute: { type: 'command', argv: ['/bin/false'] }, reconcile: { type: 'manual', reason: 'nobody can ask a fax machine' } };
const toolsOf = (w, more = {}) => ({
  create_ticket: { ...closableTool(w.desk.url), expose: true, destructive: true }, look: lookTool(w.desk.url), fax, hidden: ticketTool(w.desk.url), ...more,
});

// A daemon and an agent on the transport; `wait` is how long a call waits.
async function open(w, transport, { wait = '20s', args = [], ...more } = {}) {
  const tools = more.tools ?? toolsOf(w);
  const settings = { tools, mcp: { run_header: 'Agent-Run', wait }, admin: { token_file: w.write('token', `${token}\n`) }, ...more };
  const daemon = await w.start(settings);
  if (transport === 'http') return { daemon, agent: new HttpAgent(daemon.port, token), settings };
  return { daemon, agent: new StdioAgent(w, w.configure(settings), args), settings };
}

const both = (name, body) => {
  for (const transport of ['stdio', 'http']) story(`${transport}: ${name}`, (w, t) => body(w, transport, t));
};

const derived = async (w, tool, args, run, occurrence = 1) =>
  (await w.one('SELECT outbox.derive_id($1, $2::jsonb, $3, $4) AS id', [tool, JSON.stringify(args), run, occurrence])).id;

both('the tools that are exposed are listed, with what is true about them', async (w, transport) => {
  const { agent } = await open(w, transport);
  const { tools } = (await agent.ask('tools/list', {})).result;
  assert.deepEqual(tools.map((tool) => tool.name), ['create_ticket', 'fax', 'look', 'outbox_compensate', 'outbox_status']);
  const [create, , look, compensate, status] = tools;
  assert.equal(create.description, 'Open a ticket at the desk.');
  assert.deepEqual(create.inputSchema, { type: 'object', required: ['title'], properties: { title: { type: 'string', maxLength: 200 } } });
  assert.deepEqual(create.annotations, { readOnlyHint: false, destructiveHint: true, idempotentHint: true, openWorldHint: true });
  assert.equal(look.annotations.readOnlyHint, true);
  assert.equal(status.annotations.readOnlyHint, true);
  assert.deepEqual(compensate.inputSchema.properties.name.enum, ['close']);
  assert.deepEqual(create.outputSchema.required.slice(0, 4), ['operation_id', 'truth', 'status', 'replayed']);
  assert.equal((await agent.ask('tools/list', { cursor: 'nonsense' })).error.code, -32602);
  assert.equal((await agent.call('hidden', { title: 'x' }, inRun('r'))).error.code, -32602);
});

both('the same call twice, 3 ms apart and with other ids: one effect, two equal answers, the second replayed', async (w, transport) => {
  const { agent } = await open(w, transport);
  const first = agent.call('create_ticket', { title: 'disk full' }, inRun('run-7'), 'call-1');
  await sleep(3);
  const second = agent.call('create_ticket', { title: ' disk full ' }, inRun('run-7'), 'call-2');
  const [a, b] = (await Promise.all([first, second])).map(told);
  assert.equal(a.operation_id, await derived(w, 'create_ticket', { title: 'disk full' }, 'run-7'));
  assert.deepEqual([a.operation_id, a.truth, a.status, a.result], [b.operation_id, b.truth, b.status, b.result]);
  assert.deepEqual([a.truth, a.result], ['succeeded', { id: 'T-1' }]);
  assert.deepEqual([a.replayed, b.replayed].sort(), [false, true]);
  assert.match([a, b].find((x) => x.replayed).message, /Nothing was executed again/);
  assert.equal((await w.desk.tickets(a.operation_id)).length, 1);
  // The very same request id once more, and what a model with no structured content reads.
  const again = await agent.call('create_ticket', { title: 'disk full' }, inRun('run-7'), 'call-1-again');
  assert.match(again.result.content[0].text, /already performed in this run/);
  assert.deepEqual(JSON.parse(again.result.content[1].text), again.result.structuredContent);
  assert.equal(again.result.isError, false);
  // Meant twice: the planner counts.
  const other = told(await agent.call('create_ticket', { title: 'disk full' }, inRun('run-7', { 'dev.outboxd/occurrence': 2 })));
  assert.deepEqual([other.replayed, other.result], [false, { id: 'T-2' }]);
});

both('five truths, and isError only for what did not happen', async (w, transport) => {
  const { agent } = await open(w, transport, { wait: '2s', defaults: { timeout: '1s', retry: { max_attempts: 1, initial: '100ms', max: '1s' }, reconcile: { settle: '500ms', interval: '200ms', max_interval: '500ms' } } });
  const plan = async (title, plan) => w.desk.plan(await derived(w, 'create_ticket', { title }, 'r'), plan);
  await plan('refused', { posts: ['refuse'] });
  await plan('open end', { posts: ['cut'], look: 'error' });
  await plan('later', { posts: ['busy', 'busy', 'busy', 'busy', 'busy', 'busy', 'busy', 'busy'] });
  const answers = {};
  await Promise.all(['fine', 'refused', 'open end', 'later'].map(async (title) => { answers[title] = (await agent.call('create_ticket', { title }, inRun('r'))).result; }));
  answers.fax = (await agent.call('fax', {}, inRun('r'))).result;
  const shown = Object.fromEntries(Object.entries(answers).map(([title, { isError, structuredContent: c }]) => [title, [c.truth, c.status, isError]]));
  assert.deepEqual(shown, {
    fine: ['succeeded', 'succeeded', false], refused: ['rejected', 'failed', true], 'open end': ['unknown', 'unknown', false],
    later: ['pending', 'scheduled', false], fax: ['needs_attention', 'unknown', false],
  });
  assert.match(answers.refused.content[0].text, /no effect \(rude_title: The title is rude\.\)/);
  assert.doesNotMatch(answers.refused.content[0].text, /retry_failed/);
  assert.match(answers['open end'].content[0].text, /do not report failure/);
  assert.match(answers.fax.content[0].text, /a person has been asked/);

  // What failed stays failed for the model, and is armed again when somebody decides so.
  const same = (await agent.call('create_ticket', { title: 'refused' }, inRun('r'))).result;
  assert.deepEqual([same.isError, same.structuredContent.replayed, same.structuredContent.status], [true, true, 'failed']);
  assert.doesNotMatch(same.content[0].text, /retry_failed/);
  const armed = told(await agent.call('create_ticket', { title: 'refused' }, inRun('r', { 'dev.outboxd/retry-failed': true })));
  assert.deepEqual([armed.status, armed.replayed], ['succeeded', false]);
});

both('without a run a write tool is refused, a read tool reads; arguments are checked first', async (w, transport) => {
  const { agent } = await open(w, transport);
  const refused = async (name, args, meta, pattern) => {
    const { result } = await agent.call(name, args, meta);
    assert.deepEqual([result.isError, told({ result }).status, told({ result }).operation_id], [true, 'refused', null]);
    assert.match(result.content[0].text, pattern);
  };
  await refused('create_ticket', { title: 'x' }, {}, transport === 'http' ? /run-id.*Agent-Run/ : /run-id.*--run-id/);
  await refused('create_ticket', { title: 'x' }, { 'dev.outboxd/run-id': 7 }, /must be a text/);
  await refused('create_ticket', { title: 'x' }, inRun(''), /run id/);
  await refused('create_ticket', { title: 'x' }, inRun('desk-${RUN_ID}'), /placeholder that nobody filled in/);
  await refused('create_ticket', { title: 'x' }, inRun('r\n'), /run id/);
  await refused('create_ticket', { title: 'x' }, inRun('r', { 'dev.outboxd/occurrence': 0 }), /occurrence/);
  await refused('create_ticket', { title: 'x'.repeat(201) }, inRun('r'), /"\/title"/);
  await refused('create_ticket', {}, inRun('r'), /title/);
  await refused('create_ticket', { title: 'nul\u0000' }, inRun('r'), /Nothing was done.*U\+0000/);
  await refused('outbox_status', { operation_id: 'nul\u0000' }, {}, /"\/operation_id".*U\+0000/);
  const unseen = (await agent.call('outbox_status', { operation_id: 'nobody' })).result;
  assert.deepEqual([unseen.isError, told({ result: unseen }).truth], [false, 'unknown'], 'not seen is not "did not happen"');
  await refused('fax', { big: 'x'.repeat(1024 * 1024 + 1) }, inRun('r'), /too large|1048576|1 MiB|larger/i);
  assert.equal((await agent.ask('tools/call', { name: 'create_ticket', arguments: [] })).error.code, -32602);
  assert.equal((await agent.ask('tools/call', { arguments: {} })).error.code, -32602);
  const seen = told(await agent.call('look', { ref: 'nobody' }));
  assert.deepEqual([seen.truth, seen.result], ['succeeded', { tickets: [] }]);
  const again = told(await agent.call('look', { ref: 'nobody' }));
  assert.deepEqual([again.replayed, again.operation_id === seen.operation_id], [false, false], 'each look is a look');
  const { n } = await w.one('SELECT count(*)::int AS n FROM outbox.operation');
  assert.equal(n, 2, 'nothing that was refused is recorded');
});

both('the daemon killed between effect and record: the retry gets the true result', async (w, transport) => {
  const title = 'killed';
  const { daemon, agent, settings } = await open(w, transport, { wait: '20s' });
  const id = await derived(w, 'create_ticket', { title }, 'r');
  await w.desk.plan(id, { posts: ['hold'] });
  const first = agent.call('create_ticket', { title }, inRun('r')).catch((error) => ({ lost: error.message }));
  await eventually('the ticket exists', async () => (await w.desk.tickets(id)).length === 1);
  await daemon.kill();
  const next = await w.start(settings);
  const retry = transport === 'http' ? new HttpAgent(next.port, token) : agent;
  const answer = told(await retry.call('create_ticket', { title }, inRun('r')));
  assert.deepEqual([answer.truth, answer.replayed, answer.result], ['succeeded', true, { id: 'T-1' }]);
  const lost = await first;  // over HTTP the server died with the call, over stdio it waited on
  if (transport === 'stdio') assert.deepEqual(told(lost).result, { id: 'T-1' });
  assert.equal((await w.desk.posts(id)).length, 1);
});

both('status and compensation, of what is offered here and nothing else', async (w, transport) => {
  const { agent } = await open(w, transport);
  const done = told(await agent.call('create_ticket', { title: 'by mistake' }, inRun('r')));
  const seen = told(await agent.call('outbox_status', { operation_id: done.operation_id }));
  assert.deepEqual([seen.truth, seen.result, seen.replayed], ['succeeded', { id: 'T-1' }, false]);
  for (const name of ['outbox_status', 'outbox_compensate']) {
    await w.enqueue(`hidden-${name}`, { tool: 'hidden' });
    for (const id of ['no-such-id', `hidden-${name}`]) {
      const { result } = await agent.call(name, { operation_id: id });
      // Undoing did not happen; of the action itself nothing is known, least of all that it did not.
      assert.deepEqual([result.isError, result.structuredContent.truth, result.structuredContent.status], name === 'outbox_status' ? [false, 'unknown', 'unknown'] : [true, 'rejected', 'refused'], `${name} ${id}`);
    }
    const { result } = await agent.call(name, { operation_id: done.operation_id, force: true });
    assert.match(result.content[0].text, /"\/force"/);
  }
  const undone = told(await agent.call('outbox_compensate', { operation_id: done.operation_id, reason: 'a mistake', arguments: { note: 'sorry' } }));
  assert.deepEqual([undone.operation_id, undone.truth, undone.result], [`${done.operation_id}:compensate:close`, 'succeeded', { state: 'closed' }]);
  const twice = told(await agent.call('outbox_compensate', { operation_id: done.operation_id, name: 'close', arguments: { note: 'sorry' } }));
  assert.deepEqual([twice.replayed, twice.truth], [true, 'succeeded']);
  assert.equal((await w.desk.closes(undone.operation_id)).length, 1);
  assert.match(told(await agent.call('create_ticket', { title: 'by mistake' }, inRun('r'))).message, /undone by the compensation/);
  const { result } = await agent.call('outbox_compensate', { operation_id: done.operation_id, name: 'burn' });
  assert.deepEqual([result.isError, result.structuredContent.status], [true, 'refused']);
});

both('a hundred calls at once, each of them twice: a hundred effects', async (w, transport) => {
  const { agent } = await open(w, transport, { wait: '60s' });
  const answers = await Promise.all(Array.from({ length: 200 }, (_, n) => agent.call('create_ticket', { title: `t${n % 100}` }, inRun('crowd'))));
  assert.deepEqual([...new Set(answers.map((a) => told(a).truth))], ['succeeded']);
  assert.equal(new Set(answers.map((a) => told(a).result.id)).size, 100);
  assert.equal(answers.filter((a) => told(a).replayed).length, 100);
  assert.equal((await w.desk.state()).tickets.length, 100);
});

// The database's answer to the commit is lost, and with it the database; then it is back.
both('a commit in doubt is told as such, and the same call tells the truth later', async (w, transport) => {
  let swallow = false;
  let away = false;
  const sockets = new Set();
  const gate = net.createServer((socket) => {
    if (away) return socket.destroy();
    const server = net.connect(w.cluster.port, '127.0.0.1');
    for (const s of [socket, server]) { sockets.add(s); s.on('error', () => {}); s.on('close', () => { socket.destroy(); server.destroy(); }); }
    let lost = false;
    socket.on('data', (data) => {
      if (swallow && data.includes('outbox.enqueue(')) lost = away = true;
      server.write(data);
    });
    server.on('data', (data) => (lost ? sockets.forEach((s) => s.destroy()) : socket.write(data)));
  });
  await new Promise((resolve) => gate.listen(0, '127.0.0.1', resolve));
  try {
    const behind = `host=127.0.0.1 port=${gate.address().port} user=postgres dbname=${w.db.options.database} sslmode=disable gssencmode=disable`;
    const worker = await w.start({ tools: toolsOf(w) });  // carries out whatever is recorded
    const settings = { tools: toolsOf(w), mcp: { wait: '1s' }, admin: { token_file: w.write('token', token) } };
    const env = { ...w.env, OUTBOXD_DATABASE: behind };
    const agent = transport === 'stdio'
      ? new StdioAgent(w, w.configure(settings), ['--wait', '1s'], env)
      : new HttpAgent((await (await w.launch({ ...settings, env })).ready()).port, token);
    assert.equal(told(await agent.call('create_ticket', { title: 'before' }, inRun('r'))).operation_id.length, 64);
    await worker.ask('/livez');

    swallow = true;
    const { result } = await agent.call('create_ticket', { title: 'in doubt' }, inRun('r'));
    assert.deepEqual([result.isError, result.structuredContent.truth], [false, 'unknown']);
    assert.equal(result.structuredContent.operation_id, await derived(w, 'create_ticket', { title: 'in doubt' }, 'r'));
    assert.match(result.content[0].text, /not known whether this action was recorded/);

    const down = await agent.call('create_ticket', { title: 'while it is away' }, inRun('r'));
    assert.deepEqual([down.result.isError, told(down).status], [true, 'refused']);
    assert.match(told(down).message, /database cannot be reached, and this action was not recorded/);
    assert.equal(told(await agent.call('outbox_status', { operation_id: result.structuredContent.operation_id })).truth, 'unknown');

    swallow = away = false;
    const settled = await eventually('the truth', async () => {
      const answer = told(await agent.call('create_ticket', { title: 'in doubt' }, inRun('r')));
      return answer.truth === 'succeeded' && answer;
    }, 60_000);
    assert.equal(settled.replayed, true);
    assert.equal((await w.desk.tickets(settled.operation_id)).length, 1);
  } finally {
    for (const s of sockets) s.destroy();
    gate.close();
  }
});

both('nothing secret is in lists, errors or results', async (w, transport) => {
  const secrets = { file: 's3cret-of-a-file', bearer: 's3cret-bearer', dsn: 's3cret-dsn', redacted: 's3cret-argument' };
  const tool = ticketTool(w.desk.url, {
    expose: true, redact: ['/card'], credential: undefined,
    description: `Opens a ticket. \${file:${w.write('said', secrets.file)}}`,
    arguments: { type: 'object', required: ['title'], properties: { title: { type: 'string', maxLength: 10 }, card: { type: 'string', maxLength: 3, default: `\${file:${w.write('default', secrets.file)}}` } } },
  });
  tool.execute.credential = tool.reconcile.credential = 'desk';
  const billing = { effect: 'write', expose: true, execute: { type: 'sql', dsn: `host=127.0.0.1 port=1 user=u password=${secrets.dsn}`, statement: 'SELECT 1' }, reconcile: { type: 'manual', reason: 'none' } };
  const { agent } = await open(w, transport, {
    wait: '1s', tools: { create_ticket: tool, billing }, credentials: { desk: { kind: 'bearer', token: `\${file:${w.write('bearer', secrets.bearer)}}` } },
  });
  const heard = [
    await agent.ask('tools/list', {}),
    await agent.call('create_ticket', { title: 'x', card: secrets.redacted }, inRun('r')),
    await agent.call('create_ticket', { title: 'fine' }, inRun('r')),
    await agent.call('billing', {}, inRun('r')),
    await agent.call('create_ticket', { title: 7, card: secrets.redacted }),
    await agent.ask('tools/call', { name: 'create_ticket', arguments: secrets.redacted }),
  ];
  assert.match(JSON.stringify(heard[0]), /Opens a ticket\. \$\{file:/);
  assert.equal(told(heard[2]).truth, 'succeeded');
  for (const [what, secret] of Object.entries({ ...secrets, token })) {
    for (const answer of heard) assert.ok(!JSON.stringify(answer).includes(secret), `${what}: ${JSON.stringify(answer)}`);
  }
});
