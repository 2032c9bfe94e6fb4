// Several databases, one daemon: each has what it would have alone, and none has to wait for another
// one that is gone, silent, behind, or full of work.
import assert from 'node:assert/strict';
import { writeFileSync, readFileSync } from 'node:fs';
import { after } from 'node:test';
import { Cluster } from './cluster.mjs';
import { configuration, ticketTool } from './config.mjs';
import { binary, story } from './world.mjs';
import { eventually, providerKey, run, sleep } from './util.mjs';

// A server of its own for the second database, so that it can be stopped alone.
let second;
after(() => second?.stop());

class Outbox {
  constructor(world, name, cluster, database) {
    Object.assign(this, { world, name, cluster, dsn: cluster.dsn(database), db: cluster.pool(database) });
  }

  async migrate() {
    const { code, text } = await run(binary, ['migrate', '--database', this.dsn], { env: this.world.env });
    assert.equal(code, 0, text);
  }

  async one(sql, values = []) { return (await this.db.query(sql, values)).rows[0]; }
  enqueue(id, args = { title: `ticket ${id}` }, tool = 'create_ticket') {
    return this.one('SELECT * FROM outbox.enqueue($1, $2::jsonb, $3)', [tool, JSON.stringify(args), id]);
  }
  get(id) { return this.one('SELECT * FROM outbox.get($1)', [id]); }
  async settled(id, ms = 30_000) {
    let row;
    return eventually(`${id} in ${this.name} is final`, async () => {
      row = await this.get(id);
      return ['succeeded', 'failed', 'cancelled'].includes(row?.status) && row;
    }, ms).catch((error) => { throw new Error(`${error.message}; it is ${JSON.stringify(row)}`); });
  }
  async count(status) {
    return (await this.one('SELECT count(*)::int AS n FROM outbox.operations WHERE status = $1', [status])).n;
  }
}

// A story with two databases, orders and support; support is on a server of its own.
function twoSources(name, body, options) {
  story(name, async (w) => {
    second ??= await Cluster.start();
    w.orders = new Outbox(w, 'orders', w.cluster, await w.cluster.createDatabase());
    w.support = new Outbox(w, 'support', second, await second.createDatabase());
    w.sources = (...of) => ({ sources: of.map(({ name: n, dsn }) => ({ name: n, dsn })) });
    w.serve = (more = {}) => w.launch({ database: w.sources(w.orders, w.support), ...more });
    try {
      await w.orders.migrate();
      await w.support.migrate();
      await body(w);
      // Whatever became of the databases: each operation has one effect at most, and what succeeded has one.
      const { tickets } = await w.desk.state();
      const counted = new Map();
      for (const ticket of tickets) counted.set(ticket.external_ref, (counted.get(ticket.external_ref) ?? 0) + 1);
      for (const outbox of [w.orders, w.support]) {
        const { rows } = await outbox.db.query(`SELECT operation_id, status FROM outbox.operations WHERE tool = 'create_ticket'`);
        for (const { operation_id: id, status } of rows) {
          const effects = counted.get(providerKey(id, outbox.name)) ?? 0;
          assert.ok(effects <= 1, `${id} in ${outbox.name} has ${effects} effects`);
          if (status === 'succeeded') assert.equal(effects, 1, `${id} in ${outbox.name}`);
        }
      }
    } finally {
      second.thaw();
      for (const outbox of [w.orders, w.support]) await outbox.db.end();
    }
  }, options);
}

twoSources('equal ids in two databases are two operations: two keys, two effects', async (w) => {
  const daemon = await (await w.serve()).ready();
  for (const outbox of [w.orders, w.support]) assert.equal((await outbox.enqueue('op-1')).replayed, false);
  for (const outbox of [w.orders, w.support]) assert.equal((await outbox.settled('op-1')).status, 'succeeded');
  const posts = await w.desk.posts('op-1');
  assert.deepEqual(posts.map((p) => p.header).sort(), [providerKey('op-1', 'orders'), providerKey('op-1', 'support')].sort());
  assert.equal((await w.desk.tickets('op-1')).length, 2);
  for (const outbox of [w.orders, w.support]) {
    assert.equal((await outbox.enqueue('op-1')).replayed, true);
    assert.equal((await outbox.one('SELECT name FROM outbox.namespace').catch(() => ({ name: outbox.name }))).name, outbox.name);
  }

  const { text: metrics } = await daemon.ask('/metrics');
  for (const name of ['orders', 'support']) {
    assert.match(metrics, new RegExp(`^outboxd_database_up\\{source="${name}"\\} 1$`, 'm'));
    assert.match(metrics, new RegExp(`^outboxd_attempts_total\\{outcome="succeeded",source="${name}",tool="create_ticket"\\} 1$`, 'm'));
    assert.match(metrics, new RegExp(`^outboxd_pickup_latency_seconds_count\\{source="${name}",tool="create_ticket"\\} 1$`, 'm'));
  }
  // The tool's limit is one, whosever the work.
  assert.equal(metrics.match(/^outboxd_slots\{.*tool="create_ticket".*\}/gm).length, 1);
  const ready = await daemon.ask('/readyz');
  assert.deepEqual([ready.status, ready.text], [200, 'ready\norders: served\nsupport: served\n']);

  // The API and the commands say whose operation they mean.
  assert.deepEqual(JSON.parse((await daemon.ask('/api/v1/sources')).text).items, [{ name: 'orders' }, { name: 'support' }]);
  const guess = await daemon.ask('/api/v1/operations/op-1');
  assert.equal(guess.status, 400);
  assert.match(guess.text, /orders, support/);
  assert.equal((await daemon.ask('/api/v1/operations/op-1?source=sales')).status, 404);
  await w.support.enqueue('only here');
  await w.support.settled('only here');
  assert.equal((await daemon.ask('/api/v1/operations/only%20here?source=orders')).status, 404);
  assert.equal((await daemon.ask('/api/v1/operations/only%20here?source=support')).status, 200);
  assert.equal((await daemon.ask('/api/v1/operations?status=succeeded&source=support&limit=5')).status, 200);

  const file = daemon.program.child.spawnargs.at(-1);
  const { OUTBOXD_DATABASE: _, ...env } = w.env;
  const cli = (...args) => run(binary, args, { env });
  assert.equal((await cli('get', 'only here', '-c', file, '--source', 'support')).code, 0);
  assert.equal((await cli('get', 'only here', '-c', file, '--source', 'orders')).code, 1);
  for (const [args, said] of [
    [['get', 'x', '-c', file], /Add --source NAME: .* has orders, support/],
    [['get', 'x', '-c', file, '--source', 'sales'], /has no source sales, only orders, support/],
    [['get', 'x', '--source', 'orders'], /name the file with -c/],
    [['get', 'x', '-c', file, '--source', 'orders', '--database', 'dbname=x'], /exclude each other/],
    [['run', '-c', file, '--database', 'dbname=x'], /--database names one/],
  ]) {
    const refused = await cli(...args);
    assert.equal(refused.code, 2, refused.text);
    assert.match(refused.text, said);
  }
  const migrated = await cli('migrate', '-c', file);
  assert.deepEqual([migrated.code, migrated.out], [0, 'orders: nothing to apply\nsupport: nothing to apply\n']);
  const doctor = await cli('doctor', '--json', '-c', file);
  const { ok, checks } = JSON.parse(doctor.out);
  assert.deepEqual([doctor.code, ok], [0, true], doctor.text);
  assert.deepEqual([...new Set(checks.map((check) => check.source))], ['orders', 'support', null]);
  assert.deepEqual(checks.filter((check) => check.level === 'bad'), []);
  assert.match((await cli('doctor', '-c', file)).out, /^orders\nok +fsync[^]*^support\nok +fsync[^]*^configuration\nok +provider_keys/m);
  // What is printed hides the secrets and loads again.
  const printed = await cli('print-config', file);
  assert.match(printed.out, /sources:\n +-\n +name: orders\n +dsn: /);
  assert.deepEqual(await daemon.stop(), { code: 0, signal: null });
});

twoSources('one database gone: the other goes on, and takes up again what comes back', async (w) => {
  const daemon = await (await w.serve()).ready();
  await w.support.enqueue('before');
  await w.support.settled('before');
  await w.desk.plan('held', { posts: ['hold'] });
  await w.support.enqueue('held');
  await eventually('its ticket exists', async () => (await w.desk.tickets('held')).length === 1);
  second.halt();
  try {
    for (let i = 0; i < 20; i++) {
      await w.orders.enqueue(`during-${i}`);
      assert.equal((await w.orders.settled(`during-${i}`)).status, 'succeeded');
    }
    await w.desk.release('held');
    await eventually('the metric says it', async () => (await daemon.metric('outboxd_database_up', 'source="support"')) === 0);
    assert.equal(await daemon.metric('outboxd_database_up', 'source="orders"'), 1);
    const ready = await daemon.ask('/readyz');
    assert.equal(ready.status, 200);
    assert.match(ready.text, /^orders: served$/m);
    assert.match(ready.text, /^support: (?!served)./m);
    assert.match(daemon.log, /source=support/);
    assert.doesNotMatch(daemon.log, /could not.*source=orders/);
    const { OUTBOXD_DATABASE: _, ...env } = w.env;
    const doctor = await run(binary, ['doctor', '--json', '-c', daemon.program.child.spawnargs.at(-1)], { env });
    assert.equal(doctor.code, 1, doctor.text);
    const bad = JSON.parse(doctor.out).checks.filter((check) => check.level === 'bad');
    assert.deepEqual(bad.map((check) => [check.source, check.name]), [['support', 'reachable']]);
  } finally {
    await second.begin();
  }
  await eventually('support accepts again', () => w.support.db.query('SELECT 1'), 30_000);
  assert.equal((await w.support.settled('held')).status, 'succeeded');
  assert.equal((await w.desk.posts('held')).length, 1);
  await w.support.enqueue('after');
  assert.equal((await w.support.settled('after')).status, 'succeeded');
  await eventually('both are served', async () => (await daemon.ask('/readyz')).text === 'ready\norders: served\nsupport: served\n');
  assert.deepEqual(await daemon.stop(), { code: 0, signal: null });
});

twoSources('one database silent: nothing is shared that it could hold, a stop does not wait for it', async (w) => {
  // One slot in all: the silent one may hold it for no longer than its call.
  const tool = { ...ticketTool(w.desk.url), concurrency: 1 };
  const daemon = await (await w.serve({ tools: { create_ticket: tool }, worker: { drain_timeout: '1s' } })).ready();
  await w.support.enqueue('before');
  await w.support.settled('before');
  for (let i = 0; i < 30; i++) await w.support.enqueue(`backlog-${i}`);
  second.freeze();
  try {
    for (let i = 0; i < 20; i++) {
      await w.orders.enqueue(`during-${i}`);
      assert.equal((await w.orders.settled(`during-${i}`)).status, 'succeeded');
    }
    await eventually('it is noticed', async () => (await daemon.metric('outboxd_database_up', 'source="support"')) === 0, 30_000);
    assert.match(daemon.log, /the database does not answer.*source=support/);
    assert.match((await daemon.ask('/readyz')).text, /^support: the database has not answered the heartbeat lately$/m);

    // A reload beside a silent database.
    const file = w.configure({ database: w.sources(w.orders, w.support), tools: { create_ticket: { ...tool, concurrency: 2 } } }, daemon.port);
    writeFileSync(daemon.program.child.spawnargs.at(-1), readFileSync(file));
    process.kill(daemon.pid, 'SIGHUP');
    await eventually('it was reloaded', () => daemon.log.includes('the configuration was reloaded'));
    await w.orders.enqueue('reloaded');
    assert.equal((await w.orders.settled('reloaded')).status, 'succeeded');

    // The other's attempt is recorded before the process ends without the silent one.
    await w.desk.plan('last', { posts: ['hold'] });
    await w.orders.enqueue('last');
    await eventually('its ticket exists', async () => (await w.desk.tickets('last')).length === 1);
    const stopping = daemon.stop(60_000);
    await sleep(200);
    await w.desk.release('last');
    assert.deepEqual(await stopping, { code: 1, signal: null });
    assert.match(daemon.log, /the database does not answer, not waiting for it any longer.*source=support/);
    assert.equal((await w.orders.get('last')).status, 'succeeded');
  } finally {
    second.thaw();
  }
  await (await w.serve()).ready();
  await eventually('the backlog is done', async () => (await w.support.count('succeeded')) === 31, 60_000);
});

twoSources('one operation does not wait behind another database\'s backlog', async (w) => {
  for (const settings of [{ concurrency: 1 }, { rate: '20/s' }]) {
    const kind = Object.keys(settings)[0];
    const daemon = await (await w.serve({ tools: { create_ticket: { ...ticketTool(w.desk.url), ...settings } } })).ready();
    await w.support.db.query(`INSERT INTO outbox.operation (operation_id, tool, arguments)
      SELECT $1 || i, 'create_ticket', jsonb_build_object('title', 'x') FROM generate_series(1, 5000) i`, [`${kind}-`]);
    await eventually('the backlog is being worked on', async () => (await w.support.count('succeeded')) >= 3);
    for (let i = 0; i < 5; i++) {
      const before = await w.support.count('succeeded');
      await w.orders.enqueue(`${kind}-one-${i}`);
      assert.equal((await w.orders.settled(`${kind}-one-${i}`)).status, 'succeeded');
      assert.ok((await w.support.count('succeeded')) - before < 2500, 'the backlog was not what it waited for');
    }
    const done = await w.support.count('succeeded');
    await eventually('the backlog goes on', async () => (await w.support.count('succeeded')) > done);
    assert.deepEqual(await daemon.stop(), { code: 0, signal: null });
    await w.support.db.query(`SELECT outbox.cancel(operation_id) FROM outbox.operations WHERE status IN ('pending', 'scheduled')`);
  }
});

twoSources('what is not there at the start is taken up when it comes', async (w) => {
  second.halt();
  let daemon;
  try {
    daemon = await (await w.serve()).ready();
    assert.match((await daemon.ask('/readyz')).text, /^support: (?!served)./m);
    await w.orders.enqueue('early');
    assert.equal((await w.orders.settled('early')).status, 'succeeded');
    assert.match(daemon.log, /this source is not served yet, trying again.*source=support|source=support.*this source is not served yet/);
    // A stop does not wait for it either.
    assert.deepEqual(await daemon.stop(), { code: 0, signal: null });
    daemon = await (await w.serve()).ready();
  } finally {
    await second.begin();
  }
  await eventually('support accepts again', () => w.support.db.query('SELECT 1'), 30_000);
  await w.support.enqueue('late');
  assert.equal((await w.support.settled('late', 60_000)).status, 'succeeded');
  await eventually('both are served', async () => (await daemon.ask('/readyz')).text === 'ready\norders: served\nsupport: served\n');
});

twoSources('one that does not fit stops a rollout and nothing else; none that can be served ends the process', async (w) => {
  const bare = new Outbox(w, 'bare', second, await second.createDatabase());
  try {
    const daemon = await w.launch({ database: w.sources(w.orders, bare) });
    await w.orders.enqueue('op-1');
    assert.equal((await w.orders.settled('op-1')).status, 'succeeded');
    const refused = await eventually('it says so', async () => {
      const ready = await daemon.ask('/readyz');
      return ready.text.includes('outboxd migrate') && ready;
    });
    assert.equal(refused.status, 503);
    assert.match(refused.text, /orders: served/);
    await bare.migrate();
    await bare.enqueue('op-1');
    assert.equal((await bare.settled('op-1', 60_000)).status, 'succeeded');
    await eventually('it is ready', async () => (await daemon.ask('/readyz')).status === 200);
    await daemon.stop();

    // The namespace is for ever: under another name it is refused, and keeps what it has.
    const renamed = Object.assign(Object.create(Object.getPrototypeOf(bare)), bare, { name: 'sales' });
    const again = await w.launch({ database: w.sources(w.orders, renamed) });
    await eventually('it is refused', async () => (await again.ask('/readyz')).text.includes('this outbox was started with bare'));
    await bare.enqueue('op-2');
    await sleep(500);
    assert.equal((await bare.get('op-2')).status, 'pending');
    await again.stop();

    const empty = [1, 2].map(() => second.createDatabase());
    const [one, two] = (await Promise.all(empty)).map((database, i) => ({ name: `none-${i}`, dsn: second.dsn(database) }));
    const alone = await w.launch({ database: w.sources(one, two) });
    assert.deepEqual(await eventually('it ends', () => alone.ended, 60_000), { code: 5, signal: null });
    assert.match(alone.log, /no source can be served; none-0: .*outboxd migrate/);
    const nowhere = [1, 2].map((i) => ({ name: `away-${i}`, dsn: `host=/nonexistent dbname=x${i}` }));
    const away = await w.launch({ database: w.sources(...nowhere) });
    assert.deepEqual(await eventually('it ends', () => away.ended, 60_000), { code: 4, signal: null });
  } finally {
    await bare.db.end();
  }
});

twoSources('a reload adds no source and removes none, and says so', async (w) => {
  const daemon = await w.launch({ database: w.sources(w.orders, w.support) });
  await daemon.ready();
  const file = w.configure({ database: w.sources(w.orders) }, daemon.port);
  writeFileSync(daemon.program.child.spawnargs.at(-1), readFileSync(file));
  process.kill(daemon.pid, 'SIGHUP');
  await eventually('it says so', () => /takes a restart to change key=database\.sources/.test(daemon.log));
  await eventually('it was reloaded', () => daemon.log.includes('the configuration was reloaded'));
  await w.support.enqueue('still');
  assert.equal((await w.support.settled('still')).status, 'succeeded');
});
