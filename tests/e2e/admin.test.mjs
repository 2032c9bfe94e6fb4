// The admin server, the metrics' names, and the exit codes of the command line.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import pg from './pg.mjs';
import { story } from './world.mjs';
import { eventually, run } from './util.mjs';

const metrics = {
  outboxd_attempts_total: 'counter',
  outboxd_attempt_duration_seconds: 'histogram',
  outboxd_pickup_latency_seconds: 'histogram',
  outboxd_in_flight: 'gauge',
  outboxd_slots: 'gauge',
  outboxd_operations: 'gauge',
  outboxd_oldest_seconds: 'gauge',
  outboxd_attention: 'gauge',
  outboxd_enqueued_total: 'counter',
  outboxd_replayed_total: 'counter',
  outboxd_unknown_total: 'counter',
  outboxd_reconciled_total: 'counter',
  outboxd_late_results_total: 'counter',
  outboxd_fenced_writes_total: 'counter',
  outboxd_duplicate_effects_total: 'counter',
  outboxd_lease_batch_size: 'histogram',
  outboxd_complete_batch_size: 'histogram',
  outboxd_database_up: 'gauge',
  outboxd_database_errors_total: 'counter',
  outboxd_database_statement_seconds: 'histogram',
  outboxd_xmin_horizon_age_seconds: 'gauge',
  outboxd_last_reconcile_timestamp_seconds: 'gauge',
  outboxd_clock_offset_seconds: 'gauge',
  outboxd_credential_errors_total: 'counter',
  outboxd_breaker_open: 'gauge',
  outboxd_probe_breaker_open: 'gauge',
  outboxd_lane_paused_seconds: 'gauge',
  outboxd_config_reloads_total: 'counter',
  outboxd_config_drift_total: 'counter',
  outboxd_build_info: 'gauge',
};

story('promtool accepts the metrics, and their names and types are the contract\'s', async (w) => {
  const daemon = await w.start();
  const typed = (text) => Object.fromEntries([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map((m) => [m[1], m[2]]));
  const missing = (types) => Object.entries(metrics).filter(([name, type]) => types[name] !== type).map(([name]) => `${name} is ${types[name]}`);
  const early = await daemon.ask('/metrics');
  assert.equal(early.status, 200);
  assert.deepEqual(missing(typed(early.text)), [], 'from the start');

  await w.desk.plan('cut', { posts: ['cut'] });
  for (const id of ['a', 'cut']) { await w.enqueue(id); await w.settled(id); }
  const late = await daemon.ask('/metrics');
  const unknown = Object.keys(typed(late.text)).filter((name) => name.startsWith('outboxd_') && !(name in metrics));
  assert.deepEqual(unknown, [], 'no name the contract does not have');
  const check = await run('promtool', ['check', 'metrics'], { input: late.text });
  assert.equal(check.code, 0, check.text);
  assert.equal(await daemon.metric('outboxd_attempts_total', 'outcome="succeeded"'), 1);
  assert.equal(await daemon.metric('outboxd_attempts_total', 'outcome="unknown"'), 1);
  assert.equal(await daemon.metric('outboxd_reconciled_total', 'verdict="found"'), 1);

  // Zero is said before anything waits for a person; what waits is counted, open or ended.
  const flagged = () => daemon.metric('outboxd_attention', 'reason="duplicate_effect"');
  assert.equal(await flagged(), 0);
  await w.db.query(`UPDATE outbox.outcome SET attention = 'duplicate_effect' WHERE seq = (SELECT seq FROM outbox.operation WHERE operation_id = 'a')`);
  await eventually('what waits for a person is counted', async () => (await flagged()) === 1, 60_000);
  await w.db.query('UPDATE outbox.outcome SET attention = NULL');
  await eventually('and no longer', async () => (await flagged()) === 0, 60_000);
});

// A rule about a series that is never there never fires, and nobody notices.
story('every alert rule is about series that the daemon has, with the labels that the rule uses', async (w) => {
  const rules = readdirSync(new URL('../../config/alerts/', import.meta.url)).filter((file) => file.endsWith('.rules.yml'))
    .map((file) => readFileSync(new URL(`../../config/alerts/${file}`, import.meta.url), 'utf8')).join('\n');
  const expressions = [...rules.matchAll(/^ {8}expr: *(?:>-\n((?: {10}.*\n)+)|(.*)\n)/gm)].map((m) => m[1] ?? m[2]);
  assert.equal(expressions.length, rules.match(/^ {8}expr:/gm).length);
  const wanted = new Map();  // metric → labels
  for (const expression of expressions) {
    // Each selector is under the aggregation before it: by (tool) (increase(outboxd_…{status="unknown"}[1h])).
    let by = [];
    for (const [, grouped, name, matchers] of expression.matchAll(/\bby \(([^)]*)\)|\b(outboxd_[a-z_]+)(?:\{([^}]*)\})?/g)) {
      if (grouped !== undefined) { by = grouped.split(',').map((label) => label.trim()); continue; }
      const matched = [...(matchers ?? '').matchAll(/([a-z_]+) *[=!]/g)].map((m) => m[1]);
      wanted.set(name, new Set([...(wanted.get(name) ?? []), ...by, ...matched]));
    }
  }
  for (const name of ['outboxd_database_up', 'outboxd_oldest_seconds', 'outboxd_replayed_total', 'outboxd_xmin_horizon_age_seconds']) {
    assert.ok(wanted.has(name), `${name} is in no rule: ${[...wanted.keys()]}`);
  }
  const daemon = await w.start();
  let series = '';
  const lacking = () => [...wanted].filter(([name, labels]) => !series.split('\n').some((line) => line.startsWith(`${name}{`)
    && [...labels].every((label) => new RegExp(`[{,]${label}="`).test(line)))).map(([name, labels]) => `${name}{${[...labels]}}`);
  await eventually('all series are there', async () => {
    series = (await daemon.ask('/metrics')).text;
    return lacking().length === 0;
  }, 30_000).catch(() => assert.deepEqual(lacking(), [], 'rules about what is not exported'));
});

story('the age of the xmin horizon grows while somebody holds a snapshot', async (w) => {
  const daemon = await w.start();
  const age = () => daemon.metric('outboxd_xmin_horizon_age_seconds');
  await eventually('it is known', async () => (await daemon.ask('/metrics')).text.includes('outboxd_xmin_horizon_age_seconds{'), 30_000);
  const { host, port, database } = w.db.options;
  const holder = new pg.Client({ host, port, user: 'postgres', database });
  await holder.connect();
  try {
    await holder.query('BEGIN ISOLATION LEVEL REPEATABLE READ');
    await holder.query('SELECT 1');  // reads only: it has a snapshot and no id
    await w.enqueue('meanwhile');
    await w.settled('meanwhile');
    await eventually('it is held', async () => await age() > 5, 90_000);
    await holder.query('COMMIT');
    // What remains are snapshots of moments.
    await eventually('it is let go', async () => await age() < 5, 90_000);
  } finally {
    await holder.end();
  }
}, { timeout: 300_000 });

story('livez and readyz, and a host name that is not ours', async (w) => {
  const daemon = await w.start();
  for (const path of ['/livez', '/readyz', '/metrics']) assert.equal((await daemon.ask(path)).status, 200, path);
  assert.equal((await daemon.ask('/nothing-here')).status, 404);
  const { default: http } = await import('node:http');
  const status = await new Promise((resolve, reject) => {
    http.get({ host: '127.0.0.1', port: daemon.port, path: '/metrics', headers: { Host: 'rebound.example' } },
      (response) => { response.resume(); resolve(response.statusCode); }).on('error', reject);
  });
  assert.ok(status >= 400 && status < 500, `Host: rebound.example answers ${status}`);
});

story('readyz says which loop gets nowhere, and why', async (w) => {
  const daemon = await w.start();
  // Heartbeats are written, but no lease and no claim can be: 10 s later that is the truth.
  await w.db.query('ALTER TABLE outbox.queue RENAME TO gone');
  const reconciled = async () => daemon.metric('outboxd_last_reconcile_timestamp_seconds');
  await eventually('it is not ready', async () => (await daemon.ask('/readyz')).status === 503, 30_000);
  const before = await reconciled();
  const { text } = await daemon.ask('/readyz');
  assert.match(text, /the (leaser|reconciler) has failed since \d{4}-\d\d-\d\dT[\d:]+Z \(\d+ s\): .*42P01/);
  assert.equal((await daemon.ask('/livez')).status, 200);
  assert.equal(await reconciled(), before, 'a pass that failed is none');
  await w.db.query('ALTER TABLE outbox.gone RENAME TO queue');
  await eventually('it is ready again', async () => (await daemon.ask('/readyz')).status === 200, 15_000);

  await w.db.query('ALTER SCHEMA outbox RENAME TO elsewhere');
  await eventually('the heartbeat fails', async () => /heartbeat has failed .*(42P01|3F000)/.test((await daemon.ask('/readyz')).text), 15_000);
  await w.db.query('ALTER SCHEMA elsewhere RENAME TO outbox');
  await eventually('it is ready again', async () => (await daemon.ask('/readyz')).status === 200, 15_000);
});

story('a reload that changes what belongs to the process says so', async (w) => {
  const daemon = await w.start();
  const { port } = daemon;
  const file = `outboxd-${w.daemons.indexOf(daemon)}.yaml`;
  const text = readFileSync(path.join(w.dir, file), 'utf8');
  for (const round of [1, 2]) {  // and goes on saying so until the restart
    w.write(file, text.replace(`127.0.0.1:${port}`, '127.0.0.1:1'));
    process.kill(daemon.pid, 'SIGHUP');
    await eventually('it is said', () => daemon.log.split('takes a restart to change').length === round + 1);
  }
  assert.match(daemon.log, /takes a restart to change.*admin\.listen/);
  assert.equal((await daemon.ask('/livez')).status, 200, 'the old address stays');
});

story('exit codes: 1 no, 2 usage, 3 configuration, 4 database, 5 schema', async (w) => {
  const file = w.configure();
  assert.equal((await w.cli('run', '-c', file)).code, 5, 'a database without the schema');
  for (const command of [['get', 'x'], ['list'], ['events', 'x'], ['tools'], ['cancel', 'x'], ['enqueue', 't', '--operation-id', 'x', '--arguments', '{}']]) {
    const refused = await w.cli(...command);
    assert.equal(refused.code, 5, `${command}: ${refused.text}`);
    assert.match(refused.text, /no outbox in this database: run `outboxd migrate`/);
  }
  await w.migrate();
  await w.migrate();  // again changes nothing
  await w.db.query(`INSERT INTO outbox.migration (number, name, checksum, breaking) VALUES (9999, 'later', 'x', true)`);
  const newer = await w.cli('list');
  assert.equal(newer.code, 5, newer.text);
  assert.match(newer.text, /later needs a newer outboxd/);
  await w.db.query('DELETE FROM outbox.migration WHERE number = 9999');
  assert.equal((await w.cli('get', 'nobody')).code, 1);
  assert.equal((await w.cli('no-such-command')).code, 2);
  assert.equal((await w.cli('check-config', file)).code, 0);
  const broken = w.write('broken.yaml', 'version: 1\ndatabase: { dsn: x }\nworker: { concurency: 8 }\n');
  const report = await w.cli('check-config', broken);
  assert.equal(report.code, 3);
  assert.match(report.text, /broken\.yaml:3:\d+: error: .*concurency[^]*hint: .*concurrency/);
  assert.equal((await w.cli('run', '-c', broken)).code, 3);
  assert.equal((await w.cli('--database', 'host=127.0.0.1 port=1 dbname=x connect_timeout=2', 'get', 'x')).code, 4);
  assert.match((await w.cli('--version')).out, /\d+\.\d+\.\d+/);
});

story('enqueue --wait, get, list and events on the command line', async (w) => {
  await w.desk.plan('cli-2', { posts: ['cut'] });
  await w.start();
  for (const id of ['cli-1', 'cli-2']) {
    const done = await w.cli('--database', w.dsn, 'enqueue', 'create_ticket', '--operation-id', id, '--arguments', '{"title": "by hand"}', '--wait', '30s', '--json');
    assert.equal(done.code, 0, done.text);
    assert.deepEqual([JSON.parse(done.out).operation_id, JSON.parse(done.out).status], [id, 'succeeded']);
  }
  assert.equal(JSON.parse((await w.cli('get', 'cli-1', '--json')).out).result.id, 'T-1');
  const list = (await w.cli('list', '--status', 'succeeded', '--json')).out.trim().split('\n').map((line) => JSON.parse(line));
  assert.deepEqual(list.map((row) => row.operation_id).sort(), ['cli-1', 'cli-2']);
  const events = (await w.cli('events', 'cli-2', '--json')).out.trim().split('\n').map((line) => JSON.parse(line).kind);
  assert.ok(events.includes('unknown') && events.includes('probe'), `${events}`);

  await w.desk.plan('cli-3', { posts: ['refuse'] });
  const failed = await w.cli('enqueue', 'create_ticket', '--operation-id', 'cli-3', '--arguments', '{"title": "rude"}', '--wait', '30s', '--json');
  assert.equal(failed.code, 1, failed.text);
  await eventually('it is failed', async () => (await w.get('cli-3')).status === 'failed');
});
