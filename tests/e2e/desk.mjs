// The outside world as a process of its own: a ticket service that counts real effects and
// misbehaves on demand. `node desk.mjs JOURNAL [PORT] [CERT KEY]` prints {"port": N, "control": M}.
//
// On port:    POST /tickets                    opens a ticket (external_ref, operation_id, title)
//             GET  /tickets?external_ref=KEY   lists the tickets with that reference
//             POST /tickets/ID/close           closes a ticket (external_ref, operation_id)
//             GET  /tickets/ID?external_ref=   shows a ticket
// On control: POST /plan {operation_id, posts: [mode…], look: mode}   the nth mode for the nth POST
//             POST /release {operation_id}     lets held answers go
//             GET  /state                      everything it saw and did
//
// Every effect is appended to JOURNAL before it is answered, and read again at the start.
import { appendFileSync, existsSync, readFileSync } from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import { providerKey } from './util.mjs';

const [journal, port = '0', cert, key] = process.argv.slice(2);
const tickets = existsSync(journal)
  ? readFileSync(journal, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line))
  : [];
const closes = [];  // of this process: every one is an effect, also a second one of a ticket
const requests = [];
const plans = new Map();  // operation id → modes of its next POSTs
const looks = new Map();  // provider key → mode
const held = new Map();   // operation id → answer functions

function open(body) {
  if (body.closes) {
    const ticket = tickets.find((t) => t.id === body.closes);
    if (ticket) ticket.state = 'closed';
    closes.push(body);
    return { id: body.closes, state: 'closed' };
  }
  const ticket = { id: `T-${tickets.length + 1}`, state: 'open', at: Date.now(), ...body };
  tickets.push(ticket);
  appendFileSync(journal, `${JSON.stringify(ticket)}\n`);
  return ticket;
}

function reply(response, status, value, headers = {}) {
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text), ...headers });
  response.end(text);
}

// What a POST does, by mode; the first group has no effect, the second has one.
const posts = {
  drop: (body, response) => response.socket.destroy(),
  refuse: (body, response) => reply(response, 422, { code: 'rude_title', message: 'The title is rude.' }),
  busy: (body, response) => reply(response, 429, { code: 'busy' }, { 'Retry-After': '1' }),

  ok: (body, response) => reply(response, 201, open(body)),
  cut: (body, response) => { open(body); response.socket.destroy(); },
  error: (body, response) => { open(body); reply(response, 500, { code: 'boom' }); },
  hang: (body) => { open(body); },
  slow: (body, response) => { const ticket = open(body); setTimeout(() => reply(response, 201, ticket), 1500); },
  hold: (body, response) => {
    const ticket = open(body);
    held.set(body.operation_id, [...(held.get(body.operation_id) ?? []), () => reply(response, 201, ticket)]);
  },

  // The effect, and an answer that is hard to read or to store.
  nul: (body, response) => reply(response, 201, `{"id": "${open(body).id}", "note": "a\\u0000b"}`),
  raw_nul: (body, response) => reply(response, 201, `{"id": "${open(body).id}", "note": "a\0b"}`),
  utf8: (body, response) => raw(response, 201, Buffer.concat([Buffer.from(`{"id": "${open(body).id}", "note": "`), Buffer.from([0xff, 0xfe, 0xc3, 0x28]), Buffer.from('"}')])),
  surrogate: (body, response) => reply(response, 201, `{"id": "${open(body).id}", "note": "\\ud800 and \\udc00"}`),
  huge: (body, response) => reply(response, 201, `{"id": "${open(body).id}", "note": "${'x'.repeat(50 * 1024 * 1024)}"}`),
  large: (body, response) => reply(response, 201, `{"id": "${open(body).id}", "note": "${'x'.repeat(500 * 1024)}"}`),
  deep: (body, response) => reply(response, 201, `{"id": "${open(body).id}", "note": ${'['.repeat(1000)}${']'.repeat(1000)}}`),
  numbers: (body, response) => reply(response, 201, `{"id": "${open(body).id}", "note": [1e400, -0, 12345678901234567890.123456789, 1E+2]}`),
  empty: (body, response) => { open(body); reply(response, 201, ''); },
  text: (body, response) => { open(body); reply(response, 201, 'created, have a nice day'); },
  short: (body, response) => claim(response, 201, JSON.stringify({ id: open(body).id, note: 'x'.repeat(100) }), -40),
  long: (body, response) => claim(response, 201, JSON.stringify({ id: open(body).id }), 40),
  nonsense: (body, response) => { open(body); response.socket.end('\0\xff\r\n\r\nHTTP\r\n'); },
};

// An answer with bytes that are no text.
function raw(response, status, bytes) {
  response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': bytes.length });
  response.end(bytes);
}

// An answer whose Content-Length is not the length of its body; then the connection is closed.
function claim(response, status, text, more) {
  response.socket.end(`HTTP/1.1 ${status} As Planned\r\nContent-Type: application/json\r\nContent-Length: ${text.length + more}\r\n\r\n${text}`);
}

// What a look-up answers. Only ok tells the truth; the others must never be taken for "absent".
const answers = {
  ok: (ref, response) => reply(response, 200, { tickets: tickets.filter((t) => t.external_ref === ref), has_more: false }),
  error: (ref, response) => reply(response, 500, { tickets: [] }),
  unauthorized: (ref, response) => reply(response, 401, { tickets: [] }),
  missing: (ref, response) => reply(response, 404, { tickets: [] }),
  hang: () => {},
  cut: (ref, response) => response.socket.destroy(),
  garbage: (ref, response) => reply(response, 200, '{"tickets": ['),
  shape: (ref, response) => reply(response, 200, { tickets: 'none', has_more: false }),
  bare: (ref, response) => reply(response, 200, {}),
  endless: (ref, response) => reply(response, 200, { tickets: [], has_more: true, next_cursor: `c${requests.length}` }),

  // The truth, with what jsonb cannot hold.
  odd_nul: (ref, response) => reply(response, 200, listed(ref, '"a\\u0000b"')),
  odd_utf8: (ref, response) => raw(response, 200, Buffer.from(listed(ref, '"\xff\xfe\xc3("'), 'latin1')),
  odd_surrogate: (ref, response) => reply(response, 200, listed(ref, '"\\ud800 and \\udc00"')),
  odd_large: (ref, response) => reply(response, 200, listed(ref, `"${'x'.repeat(500 * 1024)}"`)),
  odd_numbers: (ref, response) => reply(response, 200, listed(ref, '[1e400, -0, 12345678901234567890.123456789]')),

  // A lie that nobody can read: each says "nothing there" as far as it goes.
  raw_nul: (ref, response) => reply(response, 200, '{"tickets": [], "note": "a\0b"}'),
  huge: (ref, response) => reply(response, 200, `{"tickets": [], "note": "${'x'.repeat(50 * 1024 * 1024)}"}`),
  deep: (ref, response) => reply(response, 200, `{"tickets": [], "note": ${'['.repeat(1000)}${']'.repeat(1000)}}`),
  empty: (ref, response) => reply(response, 200, ''),
  text: (ref, response) => reply(response, 200, 'no tickets here'),
  short: (ref, response) => claim(response, 200, '{"tickets": [], "has_more": false}', -10),
  long: (ref, response) => claim(response, 200, '{"tickets": [], "has_more": false}', 40),
  nonsense: (ref, response) => response.socket.end('\0\xff\r\n\r\nHTTP\r\n'),
};

// The one ticket with that reference and a note of the given JSON text; as a listing.
function listed(ref, note) {
  const ticket = tickets.find((t) => t.external_ref === ref);
  return `{"tickets": [${JSON.stringify(ticket).slice(0, -1)}, "note": ${note}}]}`;
}

async function read(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return chunks.length ? JSON.parse(Buffer.concat(chunks)) : {};
}

async function serve(request, response) {
  const body = await read(request);
  const url = new URL(request.url, 'http://desk');
  const [, , id, verb] = url.pathname.split('/');
  if (verb === 'close') body.closes = id;
  const ref = request.method === 'GET' ? url.searchParams.get('external_ref') : body.external_ref;
  requests.push({ at: Date.now(), method: request.method, key: ref, header: request.headers['idempotency-key'], body });
  const mode = looks.get(ref) ?? 'ok';
  if (request.method === 'GET' && id && mode === 'ok') {
    const ticket = tickets.find((t) => t.id === id);
    return reply(response, ticket ? 200 : 404, ticket ?? {});
  }
  if (request.method === 'GET') return answers[mode](ref, response);
  return posts[plans.get(body.operation_id)?.shift() ?? 'ok'](body, response);
}

async function control(request, response) {
  const body = await read(request);
  if (request.url === '/plan') {
    if (body.posts) plans.set(body.operation_id, body.posts);
    if (body.look) looks.set(providerKey(body.operation_id), body.look);
  } else if (request.url === '/release') {
    for (const answer of held.get(body.operation_id) ?? []) answer();
    held.delete(body.operation_id);
  }
  reply(response, 200, request.url === '/state' ? { tickets, closes, requests } : {});
}

const listen = (server, port) => new Promise((resolve) => server.listen(port, '127.0.0.1', () => resolve(server.address().port)));
const handler = (request, response) => serve(request, response).catch(() => response.socket?.destroy());
const server = cert
  ? https.createServer({ cert: readFileSync(cert), key: readFileSync(key) }, handler)
  : http.createServer(handler);
server.keepAliveTimeout = 30_000;
server.on('clientError', (error, socket) => socket.destroy());
server.on('tlsClientError', () => {});
console.log(JSON.stringify({ port: await listen(server, Number(port)), control: await listen(http.createServer(control), 0) }));
process.stdin.on('end', () => process.exit(0)).resume();  // it never outlives the test
