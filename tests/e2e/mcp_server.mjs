// An MCP server on the SDK that others wrote, with effects that last: node mcp_server.mjs JOURNAL
// speaks over its standard streams, with a port behind it over Streamable HTTP (0: any; it is printed).
// create_issue appends a line to the journal; how it goes on is told by words in the title.
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import { randomUUID } from 'node:crypto';
import http from 'node:http';
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import { z } from 'zod';

const [journal, port] = process.argv.slice(2);
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const issues = () => (existsSync(journal) ? readFileSync(journal, 'utf8').trim().split('\n').filter(Boolean).map((line) => JSON.parse(line)) : []);
const structured = (value) => ({ content: [{ type: 'text', text: JSON.stringify(value) }], structuredContent: value });

function server() {
  const mcp = new McpServer({ name: 'issues', version: '1.0.0' }, { capabilities: { logging: {} } });
  mcp.registerTool('create_issue', {
    description: 'Opens an issue.',
    inputSchema: { title: z.string(), external_id: z.string() },
  }, async ({ title, external_id }, { _meta, sendNotification, requestId }) => {
    if (title.includes('refused')) return { isError: true, content: [{ type: 'text', text: 'title is not allowed' }] };
    const id = issues().length + 1;
    appendFileSync(journal, `${JSON.stringify({ id, title, external_id, meta: _meta, pid: process.pid })}\n`);
    if (title.includes('dies')) process.exit(9);
    if (title.includes('hangs')) await sleep(60_000);
    if (title.includes('fails late')) throw new Error('upstream did not answer');
    for (let n = 0; title.includes('talks') && n < 50; ++n) {
      await sendNotification({ method: 'notifications/message', params: { level: 'info', data: `${requestId} ${n}` } });
    }
    return structured({ id });
  });
  mcp.registerTool('search_issues', {
    description: 'Finds issues by external id.',
    inputSchema: { external_id: z.string() },
  }, async ({ external_id }) => structured({ items: issues().filter((i) => i.external_id === external_id).map(({ id, title, external_id: e }) => ({ id, title, external_id: e })) }));
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
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID, onsessioninitialized: (id) => { sessions.set(id, transport); process.stdout.write(`session ${id}\n`); },
      });
      await server().connect(transport);
    }
    await transport.handleRequest(request, response, body);
  });
  listening.listen(Number(port), '127.0.0.1', () => process.stdout.write(`${listening.address().port}\n`));
}
