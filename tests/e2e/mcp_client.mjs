// An agent's side of MCP, written by hand: what is sent is exactly what a test wants to send.
import { binary } from './world.mjs';
import { Program, eventually } from './util.mjs';

export const modern = '2026-07-28';
export const modernMeta = (more = {}) => ({
  'io.modelcontextprotocol/protocolVersion': modern, 'io.modelcontextprotocol/clientCapabilities': {}, ...more,
});
export const inRun = (run, more = {}) => ({ 'dev.outboxd/run-id': run, ...more });

// outboxd mcp as a child, one message a line.
export class StdioAgent {
  #next = 1;
  #read = 0;
  #messages = [];
  #answers = new Map();

  constructor(w, file, args = [], env = w.env) {
    this.program = new Program(binary, ['mcp', '-c', file, ...args], { env });
    w.daemons.push({ get ended() { return false; }, get log() { return ''; }, kill: () => this.program.ended || this.program.stop('SIGKILL') });
  }

  // What came so far; each line is read once.
  get messages() {
    const lines = this.program.stdout.slice(this.#read).split('\n');
    for (const line of lines.slice(0, -1)) {
      this.#read += line.length + 1;
      const message = JSON.parse(line);
      this.#messages.push(message);
      if ('id' in message) this.#answers.set(message.id, message);
    }
    return this.#messages;
  }
  write(text) { this.program.child.stdin.write(text); }
  send(message) { this.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`); }
  answer(id, ms = 60_000) { return eventually(`the answer to ${id}`, () => this.messages && this.#answers.get(id), ms); }
  ask(method, params, id = `r${this.#next++}`) {
    this.send({ id, method, params });
    return this.answer(id);
  }
  async call(name, args, meta = {}, id = undefined) { return this.ask('tools/call', { name, arguments: args, _meta: meta }, id); }
  // The end of the input: what the process says then.
  async close(ms = 20_000) {
    this.program.child.stdin.end();
    const late = setTimeout(() => this.program.child.kill('SIGKILL'), ms);
    const end = await this.program.end;
    clearTimeout(late);
    return end;
  }
}

// POST /mcp of a daemon.
export class HttpAgent {
  #next = 1;

  constructor(port, token, headers = {}) {
    this.url = `http://127.0.0.1:${port}/mcp`;
    this.headers = { 'Content-Type': 'application/json', Accept: 'application/json, text/event-stream', ...(token && { Authorization: `Bearer ${token}` }), ...headers };
  }

  post(body, headers = {}, options = {}) {
    return fetch(this.url, {
      method: 'POST', headers: { ...this.headers, ...headers }, body: typeof body === 'string' ? body : JSON.stringify(body),
      signal: AbortSignal.timeout(90_000), ...options,
    });
  }
  async send(message, headers = {}, options = {}) {
    const response = await this.post({ jsonrpc: '2.0', ...message }, headers, options);
    const text = await response.text();
    const type = response.headers.get('content-type') ?? '';
    if (type.startsWith('text/event-stream')) {
      const events = text.split('\n\n').filter(Boolean).map((event) => JSON.parse(/^data: (.*)$/m.exec(event)[1]));
      return { status: response.status, events, message: events.at(-1) };
    }
    return { status: response.status, type, message: type.includes('json') && text ? JSON.parse(text) : text };
  }
  async ask(method, params, id = this.#next++) { return (await this.send({ id, method, params })).message; }
  async call(name, args, meta = {}, id = undefined) { return this.ask('tools/call', { name, arguments: args, _meta: meta }, id); }
}

export const told = (answer) => answer.result?.structuredContent;
