// Where somebody who is new here stumbled.
import assert from 'node:assert/strict';
import { chmodSync, existsSync, readFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import pg from 'pg';
import { binary, story } from './world.mjs';
import { closableTool } from './config.mjs';
import { Program, eventually, run } from './util.mjs';

const json = ({ out }) => out.split('\n').filter(Boolean).map((line) => JSON.parse(line));

story('--json on every command that prints data: stable keys, also when there is nothing to say', async (w) => {
  const file = w.configure({ tools: { create_ticket: closableTool(w.desk.url) } });
  const dry = await w.cli('migrate', '--dry-run', '--json');
  assert.deepEqual(Object.keys(json(dry)[0]), ['dry_run', 'pending', 'applied', 'missing_roles', 'statements']);
  assert.ok(json(dry)[0].pending.length > 10);
  assert.equal(json(await w.cli('migrate', '--json'))[0].applied.length, json(dry)[0].pending.length);

  assert.deepEqual(json(await w.cli('check-config', file, '--json')), [{ ok: true, errors: 0, warnings: 0 }]);
  const bad = await w.cli('check-config', w.write('bad.yaml', 'version: 1\nworker: { concurency: 1 }\n'), '--json');
  assert.equal(bad.code, 3);
  const verdict = json(bad).at(-1);
  assert.equal(verdict.ok, false);
  assert.equal(verdict.errors, json(bad).filter((line) => line.level === 'error').length);

  const [config] = json(await w.cli('print-config', file, '--json'));
  assert.equal(config.tools.create_ticket.effect, 'write');
  assert.equal(config.worker.concurrency, 32);
  assert.equal(config.database.dsn, '${env:OUTBOXD_DATABASE}');

  const call = ['key', '--tool', 't', '--run-id', 'r', '--arguments', '{}'];
  assert.deepEqual(json(await w.cli(...call, '--json')), [{ operation_id: (await w.cli(...call)).out.trim() }]);
  assert.deepEqual(json(await w.cli('list-failpoints', '--json')).map((row) => row.name), (await w.cli('list-failpoints')).out.trim().split('\n'));
});

story('a reader may look at one operation, and is told what it lacks for more', async (w) => {
  await w.migrate();
  await w.enqueue('seen');
  await w.db.query('CREATE ROLE onlooker LOGIN IN ROLE outbox_reader');
  const reader = w.dsn.replace('user=postgres', 'user=onlooker');
  const as = (...args) => run(binary, [...args, '--database', reader], { env: w.env });
  const [mine] = json(await as('get', 'seen', '--json'));
  const [theirs] = json(await w.cli('get', 'seen', '--json'));
  assert.deepEqual(mine, theirs);
  assert.equal((await as('get', 'nobody')).code, 1);
  for (const command of [['list'], ['events', 'seen'], ['stats'], ['tools'], ['workers']]) assert.equal((await as(...command)).code, 0, command[0]);
  const refused = await as('cancel', 'seen');
  assert.equal(refused.code, 1);
  assert.match(refused.text, /hint: .*GRANT outbox_planner/);
  await w.db.query('DROP ROLE onlooker');
});

story('prune says what it was asked for, and nothing else', async (w) => {
  await w.migrate();
  assert.equal((await w.cli('prune', '--events-older-than', '1d')).out, 'events  0\n');
  assert.equal((await w.cli('prune', '--payloads-older-than', '1d')).out, 'payloads  0\n');
  assert.deepEqual(json(await w.cli('prune', '--events-older-than', '1d', '--json')), [{ payloads: null, events: 0 }]);
});

story('after a reload the log says which configuration ends, not that the daemon stops', async (w) => {
  const daemon = await w.start();
  process.kill(daemon.pid, 'SIGHUP');
  await eventually('the old one has ended', () => daemon.log.includes('the old configuration has ended'));
  assert.match(daemon.log, /the configuration was reloaded/);
  assert.match(daemon.log, /the old configuration makes no new attempts/);
  assert.doesNotMatch(daemon.log, /stopp/);
  await daemon.stop();
  assert.match(daemon.log, /stopping: no new attempts[^]*stopped/);
});

// What dev prints is there to be pasted.
story('the first call that dev prints works, for a tool without a schema too', async (w) => {
  chmodSync(w.dir, 0o755);
  const env = { PATH: process.env.PATH, HOME: w.dir, LANG: 'C.UTF-8' };
  const tools = { greet: { effect: 'read', execute: { type: 'command', argv: ['/bin/echo', '{{ arguments.name }}', '{{ arguments.greeting | upper }}'], stdout: 'text' } } };
  const file = w.write('dev.yaml', JSON.stringify({ version: 1, database: { embedded: { data_dir: './pg' } }, admin: { listen: '127.0.0.1:0' }, tools }));
  const dev = new Program(binary, ['dev', '-c', file], { cwd: w.dir, env });
  try {
    const [, line] = await eventually('it prints a call', () => {
      if (dev.ended) throw new Error(dev.output);
      return dev.output.match(/^ *(psql .*outbox\.enqueue.*)$/m);
    }, 60_000);
    const pasted = await run('sh', ['-c', line], { env });
    assert.equal(pasted.code, 0, pasted.text);
    const [, dsn] = dev.output.match(/^ *database +(\S.*)$/m);
    const end = await eventually('it is done', async () => {
      const { out } = await run('psql', [dsn, '-XAtc', 'SELECT status, error FROM outbox.operations'], { env });
      return /succeeded|failed/.test(out) && out.trim();
    }, 30_000);
    assert.equal(end, 'succeeded|');
  } finally {
    await dev.stop('SIGINT');
  }
});

story('dev says that its port is taken before it starts a Postgres', async (w) => {
  chmodSync(w.dir, 0o755);
  const squatter = net.createServer().listen(0, '127.0.0.1');
  await new Promise((resolve) => squatter.once('listening', resolve));
  const { port } = squatter.address();
  const file = w.write('dev.yaml', JSON.stringify({ version: 1, database: { embedded: { data_dir: './pg' } }, admin: { listen: `127.0.0.1:${port}` }, tools: { note: { effect: 'read', execute: { type: 'log' } } } }));
  try {
    const refused = await run(binary, ['dev', '-c', file], { cwd: w.dir, env: { PATH: process.env.PATH, HOME: w.dir } });
    assert.equal(refused.code, 1, refused.text);
    assert.match(refused.text, new RegExp(`127\\.0\\.0\\.1:${port} is taken.*admin\\.listen`));
    assert.ok(!existsSync(path.join(w.dir, 'pg')));
  } finally {
    squatter.close();
  }
});

story('a planner that may make foreign keys can hold up the others, as the guide says, and its way out works', async (w) => {
  await w.migrate();
  await w.db.query('CREATE ROLE keymaker LOGIN IN ROLE outbox_planner; GRANT CREATE ON SCHEMA public TO keymaker');
  const { name } = await w.one('SELECT current_database() AS name');
  const holder = new pg.Client({ host: '127.0.0.1', port: w.cluster.port, user: 'keymaker', database: name });
  await holder.connect();
  try {
    await holder.query('BEGIN; CREATE TABLE public.mine (operation_id text REFERENCES outbox.operation (operation_id))');
    const insert = `SET LOCAL lock_timeout = '300ms'; INSERT INTO outbox.operation (operation_id, tool, arguments) VALUES ('held', 'note', '{}')`;
    await assert.rejects(w.db.query(insert), { code: '55P03' });
    await holder.query('ROLLBACK');
    const guide = readFileSync(new URL('../../docs/operators.md', import.meta.url), 'utf8');
    const [, revoke] = /`(REVOKE REFERENCES [^`]*)`/.exec(guide.replaceAll('\n', ' ').replaceAll(/ +/g, ' '));
    await w.db.query(revoke);
    await assert.rejects(holder.query('CREATE TABLE public.mine (operation_id text REFERENCES outbox.operation (operation_id))'), { code: '42501' });
    await w.db.query(insert);
    // The statement of "Growth" is there to be pasted, too.
    const [, growth] = /^( {4}SELECT relname, pg_size_pretty[^]*?;)$/m.exec(guide);
    const { rows } = await w.db.query(growth);
    assert.ok(rows.some((row) => row.relname === 'operation'));
  } finally {
    await holder.end();
    await w.db.query('REVOKE CREATE ON SCHEMA public FROM keymaker; DROP ROLE keymaker');
  }
});
