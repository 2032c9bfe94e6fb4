// The admin server's JSON: each path for success, a wrong id, a wrong body, no token and no
// database; that paging neither skips nor repeats; and what redact: hides.
import assert from 'node:assert/strict';
import { closableTool, ticketTool } from './config.mjs';
import { eventually } from './util.mjs';
import { story } from './world.mjs';

const token = 'a-token-for-tests-0123456789';

// A daemon with a token file, and a client of its API.
async function start(w, more = {}) {
  const tools = more.tools ?? { create_ticket: closableTool(w.desk.url) };
  const daemon = await w.start({ ...more, tools, admin: { token_file: w.write('token', `${token}\n`), ...more.admin } });
  return { daemon, ...client(daemon) };
}

function client(daemon, { bearer = token } = {}) {
  const ask = async (method, path, body, headers = {}) => {
    const answer = await fetch(`http://127.0.0.1:${daemon.port}/api/v1/${path}`, {
      method,
      headers: { ...(bearer && { Authorization: `Bearer ${bearer}` }), ...(body !== undefined && { 'Content-Type': 'application/json' }), ...headers },
      body: body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body),
      signal: AbortSignal.timeout(30_000),
    });
    const text = await answer.text();
    return { status: answer.status, type: answer.headers.get('content-type'), headers: answer.headers, text, body: text && JSON.parse(text) };
  };
  return { get: (path) => ask('GET', path), post: (path, body = {}, headers) => ask('POST', path, body, headers), ask };
}

function refused(answer, status, more = {}) {
  assert.equal(answer.status, status, answer.text);
  assert.equal(answer.type, 'application/problem+json');
  assert.equal(answer.body.status, status);
  assert.ok(answer.body.title && answer.body.detail, answer.text);
  for (const [name, value] of Object.entries(more)) {
    if (value instanceof RegExp) assert.match(String(answer.body[name]), value); else assert.equal(answer.body[name], value, answer.text);
  }
}

const path = (id, verb) => `operations/${encodeURIComponent(id)}${verb ? `/${verb}` : ''}`;

story('the list: filters, and what is no filter', async (w) => {
  await w.desk.plan('no', { posts: ['refuse'] });
  const { get } = await start(w, { tools: { create_ticket: closableTool(w.desk.url), other: ticketTool(w.desk.url) } });
  for (const id of ['a', 'b', 'no']) await w.enqueue(id);
  await w.enqueue('c', { tool: 'other' });
  for (const id of ['a', 'b', 'no', 'c']) await w.settled(id);
  const ids = async (query) => {
    const answer = await get(`operations${query}`);
    assert.equal(answer.status, 200, answer.text);
    assert.deepEqual(Object.keys(answer.body), ['items', 'next']);
    return answer.body.items.map((row) => row.operation_id);
  };
  assert.deepEqual(await ids(''), ['c', 'no', 'b', 'a'], 'newest first');
  assert.deepEqual(await ids('?status=failed'), ['no']);
  assert.deepEqual(await ids('?status=succeeded&tool=create_ticket'), ['b', 'a']);
  assert.deepEqual(await ids('?status=failed,succeeded&tool=other'), ['c']);
  assert.deepEqual(await ids('?status=failed&status=succeeded'), ['c', 'no', 'b', 'a']);
  assert.deepEqual(await ids('?tool=nobody'), []);
  assert.deepEqual(await ids('?attention=true'), []);
  assert.deepEqual(await ids('?attention=false&limit=1'), ['c']);
  const { body: { items: [row] } } = await get('operations?status=failed');
  assert.equal(row.error_code, (await w.get('no')).error.code);
  for (const [query, parameter] of [['status=done', 'status'], ['status=', 'status'], ['attention=yes', 'attention'], ['after=x', 'after'],
    ['after=0', 'after'], ['limit=0', 'limit'], ['limit=1001', 'limit'], ['limit=1e2', 'limit'], ['limt=1', 'limt'], ['=', '']]) {
    refused(await get(`operations?${query}`), 400, { parameter });
  }
  refused(await get('operations?limt=1'), 400, { detail: /limit/ });
  for (const query of ['tool=%', 'tool=%zz', 'tool=%00', 'tool=%ff']) refused(await get(`operations?${query}`), 400);
});

story('pages neither skip nor repeat while rows are inserted, and every page has an end', async (w) => {
  const { get } = await start(w, { tools: { create_ticket: ticketTool(w.desk.url, { concurrency: 1, rate: '1/h' }) } });
  const add = (from, count) => w.db.query(
    `INSERT INTO outbox.operation (operation_id, tool, arguments) SELECT 'row-' || i, 'create_ticket', '{"title": "x"}' FROM generate_series($1::int, $2::int) i`,
    [from, from + count - 1]);
  const count = 700;
  await add(1, count);
  for (const query of ['', '&tool=create_ticket', '&status=pending,attempting,succeeded']) {
    const seen = [];
    let next = null;
    let pages = 0;
    do {
      await add(1000 + pages * 10 + query.length * 1000, 7);
      const { body } = await get(`operations?limit=37${query}${next ? `&after=${next}` : ''}`);
      assert.ok(body.items.length <= 37);
      assert.ok(body.next === null || typeof body.next === 'string');
      seen.push(...body.items.map((row) => row.operation_id));
      next = body.next;
      pages += 1;
    } while (next);
    assert.equal(new Set(seen).size, seen.length, 'nothing twice');
    const old = seen.filter((id) => Number(id.slice(4)) <= count);
    assert.equal(old.length, count, `all of the first: ${query}`);
  }
  // A page that ends with the last row says so.
  const { body } = await get('operations?limit=1000&after=38');
  assert.deepEqual([body.items.length, body.next], [37, null]);
  assert.equal((await get('operations?limit=37&after=38')).body.next, null);
  assert.notEqual((await get('operations?limit=36&after=38')).body.next, null);
  await w.db.query('DELETE FROM outbox.queue');  // nothing of this is to be carried out
  await w.db.query(`INSERT INTO outbox.outcome (seq, outcome, attempts, lease_epoch) SELECT seq, 'cancelled', 0, 1 FROM outbox.operation
     ON CONFLICT DO NOTHING`);
});

story('one operation with its whole story', async (w) => {
  await w.desk.plan('cut', { posts: ['cut'] });
  const { get } = await start(w);
  await w.enqueue('cut', { args: { title: 'disk full' } });
  await w.settled('cut');
  await w.enqueue('cut', { args: { title: 'disk full' } });  // a replay
  const { status, body } = await get(path('cut'));
  assert.equal(status, 200);
  assert.equal(body.operation.status, 'succeeded');
  assert.equal(body.operation.result.id, 'T-1');
  assert.match(body.operation.message, /performed/);
  assert.deepEqual(body.intent.arguments, { title: 'disk full' });
  assert.equal(body.work, null);
  const kinds = body.events.map((event) => event.kind);
  assert.deepEqual(kinds, await w.events('cut'));
  assert.ok(kinds.includes('unknown') && kinds.includes('probe') && kinds.includes('replayed'), `${kinds}`);
  assert.equal(body.more_events, false);
  const { request, lookup } = body.rendered;
  assert.deepEqual([request.type, request.method, request.url], ['http', 'POST', `${w.desk.url}/tickets`]);
  const [posted] = await w.desk.posts('cut');
  assert.deepEqual(JSON.parse(request.body), posted.body, 'what is shown is what was sent');
  assert.match(lookup.url, /external_ref=/);
  assert.deepEqual(body.compensations, ['close']);
  refused(await get(path('nobody')), 404, { answer: 'not_found' });
  refused(await get(`${path('cut')}?x=1`), 400, { parameter: 'x' });

  // Very many events: the latest, and that there are more.
  await w.db.query(`INSERT INTO outbox.event (operation_id, kind, detail) SELECT 'cut', 'replayed', jsonb_build_object('n', i) FROM generate_series(1, 600) i`);
  const late = (await get(path('cut'))).body;
  assert.equal(late.events.length, 500);
  assert.equal(late.events.at(-1).detail.n, 600);
  assert.equal(late.more_events, true);
});

story('ids may hold anything an id may hold', async (w) => {
  const { get, post } = await start(w);
  const ids = ['a/b', '../tools', 'a%2Fb', '100%', 'q?x=1&y#z', '\u00e4\u4e16\u754c\u{1f600}', 'sp ace+plus', "'; DROP TABLE x; --", '<b>', '\\\\', ' '.repeat(3), 'x'.repeat(200), '\u4e16'.repeat(66)];
  for (const id of ids) await w.enqueue(id, { args: { title: 'x' } });
  for (const id of ids) await w.settled(id);
  for (const id of ids) {
    const told = await get(path(id));
    assert.equal(told.status, 200, `${id}: ${told.text}`);
    assert.equal(told.body.operation.operation_id, id);
    refused(await post(path(id, 'retry'), { reason: 'why not' }), 409, { answer: 'not_failed' });
  }
  for (const id of ['y'.repeat(512), '\u{1f600}'.repeat(128)]) {
    refused(await get(path(id)), 404);
    refused(await post(path(id, 'cancel')), 404);
  }
  for (const raw of ['operations/%', 'operations/%f', 'operations/%zz', 'operations/%ff', 'operations/%00', 'operations/%ed%a0%80']) refused(await get(raw), 400);
  for (const raw of ['operations/', 'operations/a/b/c', 'operations/a/', 'nothing', 'tools/x', '', 'stats/', 'operations/a/retry/']) {
    refused(await get(raw), 404);
  }
  refused(await post('operations/a/explode'), 404);
  refused(await post('operations//retry', { reason: 'x' }), 404);
  refused(await post('tools/create_ticket/retry', { reason: 'x' }), 404);
});

story('steering: what each way does, and its refusals', async (w) => {
  for (const id of ['no', 'no-2']) await w.desk.plan(id, { posts: ['refuse'] });
  for (const id of ['lost', 'lost-2', 'lost-3']) await w.desk.plan(id, { posts: ['drop'], looks: 'fail' });
  const { get, post } = await start(w, { defaults: { reconcile: { settle: '0s', confirmations: 1, interval: '60s', max_interval: '60s', give_up_after: '1h', after_absent: 'retry' } } });
  await w.enqueue('no');
  await w.settled('no');
  await w.desk.plan('no', { posts: [] });
  assert.deepEqual((await post(path('no', 'retry'), { reason: 'it was their fault' })).body, { answer: 'armed' });
  await w.until('no', ['succeeded']);
  const [retried] = await w.events('no', 'retried');
  assert.equal(retried.detail.reason, 'it was their fault');

  await w.db.query(`INSERT INTO outbox.operation (operation_id, tool, arguments, run_at) VALUES ('later', 'create_ticket', '{"title": "x"}', now() + interval '1 h'), ('later-2', 'create_ticket', '{"title": "x"}', now() + interval '1 h')`);
  assert.deepEqual((await post(path('later', 'cancel'), { reason: 'not needed' })).body, { answer: 'cancelled' });
  refused(await post(path('later', 'cancel')), 409, { answer: 'already_cancelled' });
  refused(await post(path('no', 'cancel')), 409, { answer: 'too_late' });
  refused(await post(path('nobody', 'cancel')), 404, { answer: 'not_found' });

  const compensated = await post(path('no', 'compensate'), { name: 'close', arguments: { note: 'by hand' }, reason: 'opened by mistake' });
  assert.equal(compensated.status, 200, compensated.text);
  assert.equal(compensated.body.operation_id, 'no:compensate:close');
  await w.until('no:compensate:close', ['succeeded']);
  const undone = (await get(path('no:compensate:close'))).body;
  assert.equal(JSON.parse(undone.rendered.request.body).note, 'by hand');
  assert.equal(undone.original_result.id, (await w.get('no')).result.id);
  assert.equal((await get(path('no'))).body.undone_by[0].operation_id, 'no:compensate:close');
  refused(await post(path('later', 'compensate'), {}), 409, { answer: 'nothing_to_compensate' });
  assert.equal((await post(path('later-2', 'compensate'), {})).body.status, 'cancelled');
  refused(await post(path('no', 'compensate'), { name: 'burn' }), 404, { sqlstate: 'OB404', hint: /close/ });
  refused(await post(path('nobody', 'compensate'), {}), 404);

  await w.db.query(`UPDATE outbox.tool SET paused_at = NULL`);
  assert.deepEqual((await post('tools/create_ticket/pause', { reason: 'they move' })).body, { answer: 'paused' });
  assert.equal((await get('tools')).body.items.find((tool) => tool.tool === 'create_ticket').paused_reason, 'they move');
  assert.deepEqual((await post('tools/create_ticket/resume')).body, { answer: 'resumed' });
  refused(await post('tools/create_tickte/pause', { reason: 'x' }), 404, { hint: /create_ticket/ });

  // What is unknown: made so by hand, where no daemon looks at it.
  await w.db.query(`INSERT INTO outbox.operation (operation_id, tool, arguments) VALUES ('u', 'elsewhere', '{}'), ('u2', 'elsewhere', '{}')`);
  await w.db.query(`UPDATE outbox.queue q SET status = 'unknown', lease_epoch = 2, attempt_epoch = 1, attempts = 1, due_at = 'infinity', unknown_since = now(),
     attention = 'manual', started_at = now(), deadline_at = now() - interval '1 h' FROM outbox.operation o WHERE o.seq = q.seq AND o.tool = 'elsewhere'`);
  assert.deepEqual((await get('operations?attention=true')).body.items.map((row) => row.operation_id), ['u2', 'u']);
  assert.deepEqual((await get('stats')).body.attention, [{ tool: 'elsewhere', attention: 'manual', count: 2 }]);
  const verdict = { verdict: 'applied', reason: 'seen at the desk', actor: 'ann' };
  refused(await post(path('u', 'resolve'), { ...verdict, expected_epoch: 9 }), 409, { answer: 'stale' });
  assert.deepEqual((await post(path('u', 'resolve'), { ...verdict, expected_epoch: 1, result: { id: 7 } })).body, { answer: 'resolved' });
  assert.deepEqual((await w.get('u')).result, { id: 7 });
  refused(await post(path('u', 'resolve'), { ...verdict, expected_epoch: 1 }), 409, { answer: 'not_unknown' });
  refused(await post(path('nobody', 'resolve'), { ...verdict, expected_epoch: 1 }), 404);
  assert.deepEqual((await post(path('u2', 'probe'))).body, { answer: 'asked' });
  refused(await post(path('u', 'probe')), 409, { answer: 'not_unknown' });
  await w.db.query(`UPDATE outbox.outcome e SET attention = 'late_effect' FROM outbox.operation o WHERE o.seq = e.seq AND o.operation_id = 'u'`);
  assert.deepEqual((await post(path('u', 'acknowledge'), { reason: 'seen', actor: 'ann' })).body, { answer: 'acknowledged' });
  refused(await post(path('u', 'acknowledge'), { reason: 'seen', actor: 'ann' }), 409, { answer: 'nothing_to_acknowledge' });

  const { body: { items: workers } } = await get('workers');
  assert.deepEqual([workers.length, workers[0].alive, workers[0].name], [1, true, 'e2e']);
  const { body: { items: stats } } = await get('stats');
  assert.ok(stats.some((row) => row.tool === 'create_ticket' && row.status === null), JSON.stringify(stats));
});

story('a body that is not what the function takes is refused with its place', async (w) => {
  const { get, post, ask } = await start(w);
  await w.enqueue('x');
  await w.settled('x');
  for (const [verb, body, pointer] of [
    ['retry', {}, '/reason'], ['retry', { reason: null }, '/reason'], ['retry', { reason: 1 }, '/reason'], ['retry', { reason: 'a\0b' }, '/reason'],
    ['retry', { reason: 'r'.repeat(5000) }, '/reason'], ['retry', { reason: 'x', 'a/b~c': 1 }, '/a~1b~0c'], ['retry', { reason: 'x', operation_id: 'y' }, '/operation_id'],
    ['cancel', { reason: {} }, '/reason'], ['cancel', { raeson: 'x' }, '/raeson'], ['probe', { reason: 'x' }, '/reason'],
    ['resolve', {}, '/verdict'], ['resolve', { verdict: 'maybe', reason: 'x', actor: 'a', expected_epoch: 1 }, '/verdict'],
    ['resolve', { verdict: 'applied', actor: 'a', expected_epoch: 1 }, '/reason'], ['resolve', { verdict: 'applied', reason: 'x', expected_epoch: 1 }, '/actor'],
    ['resolve', { verdict: 'applied', reason: 'x', actor: 'a' }, '/expected_epoch'], ['resolve', { verdict: 'applied', reason: 'x', actor: 'a', expected_epoch: '1' }, '/expected_epoch'],
    ['resolve', { verdict: 'applied', reason: 'x', actor: 'a', expected_epoch: 1.5 }, '/expected_epoch'], ['resolve', { verdict: 'applied', reason: 'x', actor: 'a', expected_epoch: 1e99 }, '/expected_epoch'],
    ['compensate', { name: 1 }, '/name'], ['compensate', { arguments: [] }, '/arguments'], ['compensate', { arguments: 'x' }, '/arguments'],
    ['acknowledge', { reason: 'x' }, '/actor'],
  ]) refused(await post(path('x', verb), body), 400, { pointer });
  refused(await post('tools/create_ticket/pause', {}), 400, { pointer: '/reason' });
  refused(await post('tools/create_ticket/resume', { reason: 'x' }), 400, { pointer: '/reason' });
  refused(await post(path('x', 'cancel'), { raeson: 'x' }), 400, { detail: /reason/ });
  for (const body of ['{', 'null', '[]', '"x"', '{"reason": "x"} x', '\xff']) refused(await post(path('x', 'retry'), body), 400, { pointer: '' });
  refused(await post(path('x', 'retry'), { reason: '  ' }), 400, { sqlstate: 'OB400' });
  refused(await post(`${path('x', 'retry')}?reason=x`), 400, { parameter: 'reason' });
  // Larger than anything the server reads: it answers, or hangs up while more is still on its way.
  const large = await post(path('x', 'retry'), { reason: 'r'.repeat(40_000_000) }).catch(() => null);
  if (large) refused(large, 413);
  for (const method of ['PUT', 'DELETE', 'PATCH', 'OPTIONS']) refused(await ask(method, path('x'), undefined), 405);
  assert.equal((await ask('HEAD', path('x'), undefined)).status, 200);
  assert.deepEqual((await get(path('x'))).body.events, [], 'nothing was done');
});

story('without the token nothing is told or done; without a token file reads are open and writes are off', async (w) => {
  const { daemon } = await start(w);
  await w.enqueue('x');
  await w.settled('x');
  const reads = ['operations', path('x'), 'tools', 'workers', 'stats'];
  const writes = [...['retry', 'cancel', 'resolve', 'compensate', 'probe', 'acknowledge'].map((verb) => path('x', verb)), 'tools/create_ticket/pause', 'tools/create_ticket/resume'];
  for (const bearer of [null, 'a-token-for-tests-012345678', `${token}x`, 'x'.repeat(5000)]) {
    const wrong = client(daemon, { bearer });
    for (const read of reads) {
      const answer = await wrong.get(read);
      refused(answer, 401);
      assert.equal(answer.headers.get('www-authenticate'), 'Bearer');
    }
    for (const write of writes) refused(await wrong.post(write, { reason: 'x' }), 401);
  }
  const right = client(daemon);
  for (const origin of ['http://evil.example', 'null', `http://127.0.0.1:${daemon.port + 1}`]) {
    for (const write of writes) refused(await right.post(write, { reason: 'x' }, { Origin: origin }), 403);
  }
  for (const write of writes) {
    refused(await right.post(write, '{"reason": "x"}', { 'Content-Type': 'text/plain' }), 415);
    refused(await right.post(write, { reason: 'x' }, { 'Sec-Fetch-Site': 'cross-site' }), 403);
  }
  const open = client(await w.start({ admin: {} }), { bearer: null });
  for (const read of reads) assert.equal((await open.get(read)).status, 200, read);
  for (const write of writes) refused(await open.post(write, { reason: 'x' }), 403);
  assert.deepEqual(await w.events('x'), []);
  for (const bad of ['short', '']) {
    const file = w.write('bad-token', bad);
    const failed = await w.launch({ admin: { token_file: file } });
    await eventually('it ends', () => failed.ended);
    assert.match(failed.log, /token_file .*16 to 4096/);
  }
});

story('redact: hides what it names, wherever it comes back', async (w) => {
  const secret = 'hunter2-and-more';
  const tool = ticketTool(w.desk.url, {
    redact: ['/password', '/card/number', '/list/1', '/nothing/here'],
    arguments: { type: 'object' },
  });
  tool.execute.json.title = '{{ arguments.title }} {{ arguments.password }}';
  delete tool.reconcile.must_equal;
  const { get } = await start(w, { tools: { create_ticket: tool } });
  await w.enqueue('x', { args: { title: 'plain', password: secret, card: { number: 4111111111111111, name: 'Ann' }, list: ['keep', 'drop-this'] } });
  await w.settled('x');
  await w.db.query(`UPDATE outbox.outcome SET result = jsonb_build_object('echo', $1::text, 'number', 4111111111111111, 'fine', 'as it is')`, [`you sent ${secret}!`]);
  await w.db.query(`INSERT INTO outbox.event (operation_id, kind, detail) VALUES ('x', 'late_result', jsonb_build_object('result', jsonb_build_object($1::text, 'k')))`, [secret]);
  const { text, body } = await get(path('x'));
  assert.ok(!text.includes(secret) && !text.includes('4111111111111111') && !text.includes('drop-this'), text);
  assert.deepEqual(body.intent.arguments, { card: { name: 'Ann', number: '***' }, list: ['keep', '***'], title: 'plain', password: '***' });
  assert.deepEqual(body.operation.result, { echo: 'you sent ***!', fine: 'as it is', number: '***' });
  assert.equal(JSON.parse(body.rendered.request.body).title, 'plain ***');
  assert.equal(body.redacted, true);
  // What no configuration here describes is not shown at all.
  await w.db.query(`INSERT INTO outbox.operation (operation_id, tool, arguments, labels) VALUES ('foreign', 'elsewhere', '{"a": "private"}', '{"l": "private"}')`);
  for (const answer of [await get(path('foreign')), await get('operations')]) assert.ok(!answer.text.includes('private'), answer.text);
  const foreign = (await get(path('foreign'))).body;
  assert.equal(foreign.intent.arguments, '***');
  assert.match(foreign.rendered.problem, /configuration/);
});

story('numbers keep their digits, and what is nested deeply is still told', async (w) => {
  const { get } = await start(w, { tools: { create_ticket: ticketTool(w.desk.url, { arguments: { type: 'object' } }) } });
  await w.db.query(`INSERT INTO outbox.operation (operation_id, tool, arguments, run_at) VALUES
     ('n', 'create_ticket', '{"title": "x", "n": 9007199254740993.10}', now() + interval '1 h'),
     ('deep', 'create_ticket', ('{"title": ' || repeat('[', 5000) || repeat(']', 5000) || '}')::jsonb, now() + interval '1 h')`);
  assert.ok((await get(path('n'))).text.includes('9007199254740993.10'));
  const deep = await get(path('deep'));
  assert.equal(deep.status, 200, deep.text);
  assert.match(deep.body.intent.arguments, /cannot be shown/);
});

story('a database that is slow, frozen or gone: 503 in time, and the metrics go on', async (w) => {
  const { daemon, get, post } = await start(w);
  await w.enqueue('x');
  await w.settled('x');
  assert.equal((await get('tools')).status, 200);
  const timed = async (asking) => {
    const began = Date.now();
    const answer = await asking;
    return [answer, Date.now() - began];
  };
  const metrics = async () => {
    const [answer, took] = await timed(daemon.ask('/metrics'));
    assert.equal(answer.status, 200);
    assert.ok(took < 2000, `metrics took ${took} ms`);
  };
  // Locked: the server gives up, and says why.
  const holder = await w.db.connect();
  await holder.query('BEGIN; LOCK TABLE outbox.tool, outbox.queue IN ACCESS EXCLUSIVE MODE');
  const [slow, slowTook] = await timed(Promise.all([get('tools'), metrics()]));
  refused(slow[0], 503, { sqlstate: /^(55P03|57014)$/ });
  assert.equal(slow[0].headers.get('retry-after'), '2');
  assert.ok(slowTook < 15_000, `${slowTook} ms`);
  await holder.query('ROLLBACK');
  holder.release();

  // Frozen: the backend of the API answers nothing any more.
  const { rows } = await w.db.query(`SELECT pid FROM pg_stat_activity WHERE query LIKE '%outbox.tool t%' AND application_name <> '' AND pid <> pg_backend_pid() AND state = 'idle'`);
  assert.ok(rows.length > 0);
  for (const { pid } of rows) process.kill(pid, 'SIGSTOP');
  try {
    const [frozen] = await timed(Promise.all([get('tools'), metrics()]));
    refused(frozen[0], 503, { detail: /in time/ });
    const [again, took] = await timed(get('tools'));  // nobody queues behind it
    refused(again, 503);
    assert.ok(took < 2000, `${took} ms`);
    await metrics();
  } finally {
    for (const { pid } of rows) process.kill(pid, 'SIGCONT');
  }
  await eventually('it answers again', async () => (await get('tools')).status === 200, 30_000);

  // Frozen while something is done: nobody here knows whether it was.
  await w.db.query(`INSERT INTO outbox.operation (operation_id, tool, arguments, run_at) VALUES ('later', 'create_ticket', '{"title": "x"}', now() + interval '1 h')`);
  refused(await post(path('nobody', 'cancel')), 404);  // the connection is there
  const { rows: steering } = await w.db.query(`SELECT pid FROM pg_stat_activity WHERE query LIKE '%outbox.cancel(%' AND pid <> pg_backend_pid() AND state = 'idle'`);
  assert.equal(steering.length, 1);
  process.kill(steering[0].pid, 'SIGSTOP');
  try {
    refused(await post(path('later', 'cancel')), 503, { title: 'In doubt' });
    refused(await post(path('later', 'cancel')), 503, { title: 'No database' });  // not even begun
    await metrics();
  } finally {
    process.kill(steering[0].pid, 'SIGCONT');
  }
  await eventually('it was done after all', async () => (await w.get('later')).status === 'cancelled', 30_000);
  await eventually('it answers again', async () => (await post(path('nobody', 'cancel'))).status === 404, 30_000);

  // Gone: nobody may connect.
  const { database } = w.db.options;
  const admin = w.cluster.pool('postgres');
  try {
    await admin.query(`ALTER DATABASE ${database} ALLOW_CONNECTIONS false`);
    await admin.query('SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1', [database]);
    for (const read of ['operations', path('x'), 'tools', 'workers', 'stats']) refused(await get(read), 503);
    for (const verb of ['retry', 'cancel', 'compensate', 'probe', 'acknowledge']) refused(await post(path('x', verb), verb === 'retry' ? { reason: 'x' } : verb === 'acknowledge' ? { reason: 'x', actor: 'a' } : {}), 503);
    refused(await post(path('x', 'resolve'), { verdict: 'applied', reason: 'x', actor: 'a', expected_epoch: 1 }), 503);
    refused(await post('tools/create_ticket/pause', { reason: 'x' }), 503);
    refused(await post('tools/create_ticket/resume'), 503);
    await metrics();
  } finally {
    await admin.query(`ALTER DATABASE ${database} ALLOW_CONNECTIONS true`);
    await admin.end();
  }
  await eventually('it answers again', async () => (await get('operations')).status === 200, 30_000);
});

story('a reload takes the new redact:, and a drain ends what waits', async (w) => {
  const { daemon, get } = await start(w, { tools: { create_ticket: ticketTool(w.desk.url) } });
  await w.enqueue('x', { args: { title: 'rather private' } });
  await w.settled('x');
  assert.ok((await get(path('x'))).text.includes('rather private'));
  const { readFileSync } = await import('node:fs');
  const file = `${w.dir}/outboxd-0.yaml`;
  const document = JSON.parse(readFileSync(file, 'utf8'));
  document.tools.create_ticket.redact = ['/title'];
  w.write('outboxd-0.yaml', JSON.stringify(document));
  process.kill(daemon.pid, 'SIGHUP');
  await eventually('it is hidden', async () => !(await get(path('x'))).text.includes('rather private'), 15_000);
  await daemon.stop();
  assert.equal(daemon.ended.code, 0);
});
