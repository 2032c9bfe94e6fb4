// Upgrades: migrations under a planner's load, daemons beside a schema that is not theirs, and a daemon
// that is replaced by another one.
import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { binary, story } from './world.mjs';
import { eventually, run, sleep } from './util.mjs';

const folder = fileURLToPath(new URL('../../sql/migrations', import.meta.url));
const migrations = readdirSync(folder).sort().map((file) => {
  const text = readFileSync(path.join(folder, file), 'utf8');
  return { number: Number(file.slice(0, 4)), name: file.slice(5, -4), file: file.slice(0, -4), text, breaking: text.startsWith('-- breaking') };
});

// The schema as the version with these migrations left it.
async function migrateTo(db, number) {
  for (const m of migrations.filter((one) => one.number <= number)) {
    await db.query(`BEGIN; ${m.text}; INSERT INTO outbox.migration (number, name, checksum, breaking)
      VALUES (${m.number}, '${m.file}', '${createHash('sha256').update(m.text).digest('hex')}', ${m.breaking}); COMMIT`);
  }
}

// Before any other story: roles belong to the cluster, and this one must not have them yet.
story('a role that may not create roles is told the statements to run, and what is missing until then', async (w) => {
  await w.db.query('CREATE ROLE builder LOGIN');
  const { name } = await w.one('SELECT current_database() AS name');
  await w.db.query(`ALTER DATABASE ${name} OWNER TO builder`);
  const builder = w.dsn.replace('user=postgres', 'user=builder');
  const migrate = (...more) => run(binary, ['migrate', '--database', builder, ...more], { env: w.env });

  const first = await migrate();
  assert.equal(first.code, 0, first.text);
  for (const role of ['planner', 'worker', 'reader', 'operator']) assert.match(first.text, new RegExp(`^ +CREATE ROLE outbox_${role} NOLOGIN;$`, 'm'));
  assert.match(first.text, /^outboxd: warning: these roles do not exist/m);
  assert.doesNotMatch(first.out, /warning/, 'what was applied is not mixed with it');
  const said = JSON.parse((await migrate('--json')).out);
  assert.deepEqual(said.applied, []);
  assert.deepEqual(said.missing_roles, ['outbox_planner', 'outbox_worker', 'outbox_reader', 'outbox_operator']);

  // As it says: one who may creates the roles, the owner of the schema gives them their rights.
  for (const statement of said.statements.slice(0, -1)) await w.db.query(statement);
  const owner = await run('psql', [builder, '-XAtc', said.statements.at(-1)], { env: w.env });
  assert.equal(owner.code, 0, owner.text);
  const after = await migrate();
  assert.equal(after.text, 'nothing to apply\n');
  await w.db.query(`SET ROLE outbox_planner; INSERT INTO outbox.operation (operation_id, tool, arguments) VALUES ('one', 'note', '{}'); RESET ROLE`);
});

// Planners that do nothing but commit intents, one after the other, each with its own connection.
function planners(w, count) {
  const state = { calls: 0, longest: 0, errors: [], running: true };
  state.done = Promise.all([...Array(count).keys()].map(async (n) => {
    const client = await w.db.connect();
    for (let i = 0; state.running; i++) {
      const begin = performance.now();
      try {
        await (i % 2 ? client.query(`SELECT * FROM outbox.enqueue('note', '{"text": "x"}', $1)`, [`p${n}-${i}`])
          : client.query(`INSERT INTO outbox.operation (operation_id, tool, arguments) VALUES ($1, 'note', '{"text": "x"}')`, [`p${n}-${i}`]));
      } catch (error) {
        state.errors.push(`${error.code} ${error.message}`);
      }
      state.longest = Math.max(state.longest, performance.now() - begin);
      state.calls++;
      await sleep(2);
    }
    client.release();
  }));
  state.stop = async () => { state.running = false; await state.done; };
  return state;
}

// The migrator asks for all its locks at once, gives up before anybody's deadlock_timeout, and lets everybody
// pass before it tries again; the bound leaves room for a machine that is busy with other tests.
for (const { what, hold } of [{ what: 'planners at work', hold: 0 }, { what: 'planners at work and a transaction that stays open', hold: 5000 }]) {
  story(`migrate beside ${what} makes nobody fail, and nobody wait long`, async (w) => {
    await migrateTo(w.db, 9);
    const { n } = await w.one(`WITH i AS (INSERT INTO outbox.operation (operation_id, tool, arguments)
      SELECT 'old-' || g, 'note', '{"text": "x"}' FROM generate_series(1, 20000) g RETURNING 1) SELECT count(*)::int AS n FROM i`);
    assert.equal(n, 20000);
    const dry = await w.cli('migrate', '--dry-run');
    assert.equal(dry.out.split('\n').filter(Boolean).length, migrations.length - 9, dry.text);

    const work = planners(w, 6);
    const holder = await w.db.connect();
    await holder.query(`BEGIN; INSERT INTO outbox.operation (operation_id, tool, arguments) VALUES ('held', 'note', '{"text": "x"}')`);
    const release = sleep(hold).then(() => holder.query('COMMIT'));
    await eventually('the planners work', () => work.calls > 50);
    work.longest = 0;
    const begin = performance.now();
    const migrating = await run(binary, ['migrate'], { env: w.env, timeout: 90_000 });
    const took = performance.now() - begin;
    await release;
    holder.release();
    await sleep(200);
    await work.stop();
    assert.equal(migrating.code, 0, migrating.text);
    console.log(`# ${what}: migrate took ${Math.round(took)} ms, the longest of ${work.calls} planner calls ${Math.round(work.longest)} ms`);
    assert.deepEqual([...new Set(work.errors)], []);
    assert.ok(work.longest < 10_000, `a planner waited ${work.longest} ms`);
    const counted = await w.one('SELECT (SELECT count(*)::int FROM outbox.operation) AS intents, (SELECT count(*)::int FROM outbox.queue) AS queued');
    assert.deepEqual(counted, { intents: 20000 + work.calls + 1, queued: 20000 + work.calls + 1 });
  });
}

story('a daemon works on a schema that is newer and harmless, and refuses one that is not for it', async (w) => {
  await w.migrate();
  const file = w.configure();
  const runs = async () => { const { code, text } = await w.cli('run', '-c', file); return { code, text }; };
  const applied = (number, name, breaking) => w.db.query('INSERT INTO outbox.migration (number, name, checksum, breaking) VALUES ($1, $2, $3, $4)', [number, name, 'x', breaking]);

  // A daemon of the version before: another one has migrated, while this one ran and before it starts.
  const before = await w.start();
  await applied(9998, '9998_harmless', false);
  await w.enqueue('under');
  assert.equal((await w.settled('under')).status, 'succeeded');
  const after = await w.start();
  await before.stop();
  await w.enqueue('after');
  assert.equal((await w.settled('after')).status, 'succeeded');
  assert.equal((await w.cli('migrate')).text, 'nothing to apply\n');
  await after.stop();

  await applied(9999, '9999_breaking', true);
  for (const args of [['run', '-c', file], ['migrate'], ['get', 'under'], ['stats']]) {
    const refused = await w.cli(...args);
    assert.equal(refused.code, 5, `${args}: ${refused.text}`);
    assert.match(refused.text, /9999_breaking needs a newer outboxd/);
  }
  await w.db.query('DELETE FROM outbox.migration WHERE number >= 9998');

  const last = migrations.at(-1);
  const { rows: [row] } = await w.db.query('DELETE FROM outbox.migration WHERE number = $1 RETURNING *', [last.number]);
  const old = await runs();
  assert.equal(old.code, 5, old.text);
  assert.match(old.text, new RegExp(`Migration ${last.file} is not applied: run \`outboxd migrate\``));
  assert.equal((await w.cli('migrate', '--dry-run')).text, `pending ${last.file}\n`);

  await applied(row.number, row.name, row.breaking);  // with a checksum that is not its own
  const altered = await runs();
  assert.equal(altered.code, 5, altered.text);
  assert.match(altered.text, /is not the .* of this build/);
});

story('daemons are replaced one after the other under load: nothing is lost, nothing done twice', async (w) => {
  let serving = [await w.start(), await w.start()];
  const count = 120;
  const enqueuing = (async () => { for (let i = 0; i < count; i++) { await w.enqueue(`rolling-${i}`); await sleep(15); } })();
  for (let i = 0; i < 2; i++) {
    const next = await w.start();
    const { code } = await serving.shift().stop();
    assert.equal(code, 0);
    serving.push(next);
  }
  await enqueuing;
  await w.allSettled(count);
  const { n } = await w.one(`SELECT count(*)::int AS n FROM outbox.operations WHERE status = 'succeeded'`);
  assert.equal(n, count);
  const { unknown } = await w.one(`SELECT count(*)::int AS unknown FROM outbox.event WHERE kind = 'unknown'`);
  assert.equal(unknown, 0, 'a stop leaves nothing in doubt');
  for (const daemon of serving) await daemon.stop();
});
