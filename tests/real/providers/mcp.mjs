// modelcontextprotocol.io, revision 2026-07-28: no session, every request says by itself who asks. The
// tracker behind it makes an issue of each create_issue, whatever it was told about keys.
import { Refusal, authorized } from './server.mjs';

const revision = '2026-07-28';

export class McpTracker {
  hosts = ['mcp.example.com'];
  issues = [];

  constructor({ secret }) {
    this.authorization = `Bearer ${secret}`;
  }

  handle(request) {
    authorized(request, this.authorization);
    if (request.method !== 'POST' || request.path !== '/mcp') throw new Refusal(405, {});
    const { id, method, params } = request.body();
    const answer = (body) => ({ status: 200, body: { jsonrpc: '2.0', id, ...body } });
    const refuse = (status, code, message) => new Refusal(status, { jsonrpc: '2.0', id, error: { code, message } });
    const { headers } = request;
    const meta = params?._meta ?? {};
    if (headers['mcp-protocol-version'] !== revision || meta['io.modelcontextprotocol/protocolVersion'] !== revision) throw refuse(400, -32022, 'Unsupported protocol version');
    if (headers['mcp-method'] !== method || !meta['io.modelcontextprotocol/clientCapabilities']) throw refuse(400, -32020, 'Header mismatch');
    if (!/application\/json/.test(headers.accept) || !/text\/event-stream/.test(headers.accept)) throw new Refusal(406, {});
    if (method === 'server/discover') return answer({ result: { resultType: 'complete', supportedVersions: [revision], capabilities: { tools: {} } } });
    if (method !== 'tools/call') throw refuse(404, -32601, 'Method not found');
    if (headers['mcp-name'] !== params.name) throw refuse(400, -32020, 'Header mismatch');
    if (params.name === 'create_issue') return answer({ result: this.#create(params.arguments) });
    if (params.name === 'search_issues') return answer({ result: this.#search(params.arguments) });
    return answer({ error: { code: -32602, message: `Unknown tool: ${params.name}` } });
  }

  #create({ title, text = '', external_id }) {
    if (!title) return { resultType: 'complete', isError: true, content: [{ type: 'text', text: 'title must not be empty' }] };
    const id = this.issues.length + 1;
    const issue = { id, url: `https://mcp.example.com/issues/${id}`, title, text, external_id };
    this.issues.push(issue);
    return { resultType: 'complete', content: [{ type: 'text', text: `opened ${id}` }], structuredContent: { id, url: issue.url } };
  }

  #search({ external_id, limit = 50, cursor = '0' }) {
    const found = this.issues.filter((issue) => issue.external_id === external_id);
    const from = Number(cursor);
    const items = found.slice(from, from + limit);
    const more = from + limit < found.length;
    return { resultType: 'complete', content: [], structuredContent: { items, ...(more && { next_cursor: String(from + limit) }) } };
  }

  effects(marker) { return this.issues.filter((issue) => issue.title === marker); }
}
