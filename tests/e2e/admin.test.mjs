// The admin server, the metrics' names, and the exit codes of the command line.
import assert from 'node:assert/strict';
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
  outboxd_config_reloads_total: 'counter',
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
});

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

story('exit codes: 1 no, 2 usage, 3 configuration, 4 database, 5 schema', async (w) => {
  const file = w.configure();
  assert.equal((await w.cli('run', '-c', file)).code, 5, 'a database without the schema');
  await w.migrate();
  await w.migrate();  // again changes nothing
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
