// An MCP server on the SDK that others wrote, whose one effect runs as a task (2025-11-25, experimental there):
// node mcp_task_server.mjs JOURNAL speaks over its standard streams, with a port behind it over Streamable HTTP.
// Its tasks belong to whoever may ask (as the specification has it), not to a session, and are lost with the process.
// create_issue appends a line to the journal at once; how its task goes on is told by words in the title.
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import http from 'node:http';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { InMemoryTaskStore } from '@modelcontextprotocol/sdk/experimental/tasks/stores/in-memory.js';
import { z } from 'zod';

const [journal, port] = process.argv.slice(2);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const tell = (line) => appendFileSync(journal, `${JSON.stringify(line)}\n`);
const lines = () => (existsSync(journal) ? readFileSync(journal, 'utf8').trim().split('\n').filter(Boolean).map((line) => JSON.parse(line)) : []);
const issues = () => lines().filter((line) => line.id);
const structured = (value) => ({ content: [{ type: 'text', text: JSON.stringify(value) }], structuredContent: value });

class Tasks extends InMemoryTaskStore {
  lookup(id) { return super.lookup(id, undefined); }
  forget(id) { this.tasks.delete(id); }
}
const tasks = new Tasks();

async function work(store, task, title, id) {
  if (title.includes('forgotten')) return tasks.forget(task.taskId);
  if (title.includes('asks')) return store.updateTaskStatus(task.taskId, 'input_required', 'which project?');
  if (title.includes('cancelled')) return store.updateTaskStatus(task.taskId, 'cancelled', 'by somebody');
  if (title.includes('slow')) await sleep(1200);
  while (title.includes('long') && !existsSync(`${journal}.go`)) await sleep(50);
  const bad = title.includes('fails');
  return store.storeTaskResult(task.taskId, bad ? 'failed' : 'completed', bad ? { isError: true, content: [{ type: 'text', text: 'it broke' }] } : structured({ id }));
}

function server() {
  const mcp = new McpServer({ name: 'issues', version: '1.0.0' }, { capabilities: { tasks: { requests: { tools: { call: {} } } } }, taskStore: tasks });
  mcp.experimental.tasks.registerToolTask('create_issue', {
    description: 'Opens an issue.',
    inputSchema: { title: z.string(), external_id: z.string() },
    execution: { taskSupport: 'required' },
  }, {
    createTask: async ({ title, external_id }, { taskStore }) => {
      const task = await taskStore.createTask({ ttl: 300_000, pollInterval: 100 });
      const id = issues().length + 1;
      tell({ id, title, external_id, task: task.taskId });
      work(taskStore, task, title, id);
      if (title.includes('untold')) await sleep(60_000);
      return { task };
    },
    getTask: async (_, { taskId, taskStore }) => taskStore.getTask(taskId),
    getTaskResult: async (_, { taskId, taskStore }) => taskStore.getTaskResult(taskId),
  });
  mcp.registerTool('search_issues', {
    description: 'Finds issues by external id.',
    inputSchema: { external_id: z.string() },
  }, async ({ external_id }) => {
    tell({ search: external_id });
    return structured({ items: issues().filter((i) => i.external_id === external_id).map(({ id, title, external_id: e }) => ({ id, title, external_id: e })) });
  });
  return mcp;
}

if (port === undefined) {
  await server().connect(new StdioServerTransport());
} else {
  const sessions = new Map();
  const listening = http.createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = chunks.length ? JSON.parse(Buffer.concat(chunks)) : undefined;
    const given = request.headers['mcp-session-id'];
    if (given && !sessions.has(given)) {
      response.writeHead(404, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify({ jsonrpc: '2.0', id: null, error: { code: -32001, message: 'Session not found' } }));
      return;
    }
    let transport = sessions.get(given);
    if (!transport) {
      transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID, onsessioninitialized: (id) => sessions.set(id, transport) });
      await server().connect(transport);
    }
    await transport.handleRequest(request, response, body);
  });
  listening.listen(Number(port), '127.0.0.1', () => process.stdout.write(`${listening.address().port}\n`));
}
