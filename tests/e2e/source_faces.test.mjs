// One daemon, two databases: what the API and /mcp do is done in the source that the address names, and
// where it names none, or one that is not served, nothing is done in any.
import assert from 'node:assert/strict';
import { closableTool } from './config.mjs';
import { HttpAgent, inRun, told } from './mcp_client.mjs';
import { twoDatabases } from './second_source.mjs';
import { story } from './world.mjs';

const token = 'a-token-that-is-long-enough';

function sources(name, body) {
  story(name, async (w) => {
    const support = await twoDatabases(w);
    try {
      const tools = { create_ticket: { ...closableTool(w.desk.url), expose: true } };
      const daemon = await (await w.launch({ database: support.database, tools, admin: { token_file: w.write('token', `${token}\n`) } })).ready();
      await body(w, support, daemon);
    } finally {
      await support.db.end();
    }
  });
}

sources('the API reads and steers in the source that is named, and guesses none', async (w, support, daemon) => {
  const ask = async (path, body) => {
    const response = await fetch(`http://127.0.0.1:${daemon.port}/api/v1/${path}`, {
      method: body ? 'POST' : 'GET', body: body && JSON.stringify(body),
      headers: { Authorization: `Bearer ${token}`, ...(body && { 'Content-Type': 'application/json' }) },
    });
    return { status: response.status, body: await response.json() };
  };
  const later = `INSERT INTO outbox.operation (operation_id, tool, arguments, run_at) VALUES ($1, 'create_ticket', '{"title": "x"}', now() + interval '1 day')`;
  for (const db of [w.db, support.db]) await db.query(later, ['same']);
  await support.db.query(later, ['one & only?=']);

  assert.deepEqual((await ask('sources')).body.items, [{ name: 'orders' }, { name: 'support' }]);
  for (const path of ['operations', 'operations/same', 'stats', 'tools', 'workers', 'operations?status=failed']) {
    const none = await ask(path);
    assert.deepEqual([none.status, /orders, support/.test(none.body.detail)], [400, true], path);
    for (const source of ['sales', '', 'Orders', 'orders,support']) {
      const wrong = await ask(`${path}${path.includes('?') ? '&' : '?'}source=${source}`);
      assert.equal(wrong.status, 404, `${path} of "${source}"`);
    }
    for (const source of ['orders', 'support']) {
      assert.equal((await ask(`${path}${path.includes('?') ? '&' : '?'}source=${source}`)).status, 200, `${path} of ${source}`);
    }
  }
  const list = async (query) => (await ask(`operations?${query}`)).body.items.map((item) => item.operation_id);
  assert.deepEqual(await list('source=orders'), ['same']);
  assert.deepEqual(await list('limit=5&source=support&status=scheduled'), ['one & only?=', 'same']);
  assert.deepEqual(await list('source=supp%6Frt&limit=1'), ['one & only?=']);
  assert.equal((await ask(`operations/${encodeURIComponent('one & only?=')}?source=support`)).status, 200);
  assert.equal((await ask(`operations/${encodeURIComponent('one & only?=')}?source=orders`)).status, 404);

  // Steering: nothing without a source, then that one alone.
  const cancel = { reason: 'not needed' };
  assert.equal((await ask('operations/same/cancel', cancel)).status, 400);
  assert.equal((await ask('operations/same/cancel?source=sales', cancel)).status, 404);
  assert.equal((await ask('tools/create_ticket/pause', { reason: 'x' })).status, 400);
  for (const db of [w, support]) assert.equal((await db.one(`SELECT status FROM outbox.get('same')`)).status, 'scheduled');
  assert.equal((await ask('operations/same/cancel?source=support', cancel)).status, 200);
  assert.equal((await support.one(`SELECT status FROM outbox.get('same')`)).status, 'cancelled');
  assert.equal((await w.one(`SELECT status FROM outbox.get('same')`)).status, 'scheduled');
  assert.equal((await ask('tools/create_ticket/pause?source=orders', { reason: 'x' })).status, 200);
  assert.deepEqual((await w.one(`SELECT paused_reason FROM outbox.tool WHERE tool = 'create_ticket'`)), { paused_reason: 'x' });
  assert.deepEqual((await support.one(`SELECT paused_reason FROM outbox.tool WHERE tool = 'create_ticket'`)), { paused_reason: null });
});

sources('an agent works in the source of its address: equal calls in two are two operations, in none nothing', async (w, support, daemon) => {
  const agent = (query) => {
    const made = new HttpAgent(daemon.port, token);
    made.url += query;
    return made;
  };
  const call = { id: 1, method: 'tools/call', params: { name: 'create_ticket', arguments: { title: 'disk full' }, _meta: inRun('run-7') } };
  for (const [query, status] of [['', 400], ['?source=sales', 404], ['?source=', 404], ['?sources=orders', 400]]) {
    const refused = await agent(query).send(call);
    assert.equal(refused.status, status, query);
    assert.match(JSON.stringify(refused.message), /orders, support/);
  }
  for (const db of [w, support]) assert.equal((await db.one('SELECT count(*)::int AS n FROM outbox.operation')).n, 0);

  const done = [];
  for (const query of ['?source=orders', '?source=support', '?source=orders']) {
    done.push(told((await agent(query).send(call)).message));
  }
  assert.deepEqual(done.map((answer) => [answer.truth, answer.replayed]), [['succeeded', false], ['succeeded', false], ['succeeded', true]]);
  assert.equal(new Set(done.map((answer) => answer.operation_id)).size, 1, 'the id is of the call');
  assert.equal(new Set(done.map((answer) => answer.result.id)).size, 2, 'and names another operation in each source');
  assert.equal((await w.desk.state()).tickets.length, 2);
  for (const db of [w, support]) assert.equal((await db.one('SELECT count(*)::int AS n FROM outbox.operation')).n, 1);
});
