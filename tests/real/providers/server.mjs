// The providers' addresses as one TLS server: who is asked is told by the Host header, as behind any
// load balancer. A provider is a class with `hosts`, `handle(request)` → {status, headers, body}, and
// `effects(marker)`: what exists there now that holds the marker.
import { readFileSync } from 'node:fs';
import https from 'node:https';

export class Refusal extends Error {
  constructor(status, body, headers = {}) {
    super(`${status} ${JSON.stringify(body)}`);
    Object.assign(this, { status, body, headers });
  }
}

async function read(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  const url = new URL(request.url, `https://${request.headers.host}`);
  return {
    method: request.method, path: url.pathname, query: url.searchParams, url, headers: request.headers,
    text: Buffer.concat(chunks).toString('utf8'),
  };
}

export class ProviderServer {
  requests = [];  // {host, method, path, query, text, status, again}
  #providers = new Map();
  #cuts = new Map();  // marker → answers that are still to be lost

  static async start({ cert, key }, providers) {
    const server = new ProviderServer();
    for (const provider of providers) for (const host of provider.hosts) server.#providers.set(host, provider);
    server.https = https.createServer({ cert: readFileSync(cert), key: readFileSync(key) }, (request, response) =>
      server.#serve(request, response).catch((error) => { server.broken = error; response.socket?.destroy(); }));
    server.https.keepAliveTimeout = 30_000;
    await new Promise((resolve) => server.https.listen(0, '127.0.0.1', resolve));
    server.port = server.https.address().port;
    return server;
  }

  // The next answer to a request that holds this text is lost, after its effect.
  loseAnswer(marker, times = 1) { this.#cuts.set(marker, times); }

  async #answer(host, asked) {
    try {
      return await this.#providers.get(host).handle({ ...asked, host, body: () => parse(asked.text) });
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      return error;
    }
  }

  async #serve(request, response) {
    const host = request.headers.host;
    const asked = await read(request);
    const answer = await this.#answer(host, asked);
    this.requests.push({
      host, method: asked.method, path: asked.path, query: asked.url.search, text: asked.text, status: answer.status,
      again: () => this.#answer(host, asked).then((second) => second.status),  // the same request once more, as a frozen process would
    });
    for (const [marker, times] of this.#cuts) {
      if (times === 0 || !asked.text.includes(marker)) continue;
      this.#cuts.set(marker, times - 1);
      return response.socket.destroy();
    }
    const text = typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body ?? {});
    response.writeHead(answer.status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text), ...answer.headers });
    return response.end(text);
  }

  stop() {
    this.https.close();
    this.https.closeAllConnections();
  }
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch {
    throw new Refusal(400, { message: 'not JSON' });
  }
}

// Who may speak: one exact Authorization header.
export function authorized(request, wanted) {
  if (request.headers.authorization !== wanted) throw new Refusal(401, { message: `not ${request.headers.authorization}` });
}

export const basic = (user, password) => `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`;
