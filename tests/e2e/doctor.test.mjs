// doctor: each check is tried by breaking what it checks, and again when it is mended.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { ticketTool } from './config.mjs';
import { Program, eventually } from './util.mjs';
import { story } from './world.mjs';

const examineServer = readFileSync(new URL('../../sql/queries/examine_server.sql', import.meta.url), 'utf8');

story('doctor finds what is broken, says the way out, and changes nothing', async (w) => {
  const doctor = async (...args) => {
    const { code, out, text } = await w.cli('doctor', '--json', ...args);
    assert.ok(code === 0 || code === 1, text);
    const document = JSON.parse(out);
    assert.deepEqual(Object.keys(document), ['ok', 'checks']);
    assert.equal(document.ok, code === 0);
    for (const check of document.checks) {
      assert.deepEqual(Object.keys(check), ['name', 'level', 'detail', 'fix']);
      assert.ok(check.level === 'ok' ? check.fix === null : check.fix.length > 10, JSON.stringify(check));
    }
    return { ...document, by: Object.fromEntries(document.checks.map((check) => [check.name, check])) };
  };
  const system = async (name, value) => {
    await w.db.query(value === null ? `ALTER SYSTEM RESET ${name}` : `ALTER SYSTEM SET ${name} = ${value}`);
    await w.db.query('SELECT pg_reload_conf()');
  };
  // Breaks, looks, mends, looks again.
  const check = async (name, level, detail, breaking, mending) => {
    await breaking();
    try {
      await eventually(`${name} is ${level}`, async () => {
        const found = await doctor();
        assert.equal(found.by[name]?.level, level, JSON.stringify(found.by[name]));
        assert.match(found.by[name].detail, detail);
        assert.equal(found.ok, !found.checks.some((c) => c.level === 'bad'));
        return true;
      });
    } finally {
      await mending();
    }
    await eventually(`${name} is mended`, async () => (await doctor()).by[name]?.level === 'ok');
  };
  const sql = (text) => () => w.db.query(text);

  // Before the outbox is there, what the server tells is told.
  const bare = await doctor();
  assert.equal(bare.by.schema.level, 'bad');
  assert.equal(bare.by.schema.fix, 'outboxd migrate');
  assert.equal(bare.by.fsync.level, 'ok');
  assert.equal(bare.ok, false);

  const daemon = await w.start();
  const config = w.configure();
  const well = await doctor('-c', config);
  assert.deepEqual(well.checks.filter((c) => c.level !== 'ok'), []);
  assert.ok(well.ok);
  assert.deepEqual(Object.keys(well.by), ['fsync', 'full_page_writes', 'synchronous_commit', 'synchronous_standbys', 'clock', 'xmin_horizon',
    'schema', 'roles', 'indexes', 'daemons', 'served', 'unknowns', 'attention', 'replays', 'provider_keys']);
  const text = await w.cli('doctor');
  assert.match(text.out, /^ok +fsync +fsync is on$/m);

  await check('fsync', 'bad', /off/, () => system('fsync', 'off'), () => system('fsync', 'on'));
  await check('full_page_writes', 'bad', /off/, () => system('full_page_writes', 'off'), () => system('full_page_writes', 'on'));
  const { current_database: database } = await w.one('SELECT current_database()');
  await check('synchronous_commit', 'bad', /off/, sql(`ALTER DATABASE ${database} SET synchronous_commit = off`), sql(`ALTER DATABASE ${database} RESET synchronous_commit`));
  await check('synchronous_commit', 'bad', /outbox_planner/, sql('ALTER ROLE outbox_planner SET synchronous_commit = off'), sql('ALTER ROLE outbox_planner RESET synchronous_commit'));
  await check('roles', 'warn', /outbox_reader/, sql('ALTER ROLE outbox_reader RENAME TO outbox_away'), sql('ALTER ROLE outbox_away RENAME TO outbox_reader'));
  await check('roles', 'bad', /outbox_planner/, sql('REVOKE EXECUTE ON FUNCTION outbox.enqueue FROM outbox_planner'), sql('SELECT outbox.grant_rights()'));
  await check('roles', 'bad', /retry/, sql('GRANT EXECUTE ON FUNCTION outbox.retry TO PUBLIC'), sql('SELECT outbox.grant_rights()'));
  await check('roles', 'bad', /superuser.*cancel/, sql('ALTER FUNCTION outbox.cancel OWNER TO postgres'), sql('SELECT outbox.disown()'));
  await check('indexes', 'bad', /queue_ready/, sql(`UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'outbox.queue_due'::regclass OR indexrelid = 'outbox.queue_ready'::regclass`),
    sql(`UPDATE pg_index SET indisvalid = true WHERE NOT indisvalid`));
  await check('attention', 'bad', /duplicate_effect/, async () => {
    await w.db.query(`INSERT INTO outbox.operation (operation_id, tool, run_at) VALUES ('twice', 'note', '2100-01-01')`);
    await w.db.query(`WITH gone AS (DELETE FROM outbox.queue WHERE tool = 'note' RETURNING seq)
      INSERT INTO outbox.outcome (seq, outcome, attempts, lease_epoch, attention) SELECT seq, 'succeeded', 1, 2, 'duplicate_effect' FROM gone`);
  }, sql(`UPDATE outbox.outcome SET attention = NULL`));
  await check('served', 'warn', /nobodys/, sql(`INSERT INTO outbox.operation (operation_id, tool, run_at) VALUES ('lost', 'nobodys', '2100-01-01')`), sql(`SELECT outbox.cancel('lost')`));
  await check('unknowns', 'warn', /1 unknown.*nobodys/, async () => {
    await w.db.query(`INSERT INTO outbox.operation (operation_id, tool, run_at) VALUES ('doubt', 'nobodys', '2100-01-01')`);
    await w.db.query(`UPDATE outbox.queue SET status = 'unknown', due_at = 'infinity', unknown_since = now() - interval '20 minutes' WHERE tool = 'nobodys'`);
  }, async () => {
    await w.db.query(`UPDATE outbox.queue SET unknown_since = now() - interval '2 days' WHERE tool = 'nobodys'`);
    assert.equal((await doctor()).by.unknowns.level, 'bad');
    await w.db.query(`DELETE FROM outbox.queue WHERE tool = 'nobodys'`);
    await w.db.query(`INSERT INTO outbox.outcome (seq, outcome, attempts, lease_epoch) SELECT seq, 'cancelled', 0, 2 FROM outbox.operation WHERE operation_id = 'doubt'`);
  });
  await check('replays', 'warn', /create_ticket/, sql(`INSERT INTO outbox.tally (at, tool, enqueued) VALUES ('2000-01-01', 'create_ticket', 0), (now() - interval '3 days', 'create_ticket', 2000)`),
    sql(`UPDATE outbox.tally SET replayed = 1 WHERE enqueued = 2000`));
  await check('schema', 'bad', /not applied/, sql(`CREATE TABLE kept AS SELECT * FROM outbox.migration ORDER BY number DESC LIMIT 1; DELETE FROM outbox.migration WHERE number = (SELECT number FROM kept)`),
    sql(`INSERT INTO outbox.migration SELECT * FROM kept; DROP TABLE kept`));
  await check('synchronous_standbys', 'bad', /no standby/, () => system('synchronous_standby_names', `'nobody'`), () => system('synchronous_standby_names', null));

  // A receiver of the log is a standby to the server.
  const args = ['-D', w.dir, '-h', '127.0.0.1', '-p', String(w.cluster.port), '-U', 'postgres'];
  const receiver = new Program(path.join(w.cluster.bin, 'pg_receivewal'), args);
  try {
    await check('synchronous_standbys', 'warn', /1 standbys, none/, async () => {}, () => receiver.stop('SIGINT'));
  } finally {
    if (!receiver.ended) await receiver.stop('SIGKILL');
  }

  // The clock of this machine cannot be set here: what the query makes of another one's can be tried.
  const clock = async (offset) => (await w.db.query(examineServer, [Math.round((Date.now() + offset) * 1000)])).rows.find((row) => row.name === 'clock');
  assert.equal((await clock(0)).level, 'ok');
  assert.equal((await clock(5000)).level, 'warn');
  assert.match((await clock(5000)).detail, /(4\.9|5\.)\d+ s behind/);
  assert.match((await clock(-5000)).detail, /(4\.9|5\.)\d+ s ahead/);

  // Who holds the horizon is named; for how long is what makes it a warning.
  const holder = await w.db.connect();
  const { pg_backend_pid: pid } = (await holder.query('SELECT pg_backend_pid()')).rows[0];
  await holder.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
  await holder.query('SELECT 1');
  await eventually('the holder is named', async () => (await doctor()).by.xmin_horizon.detail.includes(`session ${pid} of postgres`));
  await holder.query('ROLLBACK');
  holder.release();

  const careless = w.write('careless.yaml', JSON.stringify({
    version: 1, database: { dsn: '${env:OUTBOXD_DATABASE}' },
    tools: { bare: { effect: 'write', execute: { ...ticketTool(w.desk.url).execute, headers: {}, json: { title: 'x' } }, reconcile: { type: 'manual', reason: 'nobody can tell' } } },
  }));
  const keys = (await doctor('-c', careless)).by.provider_keys;
  assert.equal(keys.level, 'warn');
  assert.match(keys.detail, /bare/);
  assert.equal((await doctor()).by.provider_keys.level, 'warn');
  assert.equal((await w.cli('doctor', '-c', '/nonexistent.yaml')).code, 3);

  await daemon.stop();
  const alone = (await doctor()).by.daemons;
  assert.equal(alone.level, 'warn');
  assert.match(alone.detail, /^0 alive/);

  // Somebody who may look at nothing is told so.
  await w.db.query(`DO $$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'stranger') THEN CREATE ROLE stranger LOGIN; END IF; END $$`);
  const stranger = await w.cli('doctor', '--json', '--database', w.dsn.replace('user=postgres', 'user=stranger'));
  assert.equal(stranger.code, 0, stranger.text);
  assert.match(stranger.out, /"name":"rights","level":"warn"/);
});

story('a slot that nobody reads holds the horizon, and is named with the way out', async (w) => {
  await w.migrate();
  await w.db.query(`ALTER SYSTEM SET wal_level = 'logical'`);
  await w.cluster.restart();
  await eventually('the slot is there', () => w.db.query(`SELECT pg_create_logical_replication_slot('forgotten', 'pgoutput')`));
  const { out } = await w.cli('doctor', '--json');
  const found = JSON.parse(out).checks.find((check) => check.name === 'xmin_horizon');
  assert.equal(found.level, 'warn');
  assert.match(found.detail, /slot forgotten, which nobody reads/);
  assert.match(found.fix, /pg_drop_replication_slot\('forgotten'\)/);
  await w.db.query(`SELECT pg_drop_replication_slot('forgotten')`);
});
