// A ticket service that loses the first answer to every task: the ticket is there, its caller never
// hears of it. It honours Idempotency-Key, for whoever sends the same one twice.
import http from 'node:http';

// How an answer is lost, by the number of the task: cut, a gateway's page instead of it, too late. Every
// other one is an answer of some kind: a host that never answers is asked less and less, by design.
const page = (response) => { response.writeHead(200, { 'Content-Type': 'text/html' }); response.end('<h1>Please try again later</h1>'); };
const losses = [(response) => response.socket.destroy(), page, (response, say, late) => setTimeout(say, late), page];

export class Provider {
  // late: after how many milliseconds a late answer comes.
  static async start({ late }) {
    const provider = new Provider();
    provider.late = late;
    provider.tickets = [];
    provider.posts = new Map();
    provider.byKey = new Map();
    provider.server = http.createServer((request, response) => provider.#serve(request, response).catch(() => response.socket?.destroy()));
    await new Promise((resolve) => provider.server.listen(0, '127.0.0.1', resolve));
    provider.url = `http://127.0.0.1:${provider.server.address().port}`;
    return provider;
  }

  async #serve(request, response) {
    const say = (status, value) => {
      if (response.destroyed) return;
      response.writeHead(status, { 'Content-Type': 'application/json' });
      response.end(JSON.stringify(value));
    };
    const url = new URL(request.url, this.url);
    if (request.method === 'GET') {
      const ref = url.searchParams.get('external_ref');
      return say(200, { tickets: this.tickets.filter((t) => t.external_ref === ref) });
    }
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = JSON.parse(Buffer.concat(chunks));
    const key = request.headers['idempotency-key'];
    if (key && this.byKey.has(key)) return say(201, this.byKey.get(key));
    const ticket = { ...body, id: `T-${this.tickets.length + 1}` };
    this.tickets.push(ticket);
    if (key) this.byKey.set(key, ticket);
    const nth = (this.posts.get(body.task) ?? 0) + 1;
    this.posts.set(body.task, nth);
    if (nth > 1) return say(201, ticket);
    return losses[body.task % losses.length](response, () => say(201, ticket), this.late);
  }

  effects(task) { return this.tickets.filter((t) => t.task === task).length; }

  stop() {
    this.server.closeAllConnections?.();
    return new Promise((resolve) => this.server.close(resolve));
  }
}
