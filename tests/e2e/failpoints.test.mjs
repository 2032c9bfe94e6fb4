// Every failpoint there is, from the program's own list × crash, throw, pause, pause beyond the
// lease, and delay: under a success, a lost answer, a lost request and a refusal. Then the
// invariants. FAILPOINTS_FULL=1 takes more operations per case, and also what throws or pauses more
// than once.
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { eventually, run, sleep } from './util.mjs';
import { binary, story } from './world.mjs';

const full = process.env.FAILPOINTS_FULL === '1';
const together = full ? 6 : 8;  // cases at once
const times = {
  defaults: {
    timeout: '1s', connect_timeout: '500ms',
    retry: { max_attempts: 10, initial: '50ms', max: '200ms', multiplier: 2, jitter: 0, give_up_after: '1h' },
    reconcile: { settle: '500ms', confirmations: 1, interval: '100ms', max_interval: '300ms', give_up_after: '1h', after_absent: 'retry' },
  },
  admin: { listen: '127.0.0.1:0' },
  worker: { lease_margin: '300ms', drain_timeout: '3s', poll: { busy: '5ms', idle: '100ms' } },
};
const kinds = new Set(['replayed', 'retry', 'failed', 'succeeded', 'released', 'unknown', 'lease_expired', 'probe',
  'attention', 'resolved', 'acknowledged', 'cancelled', 'retried', 'late_result', 'timeline', 'result_lost']);

// Some places are reached only after something else went wrong.
const needs = {
  before_release_lost: 'after_lease_before_read=throw',
  before_late: 'after_effect_before_complete=delay:3500ms',
  after_late_before_ack: 'after_effect_before_complete=delay:3500ms',
};
const byTakingOver = new Set(['before_late', 'after_late_before_ack']);

// What the desk does with the first requests of each operation.
const stories = {
  plain: [], cut: ['cut'], drop: ['drop'], refuse: ['refuse'],
  ...(full ? { plain2: [], error: ['error'], hang: ['hang'], busy: ['busy'], slow: ['slow'], again: ['drop', 'cut'] } : {}),
};

const actions = (() => {
  const some = {
    crash: () => 'crash*1',
    throw: () => 'throw*1',
    pause: (at) => `pause:${at.file}*1`,
    beyond: (at) => `pause:${at.file}*1`,
    delay: () => 'delay:300ms*2',
  };
  return full ? { ...some, throws: () => 'throw*3', second: () => 'crash*1@1', freeze: () => 'delay:1500ms*2' } : some;
})();

// A daemon on a database of its own: the cases do not see each other.
class Case {
  constructor(w, name, action, number) {
    Object.assign(this, { w, name, action, label: `${name} ${action}`, file: path.join(w.dir, `go-${number}`) });
    this.ids = Object.keys(stories).map((story) => `${name}-${action}-${story}`);
  }

  async open() {
    const database = `${this.w.template}_${this.label.replaceAll(' ', '_')}`.slice(0, 63);
    await this.w.admin(`CREATE DATABASE ${database} TEMPLATE ${this.w.template}`);
    this.db = this.w.cluster.pool(database);
    this.env = { ...this.w.env, OUTBOXD_DATABASE: this.w.cluster.dsn(database) };
    for (const [i, posts] of Object.values(stories).entries()) if (posts.length) await this.w.desk.plan(this.ids[i], { posts });
    await this.db.query(`INSERT INTO outbox.operation (operation_id, tool, arguments)
      SELECT id, 'create_ticket', jsonb_build_object('title', 'ticket ' || id) FROM unnest($1::text[]) AS id`, [this.ids]);
  }

  daemon(failpoints = '') { return this.w.launch({ failpoints, ...times, env: this.env }); }

  get reached() { return existsSync(`${this.file}.reached`); }
  release() { writeFileSync(this.file, 'go'); }

  settled(ms = 30_000) {
    let open;
    return eventually(`${this.label}: all are final`, async () => {
      ({ rows: open } = await this.db.query('SELECT seq, status, attempts, attention, error FROM outbox.queue'));
      return open.length === 0;
    }, ms).catch((error) => { throw new Error(`${error.message}; open are ${JSON.stringify(open)}`); });
  }

  async run(specification) {
    await this.open();
    const often = this.action === 'second' ? 2 : 1;
    const armed = `${this.name}=${specification}${needs[this.name] ? `,${needs[this.name]}*${often}` : ''}`;
    const first = await this.daemon(armed);
    // The other one comes when the first is stuck in the middle, or has sent what it will be late for.
    if (byTakingOver.has(this.name)) {
      await eventually(`${this.label}: something is under way`, async () => (await this.w.desk.tickets(this.ids[0])).length > 0);
      await this.daemon();
    }
    if (this.action === 'crash' || this.action === 'second') {
      await eventually(`${this.label}: it crashes`, () => first.ended, 20_000);
      assert.deepEqual([first.ended.code, first.ended.signal], [86, null], this.label);
      await this.daemon();
    } else if (this.action === 'pause' || this.action === 'beyond') {
      await eventually(`${this.label}: it is reached`, () => this.reached || first.ended, 20_000);
      assert.equal(first.ended, null, this.label);
      if (this.action === 'beyond') {
        await this.daemon();
        await sleep(2500);  // the lease (1.3 s) and settle have passed: the other one has asked, or sent
      } else {
        await sleep(100);
      }
      this.release();
    }
    await this.settled();
    // What is late has come as well.
    if (this.action === 'beyond' || byTakingOver.has(this.name)) await sleep(full ? 2000 : 1000);
    if (this.action !== 'crash' && this.action !== 'second') assert.equal(first.ended, null, `${this.label}: it lives on`);
    await this.check();
    for (const daemon of this.w.daemons.filter((d) => d.env === this.env && !d.ended)) await daemon.kill();
    await this.db.end();
  }

  async check() {
    const { rows } = await this.db.query('SELECT operation_id, status, result, attention FROM outbox.operations');
    assert.deepEqual(rows.map((row) => row.operation_id).sort(), [...this.ids].sort(), `${this.label}: nothing is lost`);
    const { tickets, requests } = await this.w.desk.state();
    for (const { operation_id: id, status, result, attention } of rows) {
      const effects = tickets.filter((t) => t.operation_id === id);
      const context = () => `${id}: ${status}, ${JSON.stringify(requests.filter((r) => r.body.operation_id === id).map((r) => r.at))}`;
      assert.ok(effects.length <= 1, `two effects, ${context()}`);
      assert.equal(status, effects.length ? 'succeeded' : 'failed', context());
      if (effects.length) assert.deepEqual(result, { id: effects[0].id }, context());
      assert.equal(attention, null, context());
      if (!id.endsWith('refuse')) assert.equal(status, 'succeeded', context());
    }
    const { rows: events } = await this.db.query('SELECT operation_id, kind, epoch FROM outbox.event ORDER BY id');
    const epochs = new Map();
    for (const { operation_id: id, kind, epoch } of events) {
      assert.ok(kinds.has(kind), `${id}: event ${kind}`);
      if (epoch === null) continue;
      assert.ok(epoch >= (epochs.get(id) ?? 0), `${id}: event ${kind} of epoch ${epoch} after ${epochs.get(id)}`);
      epochs.set(id, epoch);
    }
    const { rows: behind } = await this.db.query(`SELECT o.operation_id FROM outbox.outcome c JOIN outbox.operation o USING (seq)
      JOIN outbox.event e USING (operation_id) WHERE e.epoch > c.lease_epoch`);
    assert.deepEqual(behind, [], `${this.label}: no event is ahead of the end`);
  }
}

async function walk(w, cases) {
  const failures = [];
  const next = async () => {
    for (let one = cases.shift(); one; one = cases.shift()) {
      try {
        await one.run(actions[one.action](one));
      } catch (error) {
        const logs = w.daemons.filter((d) => d.env === one.env).map((d) => d.log.slice(-4000));
        failures.push(`${one.label}: ${error.message}\n${logs.join('\n--\n')}`);
        for (const daemon of w.daemons.filter((d) => d.env === one.env && !d.ended)) await daemon.kill();
      }
    }
  };
  await Promise.all(Array.from({ length: together }, next));
  assert.equal(failures.length, 0, `${failures.length} failed:\n${failures.join('\n\n')}`);
}

story('every failpoint × crash, throw, pause, beyond the lease, delay: the invariants hold', async (w) => {
  await w.migrate();
  w.template = `${(await w.one('SELECT current_database() AS name')).name}`;
  await w.db.end();
  w.db = w.cluster.pool('postgres');
  w.admin = (sql) => eventually('the database is copied', () => w.db.query(sql));
  const listed = await run(binary, ['list-failpoints'], { env: w.env });
  assert.equal(listed.code, 0, listed.text);
  const names = listed.out.split('\n').map((line) => line.trim()).filter(Boolean);
  assert.ok(names.length >= 31, `${names}`);
  const only = process.env.FAILPOINTS_ONLY;
  // Those of the sql adapter have a walk of their own: sql_tool.test.mjs.
  const cases = names.filter((name) => !/sql/.test(name) && (!only || only.split(',').includes(name)))
    .flatMap((name, i) => Object.keys(actions).map((action, j) => new Case(w, name, action, `${i}-${j}`)));
  await walk(w, cases);
}, { timeout: full ? 3_600_000 : 600_000 });
