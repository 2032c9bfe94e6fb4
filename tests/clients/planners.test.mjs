// What docs/planners.md shows is run, and what it promises a model is what the database says.
import assert from 'node:assert/strict';
import { chmodSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { Program, eventually, freePort, providerKey, run } from '../e2e/util.mjs';
import { binary, story } from '../e2e/world.mjs';
import { blocks, planner, root, text } from './world.mjs';

const page = 'docs/planners.md';

story('planners.md: its SQL, as a planner who is nothing more', async (w) => {
  const env = await planner(w);
  const said = [];
  for (const sql of blocks(page, 'sql')) {
    if (sql.includes('outbox.compensate')) {
      const { state, operation_id: id } = await w.one('SELECT * FROM plan');
      assert.equal(state, 'checked');
      assert.equal((await w.settled(id)).status, 'succeeded');
      // The first block again, as after a connection lost during COMMIT: a replay, and no second ticket.
      const again = await run('psql', ['-X'], { env, input: blocks(page, 'sql')[0] });
      assert.match(again.text, /\| t +\| This action was already performed in this run/);
    }
    const misspelt = sql.includes('create_tickets');
    const { code, text: output } = await run('psql', ['-X', '-v', `ON_ERROR_STOP=${misspelt ? 0 : 1}`], { env, input: sql });
    assert.equal(code, 0, output);
    if (misspelt) assert.match(output, /ERROR: {2}there is no tool[^]*HINT: {2}Did you mean "create_ticket"/);
    else assert.doesNotMatch(output, /ERROR/);
    said.push(output);
  }
  assert.equal(said.length, 7);
  assert.match(said[0], /\| f +\| This action is recorded and will be carried out/);
  assert.match(said[2], /ROLLBACK\nCOMMIT/, 'the savepoint kept the transaction');
  assert.match(said[5], /cancelled/);
  const { operation_id: id } = await w.one('SELECT * FROM plan');
  assert.match(said[6], new RegExp(`${id}:compensate:close *\\| pending *\\| f *\\| The compensation is recorded and will be carried out`));
  assert.equal((await w.settled(`${id}:compensate:close`)).status, 'succeeded');
  // And the page's first block once more tells of it.
  assert.match((await run('psql', ['-X'], { env, input: blocks(page, 'sql')[0] })).text, /\| t +\| This action was performed and then undone/);
  assert.equal((await w.desk.closes(`${id}:compensate:close`))[0].note, 'opened by mistake');
});

story('planners.md: the agent loop opens one ticket, however the model and the planner retry', async (w) => {
  const env = await planner(w);
  const { id } = await w.one(`SELECT outbox.operation_key('create_ticket', '{"title": "disk full", "host": "db-1"}', 'incident-4711') AS id`);
  await w.desk.plan(id, { posts: ['slow'] });  // answers after the loop's patience
  const file = w.write('loop.py', blocks(page, 'python')[0]);
  const loop = await run('/usr/bin/python3', [file], { env: { ...env, PYTHONPATH: path.join(root, 'docs/clients/python') }, timeout: 60_000 });
  assert.equal(loop.code, 0, loop.text);
  const lines = loop.out.trim().split('\n');
  assert.match(lines[0], /^0 (pending|attempting) - This action is in progress/);
  assert.match(lines[1], /^1 /, 'the model called again');
  assert.match(lines.at(-1), /^Opened T-1\.$/);
  assert.match(lines.at(-2), /^0 succeeded - This action was already performed in this run; returning the earlier result\. Nothing was executed again\.$/);
  assert.equal(lines.filter((line) => line === 'Opened T-1.').length, 2);
  assert.equal((await w.desk.tickets(id)).length, 1);
  assert.equal((await w.desk.state()).tickets.length, 1);
  assert.equal((await w.desk.posts(id))[0].header, providerKey(id));
}, { timeout: 180_000 });

// As a newcomer does it: the page's own tool under `outboxd dev`, then everything on the page.
story('planners.md: tried along with its own tool, from top to bottom', async (w) => {
  chmodSync(w.dir, 0o755);  // as root, the server runs as user postgres and must get in
  const env = { PATH: process.env.PATH, HOME: w.dir, LANG: 'C.UTF-8', PGHOST: path.join(w.dir, '.outboxd/postgres'), PGUSER: 'postgres' };
  const file = w.write('try.yaml', `${blocks(page, 'yaml')[0]}admin: { listen: "127.0.0.1:${await freePort()}" }\n`);
  const dev = new Program(binary, ['dev', '-c', file], { cwd: w.dir, env });
  try {
    await eventually('it is ready', () => {
      if (dev.ended) throw new Error(dev.output);
      return /"ready"/.test(dev.output);
    }, 60_000);
    const rest = `SELECT count(*) FROM outbox.operations WHERE status NOT IN ('succeeded', 'failed', 'cancelled')`;
    const allDone = () => eventually('all is done', async () => (await run('psql', ['-XAtc', rest], { env })).out.trim() === '0', 30_000);
    for (const sql of blocks(page, 'sql')) {
      if (sql.includes('outbox.compensate')) await allDone();
      const { code, text: output } = await run('psql', ['-X'], { env, input: sql });
      assert.equal(code, 0, output);
      assert.equal((output.match(/ERROR/g) ?? []).length, sql.includes('create_tickets') ? 1 : 0, output);
    }
    const loop = await run('/usr/bin/python3', [w.write('loop.py', blocks(page, 'python')[0])],
      { env: { ...env, PYTHONPATH: path.join(root, 'docs/clients/python') }, timeout: 60_000 });
    assert.equal(loop.code, 0, loop.text);
    assert.match(loop.out, /^Opened T-\d+\.$[^]*^Opened T-\d+\.$/m);
    await allDone();
    const tickets = readFileSync(path.join(w.dir, 'tickets.txt'), 'utf8').trim().split('\n').map((line) => line.slice(65)).sort();
    assert.deepEqual(tickets, ['closed T-1', 'disk full', 'disk full', 'disk full on db-1', 'disk full on db-2', 'refund of order 42']);
    assert.equal((await dev.stop('SIGINT')).code, 0);
  } catch (error) {
    console.error(dev.output);
    throw error;
  } finally {
    if (!dev.ended) await dev.stop('SIGKILL');
  }
}, { timeout: 180_000 });

// The table of answers, row by row, against the function that words them.
story('planners.md: the messages are those of the database', async (w) => {
  await w.migrate();
  const { message } = await w.one(`SELECT string_agg(outbox.status_message(s, true, true, '{"code": "x"}', NULL, NULL, NULL, false), E'\\n') AS message
    FROM unnest(ARRAY['succeeded', 'failed', 'pending', 'scheduled', 'attempting', 'unknown', 'cancelled']) s`);
  const rows = text(page).split('\n').filter((line) => /^\| `(succeeded|failed|pending|scheduled|attempting|unknown|cancelled)`.*\| true \|/.test(line));
  assert.equal(rows.length, 7);
  // What enqueue says of a new one, as it is worded there.
  await w.db.query(`INSERT INTO outbox.tool (tool, effect, revision) VALUES ('t', 'write', '1')`);
  for (const [status, runAt] of [['pending', null], ['scheduled', '2100-01-01']]) {
    const filed = await w.one(`SELECT status, message FROM outbox.enqueue('t', operation_id => $1, run_at => $2)`, [status, runAt]);
    const row = text(page).split('\n').find((line) => line.startsWith(`| \`${status}\` | false |`));
    assert.deepEqual([filed.status, filed.message], [status, row.split('|').at(-2).trim()]);
  }
  for (const row of rows) {
    const told = row.split('|').at(-2).trim();
    const parts = told.split(/\(…\)|…|To try it again, repeat the call with retry_failed\./).map((part) => part.trim()).filter((part) => part.length > 1);
    assert.ok(parts.length > 0);
    for (const part of parts) assert.ok(message.includes(part), `${part}\nis not in\n${message}`);
  }
});

story('planners.md: what ORMs send works, and reading more than the id back does not', async (w) => {
  const env = await planner(w);
  const { Client } = (await import('../e2e/pg.mjs')).default;
  const db = new Client({ host: env.PGHOST, port: Number(env.PGPORT), user: env.PGUSER, database: env.PGDATABASE });
  await db.connect();
  try {
    const values = ['{"title":"orm"}', 'orm-1', 'create_ticket'];
    const knex = 'insert into "outbox"."operation" ("arguments", "operation_id", "tool") values ($1, $2, $3) on conflict ("operation_id") do nothing';
    assert.equal((await db.query(knex, values)).rowCount, 1);
    assert.equal((await db.query(knex, values)).rowCount, 0);
    assert.deepEqual((await db.query(`${knex} returning "operation_id"`, [values[0], 'orm-2', values[2]])).rows, [{ operation_id: 'orm-2' }]);
    await assert.rejects(db.query(`${knex} returning *`, [values[0], 'orm-3', values[2]]), { code: '42501' });
    const prisma = 'SELECT operation_id, status, replayed, message FROM outbox.enqueue($1, $2::jsonb, run_id => $3)';
    assert.equal((await db.query(prisma, ['create_ticket', values[0], 'run-7'])).rows[0].replayed, false);
    const alchemy = 'SELECT * FROM outbox.enqueue($1, CAST($2 AS jsonb), run_id => $3)';
    assert.equal((await db.query(alchemy, ['create_ticket', values[0], 'run-7'])).rows[0].replayed, true);
  } finally {
    await db.end();
  }
  assert.equal((await w.settled('orm-1')).status, 'succeeded');
});
