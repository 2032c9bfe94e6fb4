// A hostile ticket service as a process of its own: `node service.mjs SEED JOURNAL LAG`. It honours
// no idempotency key, so a second request is a second effect. Prints {"port", "control"}; what it
// does to a request is drawn from the seed, the key and how often that key was seen.
//
// LAG (ms) bounds what a truthful look-up may miss: an effect happens, and is listed, at the latest
// LAG after its request arrived. POST control/calm ends all malice, GET control/state tells all.
import { appendFileSync } from 'node:fs';
import http from 'node:http';
import { draw, weighted } from './random.mjs';

const [seed, journal, lagText] = process.argv.slice(2);
const lag = Number(lagText);
const tickets = [];            // {id, ref, operation_id, at, arrived, attempt}
const arrivals = [];           // every POST: {operation_id, attempt, at, mode}
const seen = new Map();        // method and key → how often
const counts = {};
let calm = false;
let stall = 0;                 // the longest time this process did not get to run

const posts = {
  ok: 55, slow: 8,
  cut: 5, error_after: 5, late_answer: 4, silent: 2, garbage: 2, late_effect_cut: 7,
  drop: 5, error_before: 3, refuse: 3, busy: 3,
};
const looks = { ok: 72, error: 7, cut: 5, silent: 3, garbage: 3, missing: 2, unauthorized: 1, slow: 7 };

function open(body, arrived) {
  const ticket = {
    id: `T-${tickets.length + 1}`, ref: body.external_ref, title: body.title, operation_id: body.operation_id,
    attempt: Number(body.attempt), arrived, at: Date.now(),
  };
  ticket.listed = ticket.at + (calm ? 0 : draw(seed, 'lag', body.external_ref, tickets.length) * lag / 2);
  tickets.push(ticket);
  appendFileSync(journal, `${JSON.stringify(ticket)}\n`);
  return ticket;
}

function reply(response, status, value, headers = {}) {
  if (response.destroyed) return;
  const text = typeof value === 'string' ? value : JSON.stringify(value);
  response.writeHead(status, { 'Content-Type': 'application/json', 'Content-Length': Buffer.byteLength(text), ...headers });
  response.end(text);
}

const after = (ms, act) => setTimeout(act, calm ? 0 : ms);

function post(mode, body, arrived, part, response) {
  const cut = () => response.socket?.destroy();
  const created = () => reply(response, 201, { id: open(body, arrived).id });
  switch (mode) {
    case 'ok': return created();
    case 'slow': return after(part * lag / 2, created);
    case 'cut': open(body, arrived); return cut();
    case 'error_after': open(body, arrived); return reply(response, 500, { code: 'boom' });
    case 'late_answer': { const { id } = open(body, arrived); return after(800 + part * 2500, () => reply(response, 201, { id })); }
    case 'silent': return open(body, arrived);
    case 'garbage': open(body, arrived); return reply(response, 502, '{"id": ');
    case 'late_effect_cut': after(part * lag / 2, () => open(body, arrived)); return cut();
    case 'drop': return cut();
    case 'error_before': return reply(response, 500, { code: 'boom' });
    case 'refuse': return reply(response, 422, { code: 'rude_title', message: 'The title is rude.' });
    default: return reply(response, 429, { code: 'busy' }, { 'Retry-After': '1' });
  }
}

function look(mode, ref, part, response) {
  const truth = () => reply(response, 200, { tickets: tickets.filter((t) => t.ref === ref && (calm || t.listed <= Date.now())).map((t) => ({ id: t.id, external_ref: t.ref, title: t.title })), has_more: false });
  switch (mode) {
    case 'ok': return truth();
    case 'slow': return after(part * 1500, truth);
    case 'error': return reply(response, 500, { tickets: [] });
    case 'cut': return response.socket?.destroy();
    case 'silent': return undefined;
    case 'garbage': return reply(response, 200, '{"tickets": [');
    case 'missing': return reply(response, 404, { tickets: [] });
    default: return reply(response, 401, { tickets: [] });
  }
}

async function read(request) {
  const chunks = [];
  for await (const chunk of request) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

async function serve(request, response) {
  const arrived = Date.now();
  const text = await read(request);  // a body that is cut throws: nothing happened
  const isLook = request.method === 'GET';
  const body = isLook ? {} : JSON.parse(text);
  const ref = isLook ? new URL(request.url, 'http://service').searchParams.get('external_ref') : body.external_ref;
  const nth = (seen.get(`${request.method} ${ref}`) ?? 0) + 1;
  seen.set(`${request.method} ${ref}`, nth);
  // A look-up tells the truth in the end, whatever is drawn.
  const mode = calm || (isLook && nth > 12) ? 'ok' : weighted(isLook ? looks : posts, draw(seed, request.method, ref, nth));
  const part = draw(seed, 'part', request.method, ref, nth);
  const name = `${isLook ? 'look' : 'post'}_${mode}`;
  counts[name] = (counts[name] ?? 0) + 1;
  if (isLook) return look(mode, ref, part, response);
  arrivals.push({ operation_id: body.operation_id, attempt: Number(body.attempt), at: arrived, mode });
  return post(mode, body, arrived, part, response);
}

async function control(request, response) {
  if (request.url === '/calm') calm = true;
  reply(response, 200, request.url === '/state' ? { tickets, arrivals, counts, stall } : {});
}

const listen = (server) => new Promise((resolve) => server.listen(0, '127.0.0.1', () => resolve(server.address().port)));
const server = http.createServer((request, response) => serve(request, response).catch(() => response.socket?.destroy()));
server.keepAliveTimeout = 30_000;
server.on('clientError', (error, socket) => socket.destroy());
let last = Date.now();
setInterval(() => { stall = Math.max(stall, Date.now() - last - 50); last = Date.now(); }, 50);
console.log(JSON.stringify({ port: await listen(server), control: await listen(http.createServer(control)) }));
process.stdin.on('end', () => process.exit(0)).resume();  // it never outlives the soak
