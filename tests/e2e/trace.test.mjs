// The planner's trace goes on through attempts and look-ups, and the log has one line for each event, with
// the trace's id and without any argument.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { story } from './world.mjs';

const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
const parent = `00-${trace}-00f067aa0ba902b7-01`;
const secret = 'only-the-tool-may-see-this';

// Takes tickets, loses the first answer, and remembers what it was asked with.
async function service() {
  const seen = [];
  const tickets = [];
  const server = http.createServer((request, response) => {
    let body = '';
    request.on('data', (data) => { body += data; });
    request.on('end', () => {
      seen.push({ method: request.method, url: request.url, trace: request.headers.traceparent });
      if (request.method === 'POST') {
        tickets.push({ id: tickets.length + 1, ref: JSON.parse(body).ref });
        if (request.url === '/lost') return request.socket.destroy();
        response.writeHead(201, { 'Content-Type': 'application/json' });
        return response.end(JSON.stringify(tickets.at(-1)));
      }
      response.writeHead(200, { 'Content-Type': 'application/json' });
      return response.end(JSON.stringify({ tickets }));
    });
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { server, seen, url: `http://127.0.0.1:${server.address().port}` };
}

const tool = (url, where, headers = {}) => ({
  effect: 'write',
  execute: {
    type: 'http', method: 'POST', url: `${url}/${where}`, headers: { 'Idempotency-Key': '{{ operation.key }}', ...headers },
    json: { text: '{{ arguments.text }}', ref: '{{ operation.key }}' }, outcomes: [{ when: { status: 201 }, then: 'succeeded', result: { id: '/id' } }],
  },
  reconcile: { type: 'http', method: 'GET', url: `${url}/tickets`, query: { ref: '{{ operation.key }}' }, items: '/tickets', match: { '/ref': '{{ operation.key }}' }, consistency: 'strong' },
});

story('each attempt and each look-up hands the trace on in a span of its own; the log has its id and no argument', async (w) => {
  const { server, seen, url } = await service();
  try {
    const file = path.join(w.dir, 'traceparent');
    const daemon = await w.start({
      log: { format: 'json', level: 'debug' },
      tools: {
        lost: tool(url, 'lost'), plain: tool(url, 'plain'), own: tool(url, 'own', { traceparent: '{{ operation.traceparent }}' }),
        program: { effect: 'read', execute: { type: 'command', argv: ['/bin/sh', '-c', `printf %s "$TRACEPARENT" > ${file}`] } },
      },
    });
    const enqueue = (name, traceparent) => w.one('SELECT * FROM outbox.enqueue($1, $2::jsonb, $3, traceparent => $4)', [name, JSON.stringify({ text: secret }), `trace-${name}-${traceparent ? 1 : 0}`, traceparent]);
    for (const name of ['lost', 'plain', 'own', 'program']) await enqueue(name, parent);
    for (const name of ['lost', 'plain', 'own', 'program']) assert.equal((await w.settled(`trace-${name}-1`)).status, 'succeeded', name);
    const handed = (where) => seen.filter((r) => r.url.startsWith(where)).map((r) => r.trace);
    const [lost] = handed('/lost');
    const [looked] = handed('/tickets');
    const child = new RegExp(`^00-${trace}-(?!0{16})[0-9a-f]{16}-01$`);
    const program = readFileSync(file, 'utf8');
    const spans = [lost, looked, handed('/plain')[0], program];
    for (const one of spans) assert.match(one, child);
    assert.equal(new Set([parent, ...spans]).size, 5, 'each a span of its own');
    assert.equal(handed('/own')[0], parent, 'what the configuration says stands');

    await enqueue('plain', null);
    await w.settled('trace-plain-0');
    assert.equal(handed('/plain')[1], undefined, 'no trace, no header');
    await daemon.stop();

    const lines = daemon.log.split('\n').filter(Boolean).map((line) => JSON.parse(line));
    const of = (message, id) => lines.find((line) => line.message === message && line.operation_id === id);
    const ended = of('attempt ended', 'trace-lost-1');
    assert.deepEqual([ended.tool, ended.attempt, ended.outcome, ended.status, ended.trace_id, ended.level], ['lost', '1', 'unknown', 'unknown', trace, 'warn']);
    assert.match(ended.epoch, /^\d+$/);
    const answered = of('probe answered', 'trace-lost-1');
    assert.deepEqual([answered.tool, answered.verdict, answered.status, answered.trace_id], ['lost', 'found', 'succeeded', trace]);
    assert.match(answered.epoch, /^\d+$/);
    assert.equal(of('attempt ended', 'trace-plain-1').level, 'debug', 'the clean path is quiet');
    assert.equal(of('attempt ended', 'trace-plain-0').trace_id, '');
    for (const line of lines) assert.ok(line.time && line.level && line.message, JSON.stringify(line));
    assert.ok(!daemon.log.includes(secret), 'arguments are never logged');
  } finally {
    server.close();
    server.closeAllConnections?.();
  }
});
