// What the outbox is for, measured: a scripted agent that retries on time-outs and rewords its
// arguments works through tasks whose first answer is always lost, directly, with a key that it makes
// up for each call, and over MCP through the outbox. Effects are counted at the provider.
//   node tests/eval/eval.mjs [--tasks 200] [--at-once 16]      OUTBOXD names the binary
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { Cluster } from '../e2e/cluster.mjs';
import { configuration } from '../e2e/config.mjs';
import { StdioAgent, inRun, told } from '../e2e/mcp_client.mjs';
import { Program, eventually, freePort, run } from '../e2e/util.mjs';
import { binary } from '../e2e/world.mjs';
import { workAll } from './agent.mjs';
import { Provider } from './provider.mjs';

const agentTimeout = 400;  // ms; the agent's own, as every MCP client and HTTP library has one
const late = 1500;

const tasksOf = (count) => Array.from({ length: count }, (_, n) => ({ task: n, title: `disk ${n} full`, host: `db-${n % 7}`, severity: 'high' }));

function report(name, provider, ends) {
  const effects = ends.map((_, task) => provider.effects(task));
  return {
    name,
    tasks: ends.length,
    calls: ends.reduce((sum, end) => sum + end.calls, 0),
    effects: effects.reduce((a, b) => a + b, 0),
    duplicated: effects.filter((n) => n > 1).length,
    missing: effects.filter((n) => n === 0).length,
    // Says done and it is there, once or more; or says it gave up.
    believed: ends.filter((end, task) => (end.belief === 'done') !== (effects[task] > 0)).length,
  };
}

// The tool is a function that posts.
async function direct(tasks, atOnce, keyed) {
  const provider = await Provider.start({ late });
  try {
    const act = async (task, args) => {
      const response = await fetch(`${provider.url}/tickets`, {
        method: 'POST', body: JSON.stringify(args), signal: AbortSignal.timeout(agentTimeout),
        headers: { 'Content-Type': 'application/json', ...(keyed && { 'Idempotency-Key': randomUUID() }) },
      });
      if (!response.ok) throw new Error(`HTTP ${response.status}`);
      return { done: true, id: (await response.json()).id };
    };
    return report(keyed ? 'retries, with a key per call' : 'retries', provider, await workAll(tasks, atOnce, act));
  } finally {
    await provider.stop();
  }
}

const toolOn = (url) => ({
  description: 'Open a ticket.', effect: 'write', expose: true,
  arguments: { type: 'object', required: ['task', 'title'], properties: { task: { type: 'integer' }, title: { type: 'string' } } },
  execute: {
    type: 'http', method: 'POST', url: `${url}/tickets`,
    json: { task: '{{ arguments.task }}', title: '{{ arguments.title }}', external_ref: '{{ operation.key }}' },
    outcomes: [{ when: { status: 201 }, then: 'succeeded', result: { id: '/id' } }],
  },
  reconcile: { type: 'http', method: 'GET', url: `${url}/tickets`, query: { external_ref: '{{ operation.key }}' }, items: '/tickets', match: { '/external_ref': '{{ operation.key }}' }, result: { id: '/id' } },
});

// The same provider behind the outbox, the agent on the other side of `outboxd mcp`. It sends no key,
// so what saves it is the derived id and the look-up. Halfway the agent and its MCP server are killed
// and come back with the same runs.
async function throughOutbox(tasks, atOnce, cluster) {
  const provider = await Provider.start({ late });
  const dir = mkdtempSync(path.join(os.tmpdir(), 'outboxd-eval-'));
  const programs = [];
  try {
    const env = { PATH: process.env.PATH, HOME: dir, LANG: 'C.UTF-8', OUTBOXD_DATABASE: cluster.dsn(await cluster.createDatabase()) };
    const port = await freePort();
    const file = path.join(dir, 'outboxd.yaml');
    const defaults = { timeout: '1s', retry: { max_attempts: 3, initial: '100ms', max: '500ms', jitter: 0 }, reconcile: { settle: '500ms', interval: '200ms', max_interval: '500ms' } };
    writeFileSync(file, JSON.stringify(configuration({ port, tools: { create_ticket: toolOn(provider.url) }, defaults })));
    const migrated = await run(binary, ['migrate'], { env });
    if (migrated.code !== 0) throw new Error(migrated.text);
    programs.push(new Program(binary, ['run', '-c', file], { env }));
    await eventually('the daemon is ready', async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok, 30_000);

    let agent = new StdioAgent({ env, daemons: [] }, file);
    let calls = 0;
    const half = Math.floor(tasks.length / 2);
    const act = async (task, args) => {
      if (++calls === half) {
        await agent.program.stop('SIGKILL');
        agent = new StdioAgent({ env, daemons: [] }, file);
      }
      const asked = agent;
      const id = `call-${randomUUID()}`;  // a new one for every call, as clients do
      asked.send({ id, method: 'tools/call', params: { name: 'create_ticket', arguments: args, _meta: inRun(`task-${task}`) } });
      const answer = told(await asked.answer(id, agentTimeout).catch((error) => {
        asked.send({ method: 'notifications/cancelled', params: { requestId: id, reason: 'it takes too long' } });
        throw error;
      }));
      return { done: answer.truth === 'succeeded', id: answer.result?.id, said: answer.message };
    };
    const ends = await workAll(tasks, atOnce, act);
    programs.push(agent.program);
    return report('retries, over MCP through the outbox', provider, ends);
  } finally {
    for (const program of programs) if (!program.ended) await program.stop('SIGKILL');
    await provider.stop();
    rmSync(dir, { recursive: true, force: true });
  }
}

export async function evaluate({ tasks: count = 200, atOnce = 16 } = {}) {
  const tasks = tasksOf(count);
  const cluster = await Cluster.start();
  try {
    return [await direct(tasks, atOnce, false), await direct(tasks, atOnce, true), await throughOutbox(tasks, atOnce, cluster)];
  } finally {
    cluster.stop();
  }
}

export function table(rows) {
  const columns = { name: 'the agent', tasks: 'tasks', calls: 'calls', effects: 'effects', duplicated: 'tasks done twice', missing: 'not done', believed: 'believed wrongly' };
  const lines = [columns, ...rows].map((row) => Object.keys(columns).map((key) => String(row[key])));
  const widths = Object.keys(columns).map((_, n) => Math.max(...lines.map((line) => line[n].length)));
  return lines.map((line) => line.map((cell, n) => (n === 0 ? cell.padEnd(widths[n]) : cell.padStart(widths[n]))).join('  ')).join('\n');
}

// What must hold; empty: it does.
export function faults([plain, keyed, outbox]) {
  const wrong = [];
  for (const row of [plain, keyed]) if (row.duplicated === 0) wrong.push(`${row.name}: nothing was done twice, so nothing is shown`);
  if (outbox.duplicated !== 0) wrong.push(`${outbox.name}: ${outbox.duplicated} tasks were done twice`);
  if (outbox.missing !== 0) wrong.push(`${outbox.name}: ${outbox.missing} tasks were not done`);
  if (outbox.believed !== 0) wrong.push(`${outbox.name}: ${outbox.believed} times the agent believed what is not so`);
  return wrong;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const option = (name, otherwise) => (process.argv.includes(name) ? Number(process.argv[process.argv.indexOf(name) + 1]) : otherwise);
  const rows = await evaluate({ tasks: option('--tasks', 200), atOnce: option('--at-once', 16) });
  console.log(table(rows));
  const wrong = faults(rows);
  for (const one of wrong) console.error(one);
  process.exit(wrong.length === 0 ? 0 : 1);
}
