// Every command with a database: what it answers when all is well, for an id or a name that is not
// there, without a database, and on a database without the outbox. A command that is not in the table
// fails the test.
import assert from 'node:assert/strict';
import { binary, story } from './world.mjs';
import { closableTool } from './config.mjs';
import { eventually, run } from './util.mjs';

const elsewhere = ['run', 'dev', 'demo', 'list-failpoints'];  // other files' business
const nowhere = 'host=/nonexistent connect_timeout=2';

// ok: arguments, and what must hold of the JSON (or text) it prints; wrong: arguments, exit code 1 unless
// given; database: false where none is needed.
const table = (id) => ({
  migrate: { ok: [[], (out) => assert.match(out, /nothing to apply/)] },
  'check-config': { ok: [['CONFIG'], (out) => assert.equal(out, 'ok\n')], wrong: ['/nonexistent.yaml'], code: 3, database: false },
  'print-config': { ok: [['CONFIG'], (out) => assert.match(out, /create_ticket/)], wrong: ['/nonexistent.yaml'], code: 3, database: false },
  render: {
    ok: [['create_ticket', '--arguments', '{"title": "x"}', '-c', 'CONFIG', '--json'], (row) => assert.match(JSON.stringify(row), /Idempotency-Key/)],
    wrong: ['nobody', '--arguments', '{}', '-c', 'CONFIG'], database: false,
  },
  key: {
    ok: [['--tool', 'create_ticket', '--run-id', 'r', '--arguments', '{"title": "x"}', '-c', 'CONFIG'], (out) => assert.match(out, /[0-9a-f]{64}/)],
    // A tool that nobody published has no dedup.fields: the whole call makes its key.
    database: 'given',
  },
  enqueue: {
    ok: [['create_ticket', '--arguments', '{"title": "x"}', '--operation-id', 'cli-new', '--json'], (row) => {
      assert.equal(row.operation_id, 'cli-new');
      assert.equal(row.replayed, false);
    }],
    wrong: ['create_tickets', '--arguments', '{}', '--operation-id', 'cli-other'],
  },
  get: { ok: [[id.done, '--json'], (row) => assert.equal(row.status, 'succeeded')], wrong: ['nothing'] },
  events: { ok: [[id.unknown, '--json'], (row) => assert.equal(row.kind, 'unknown')], wrong: ['nothing'] },
  list: {
    ok: [['--status', 'failed', '--tool', 'create_ticket', '--limit', '1', '--json'], (row) => {
      assert.equal(row.operation_id, id.failed);
      assert.equal(row.error.code, 'rude_title');
    }],
  },
  stats: { ok: [['--json'], (row) => assert.ok('replay_rate_30d' in row)] },
  tools: { ok: [['--json'], (row) => assert.equal(row.tool, 'create_ticket')] },
  workers: { ok: [['--json'], (row) => assert.ok(row.alive)] },
  probe: { ok: [[id.unknown, '--json'], (row) => assert.match(row.answer, /^(asked|probing)$/)], wrong: ['nothing'] },
  resolve: {
    ok: [[id.manual, '--verdict', 'applied', '--reason', 'seen', '--actor', 'ann', '--expect-epoch', id.epoch, '--result', '{"id": 7}', '--json'],
      (row) => assert.equal(row.answer, 'resolved')],
    wrong: ['nothing', '--verdict', 'not-applied', '--reason', 'r', '--actor', 'a', '--expect-epoch', '1'],
  },
  acknowledge: {
    ok: [[id.flagged, '--reason', 'closed by hand', '--actor', 'ann', '--json'], (row) => assert.equal(row.answer, 'acknowledged')],
    wrong: ['nothing', '--reason', 'r', '--actor', 'a'],
  },
  retry: { ok: [[id.failed, '--reason', 'mended', '--json'], (row) => assert.equal(row.answer, 'armed')], wrong: ['nothing', '--reason', 'r'] },
  cancel: { ok: [[id.later, '--json'], (row) => assert.equal(row.answer, 'cancelled')], wrong: ['nothing'] },
  compensate: { ok: [[id.done, 'close', '--json'], (row) => assert.equal(row.operation_id, `${id.done}:compensate:close`)], wrong: ['nothing'] },
  pause: { ok: [['fax', '--reason', 'r', '--json'], (row) => assert.equal(row.answer, 'paused')], wrong: ['faxes', '--reason', 'r'] },
  resume: { ok: [['fax', '--json'], (row) => assert.equal(row.answer, 'resumed')], wrong: ['faxes'] },
  prune: {
    ok: [['--payloads-older-than', '365d', '--events-older-than', '365d', '--json'], (row) => assert.deepEqual(row, { payloads: 0, events: 0 })],
  },
  'forget-keys': {
    ok: [['--older-than', '365d', '--yes', '--json'], (row) => assert.deepEqual(row, { dry_run: false, forgotten: 0, referenced: 0, tools: [] })],
  },
  doctor: { ok: [['-c', 'CONFIG', '--json'], (row) => assert.ok(row.checks.length > 10)] },
  // It serves until its input ends, which it does at once here; the database is asked by calls.
  mcp: { ok: [['-c', 'CONFIG', '--tool', 'create_ticket'], (out) => assert.equal(out, '')], wrong: ['-c', '/nonexistent.yaml'], code: 3, database: false },
});

story('every command: done, not found, no database, no outbox', async (w) => {
  const fax = { effect: 'write', execute: { type: 'command', argv: ['/bin/false'] }, reconcile: { type: 'manual', reason: 'nobody can ask a fax machine' } };
  const tools = { create_ticket: closableTool(w.desk.url), fax };
  const id = { done: 'cli-done', unknown: 'cli-unknown', failed: 'cli-failed', later: 'cli-later', manual: 'cli-manual', flagged: 'cli-flagged' };
  await w.desk.plan(id.unknown, { posts: ['drop'], look: 'error' });
  await w.desk.plan(id.failed, { posts: ['refuse'] });
  await w.start({ tools });
  const config = w.configure({ tools });
  for (const name of ['done', 'unknown', 'failed', 'flagged']) await w.enqueue(id[name]);
  await w.enqueue(id.manual, { tool: 'fax', args: {} });
  await w.db.query(`INSERT INTO outbox.operation (operation_id, tool, run_at) VALUES ($1, 'create_ticket', '2100-01-01')`, [id.later]);
  for (const name of ['done', 'failed', 'flagged']) await w.settled(id[name]);
  for (const name of ['unknown', 'manual']) await w.until(id[name], ['unknown']);
  await eventually('the fax waits for a person', async () => (await w.get(id.manual)).attention === 'manual');
  await w.db.query(`UPDATE outbox.outcome e SET attention = 'late_effect' FROM outbox.operation o WHERE o.seq = e.seq AND operation_id = $1`, [id.flagged]);
  id.epoch = String((await w.get(id.manual)).attempt_epoch);

  const help = await w.cli('--help');
  const listed = [...help.out.slice(help.out.indexOf('Subcommands:'), help.out.indexOf('Exit codes:')).matchAll(/^ {2}([a-z-]+) /gm)].map((m) => m[1]);
  const commands = table(id);
  assert.deepEqual(listed.filter((c) => !elsewhere.includes(c)).sort(), Object.keys(commands).sort());

  const bare = w.cluster.dsn(await w.cluster.createDatabase());
  const fill = (args) => args.map((a) => (a === 'CONFIG' ? config : a));
  const on = (dsn, args) => run(binary, args, { env: { ...w.env, OUTBOXD_DATABASE: dsn }, timeout: 60_000 });
  // What must not change anything comes first, all at once; then what succeeds, one after the other.
  await Promise.all(Object.entries(commands).map(async ([name, { ok: [args], wrong, code = 1, database = true }]) => {
    const full = [name, ...fill(args)];
    const check = async (what, answer, expected) => {
      const { code: got, out, text } = await answer;
      assert.equal(got, expected, `${full.join(' ')}: ${what}: ${text}`);
      if (got !== 0 && out === '') assert.match(text, /^outboxd: |: error: /m, `${name}: ${what}`);
    };
    // doctor tells of the outbox that is missing, like of anything that is bad; migrate makes one.
    const without = name === 'migrate' ? 0 : name === 'doctor' ? 1 : database === true ? 5 : 0;
    await check('no database', on(nowhere, database === 'given' ? [...full, '--database', nowhere] : full), database ? 4 : 0);
    await check('no outbox', on(bare, name === 'migrate' ? [...full, '--dry-run'] : full), without);
    if (wrong) await check('wrong', w.cli(name, ...fill(wrong)), code);
  }));
  for (const [name, { ok: [args, holds] }] of Object.entries(commands)) {
    const { code, out, text } = await w.cli(name, ...fill(args));
    if (name !== 'doctor') assert.equal(code, 0, `${name}: ${text}`);
    holds(args.includes('--json') ? JSON.parse(out.split('\n')[0]) : out);
  }
  for (const name of ['cli-new', id.failed, `${id.done}:compensate:close`]) await w.settled(name);
});

story('retry and cancel by filter: counted first, then done, and only what can be', async (w) => {
  await w.migrate();
  await w.db.query(`INSERT INTO outbox.tool (tool, effect, revision) VALUES ('t', 'write', 'r'), ('u', 'write', 'r')`);
  await w.db.query(`INSERT INTO outbox.operation (operation_id, tool) SELECT 'op-' || n, CASE WHEN n % 2 = 0 THEN 't' ELSE 'u' END FROM generate_series(1, 260) n`);
  await w.db.query(`WITH gone AS (DELETE FROM outbox.queue WHERE seq <= 130 RETURNING seq)
    INSERT INTO outbox.outcome (seq, outcome, attempts, lease_epoch, error) SELECT seq, 'failed', 1, 2, '{"code": "x"}' FROM gone`);
  const json = async (expected, ...args) => {
    const { code, out, text } = await w.cli(...args, '--json');
    assert.equal(code, expected, text);
    return JSON.parse(out);
  };
  assert.deepEqual(await json(0, 'retry', '--tool', 't', '--dry-run'), { dry_run: true, matched: 65, done: 0, answers: {} });
  assert.deepEqual(await json(0, 'retry', '--tool', 't', '--reason', 'mended'), { dry_run: false, matched: 65, done: 65, answers: { armed: 65 } });
  assert.deepEqual(await json(0, 'retry', '--status', 'failed', '--limit', '5', '--reason', 'r'), { dry_run: false, matched: 5, done: 5, answers: { armed: 5 } });
  assert.deepEqual(await json(0, 'cancel', '--status', 'pending', '--tool', 'u', '--dry-run'), { dry_run: true, matched: 70, done: 0, answers: {} });
  assert.deepEqual(await json(0, 'cancel', '--tool', 'u', '--reason', 'r'), { dry_run: false, matched: 70, done: 70, answers: { cancelled: 70 } });
  assert.deepEqual(await json(0, 'cancel', '--older-than', '1h'), { dry_run: false, matched: 0, done: 0, answers: {} });
  // What a look-up of the list misses, because it moved meanwhile, is told.
  await w.db.query(`UPDATE outbox.operation SET pruned_at = now(), arguments_digest = 'x' WHERE operation_id = 'op-1'`);
  assert.deepEqual(await json(1, 'retry', '--status', 'failed', '--reason', 'r'), { dry_run: false, matched: 60, done: 59, answers: { armed: 59, pruned: 1 } });
  const { rows } = await w.db.query('SELECT status, count(*)::int AS n FROM outbox.operations GROUP BY 1 ORDER BY 1');
  assert.deepEqual(rows, [{ status: 'cancelled', n: 70 }, { status: 'failed', n: 1 }, { status: 'pending', n: 189 }]);
  const { rows: [kept] } = await w.db.query(`SELECT detail->>'reason' AS reason, actor FROM outbox.event WHERE kind = 'retried' ORDER BY id LIMIT 1`);
  assert.deepEqual(kept, { reason: 'mended', actor: 'postgres' });

  for (const args of [['retry', '--reason', 'r'], ['cancel'], ['cancel', '--dry-run'], ['cancel', 'op-2', '--tool', 't'], ['cancel', '--status', 'failed'],
    ['retry', '--status', 'pending', '--reason', 'r'], ['retry', 'op-2'], ['retry', '--tool', 't'], ['retry', 'op-2', '--reason', '  ']]) {
    const { code, text } = await w.cli(...args);
    assert.equal(code, 2, `${args.join(' ')}: ${text}`);
  }
  const wait = await w.cli('resolve', 'op-2', '--verdict', 'perhaps', '--reason', 'r', '--actor', 'a', '--expect-epoch', '1');
  assert.equal(wait.code, 2);
});

story('each role may do on the command line what it may do, and is told the way out for the rest', async (w) => {
  await w.migrate();
  await w.db.query(`INSERT INTO outbox.operation (operation_id, tool) VALUES ('op-1', 't')`);
  const may = {
    stranger: {},
    outbox_planner: { get: 0, cancel: 0 },
    outbox_reader: { get: 0, list: 0, events: 0, stats: 0, workers: 0 },
    outbox_operator: { get: 0, list: 0, events: 0, stats: 0, workers: 0, probe: 1, cancel: 1, prune: 0 },
  };
  const commands = {
    get: ['op-1'], list: [], events: ['op-1'], stats: [], workers: [], probe: ['op-1'], cancel: ['op-1'], prune: ['--payloads-older-than', '1d'],
  };
  for (const role of Object.keys(may)) {
    const name = `cli_${role}`;
    await w.db.query(`DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = '${name}') THEN CREATE ROLE ${name} LOGIN; END IF; END $$`);
    if (role !== 'stranger') await w.db.query(`GRANT ${role} TO ${name}`);
    const dsn = w.dsn.replace('user=postgres', `user=${name}`);
    for (const [command, args] of Object.entries(commands)) {
      const { code, text } = await run(binary, [command, ...args, '--database', dsn], { env: w.env });
      if (command in may[role]) {
        assert.equal(code, may[role][command], `${role} ${command}: ${text}`);
        assert.doesNotMatch(text, /permission denied/);
      } else {
        assert.equal(code, 1, `${role} ${command}: ${text}`);
        assert.match(text, /permission denied .*\(42501\)\n {2}hint: .*GRANT outbox_planner/, `${role} ${command}`);
      }
    }
  }
});

story('the pages of list, and what get tells of why', async (w) => {
  await w.migrate();
  await w.db.query(`INSERT INTO outbox.operation (operation_id, tool) SELECT 'op-' || n, 't' FROM generate_series(1, 2500) n`);
  const list = async (...args) => {
    const { code, out, text } = await w.cli('list', '--json', ...args);
    assert.equal(code, 0, text);
    return out.split('\n').filter(Boolean).map((line) => JSON.parse(line));
  };
  const all = await list('--limit', '2500');
  assert.deepEqual(all.map((row) => row.operation_id), Array.from({ length: 2500 }, (_, i) => `op-${2500 - i}`));
  const first = await list('--limit', '3');
  const next = await list('--limit', '3', '--after', String(first.at(-1).seq));
  assert.deepEqual(next.map((row) => row.operation_id), ['op-2497', 'op-2496', 'op-2495']);
  assert.equal((await list()).length, 100);
  assert.deepEqual(await list('--status', 'failed'), []);
});

story('probe asks now, also about what waits for a person', async (w) => {
  const id = 'probe-1';
  await w.desk.plan(id, { posts: ['cut'], look: 'garbage' });
  await w.start({ defaults: { timeout: '2s', retry: { max_attempts: 5 }, reconcile: { settle: '1s', interval: '100ms', max_interval: '100ms', give_up_after: '1s' } } });
  await w.enqueue(id);
  await eventually('it waits for a person', async () => (await w.get(id))?.attention === 'give_up');
  const looks = (await w.desk.looks(id)).length;
  await w.desk.plan(id, { look: 'ok' });
  const { code, out } = await w.cli('probe', id);
  assert.deepEqual([code, out], [0, 'asked\n']);
  const row = await w.settled(id);
  assert.equal(row.status, 'succeeded');
  assert.equal(row.attention, null);
  assert.ok((await w.desk.looks(id)).length > looks);
});

story('prune and forget-keys by hand, and the daemon by its configuration', async (w) => {
  await w.start({ retention: { payloads: '1h', events: '1h' } });
  for (const id of ['r-1', 'r-2', 'r-3']) await w.enqueue(id);
  for (const id of ['r-1', 'r-2', 'r-3']) await w.settled(id);
  const { code, out } = await w.cli('prune', '--payloads-older-than', '0s', '--events-older-than', '0s', '--batch', '2', '--pause', '1ms', '--json');
  assert.deepEqual([code, JSON.parse(out)], [0, { payloads: 3, events: 0 }]);
  const replay = await w.enqueue('r-1');
  assert.deepEqual([replay.status, replay.replayed, replay.result_expired, replay.result], ['succeeded', true, true, null]);

  const counted = await w.cli('forget-keys', '--older-than', '0s');
  assert.equal(counted.code, 2, counted.text);
  assert.match(counted.text, /create_ticket: 3 keys would go/);
  assert.match(counted.text, /carried out as a new one/);
  assert.equal((await w.enqueue('r-1')).replayed, true);
  await w.db.query(`CREATE TABLE step (operation_id text REFERENCES outbox.operation (operation_id)); INSERT INTO step VALUES ('r-2')`);
  const forgot = await w.cli('forget-keys', '--older-than', '0s', '--yes', '--json');
  assert.deepEqual([forgot.code, JSON.parse(forgot.out)], [0, {
    dry_run: false, forgotten: 2, referenced: 1, tools: [{ tool: 'create_ticket', forgotten: 2, referenced: 1 }],
  }]);
  const { rows } = await w.db.query('SELECT operation_id FROM outbox.operation');
  assert.deepEqual(rows, [{ operation_id: 'r-2' }]);
  assert.equal((await w.cli('forget-keys', '--yes')).code, 2);
  assert.equal((await w.cli('prune')).code, 2);
  assert.equal((await w.cli('prune', '--payloads-older-than', '30')).code, 2);

  // By itself: at the start, and every minute.
  await w.enqueue('r-4');
  await w.settled('r-4');
  await w.db.query(`UPDATE outbox.operation SET created_at = created_at - interval '2 hours' WHERE operation_id = 'r-4'`);
  await w.db.query(`UPDATE outbox.outcome e SET finished_at = finished_at - interval '2 hours' FROM outbox.operation o WHERE o.seq = e.seq AND operation_id = 'r-4'`);
  await w.start({ retention: { payloads: '1h', events: '1h' } });
  await eventually('the daemon pruned it', async () => (await w.get('r-4')).result_expired, 90_000);
});
