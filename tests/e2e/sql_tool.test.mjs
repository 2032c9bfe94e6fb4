// type: sql. On the planner's own database effect and record are one transaction: whatever dies
// wherever, exactly one effect, and nobody outside is asked. On another database: looked up there.
import assert from 'node:assert/strict';
import { existsSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { eventually, run, sleep } from './util.mjs';
import { binary, story } from './world.mjs';

const together = 6;  // cases at once
const times = {
  defaults: {
    timeout: '1s', connect_timeout: '500ms',
    retry: { max_attempts: 10, initial: '50ms', max: '200ms', multiplier: 2, jitter: 0, give_up_after: '1h' },
    reconcile: { settle: '500ms', confirmations: 1, interval: '100ms', max_interval: '300ms', give_up_after: '1h', after_absent: 'retry' },
  },
  admin: { listen: '127.0.0.1:0' },
  worker: { lease_margin: '300ms', drain_timeout: '3s', poll: { busy: '5ms', idle: '100ms' } },
};

const outcomes = [
  { when: { rows: 0 }, then: 'rejected', code: 'no_such_account' },
  { when: { rows: 1 }, then: 'succeeded', result: { id: '/0/id', credit: '/0/credit' } },
];
const grantCredit = {
  effect: 'write',
  execute: {
    type: 'sql',
    statement: `WITH entry AS (INSERT INTO entry (ref, account, amount) SELECT :ref, id, (:amount)::numeric FROM account WHERE id = :account RETURNING account)
      UPDATE account a SET credit = credit + (:amount)::numeric FROM entry e WHERE a.id = e.account RETURNING a.id, a.credit`,
    parameters: { ref: '{{ operation.id }}', amount: '{{ arguments.amount }}', account: '{{ arguments.account }}' },
    statement_timeout: '5s',
    outcomes,
  },
};
const tables = `CREATE TABLE account (id text PRIMARY KEY, credit numeric NOT NULL DEFAULT 0);
  CREATE TABLE entry (ref text NOT NULL, account text NOT NULL, amount numeric NOT NULL);
  INSERT INTO account SELECT 'a' || n FROM generate_series(1, 4) n`;

// Not reached by a tool that opens no connection of its own and is never late.
const elsewhere = new Set(['before_connect', 'before_first_byte', 'after_first_byte', 'mid_answer', 'before_late', 'after_late_before_ack',
  'before_release_lost', 'before_probe', 'after_probe_before_settle', 'between_finish_and_move']);
const actions = {
  crash: () => 'crash*1',
  throw: () => 'throw*1',
  beyond: (at) => `pause:${at.file}*1`,
};

class Case {
  constructor(w, name, action, number) {
    Object.assign(this, { w, name, action, label: `${name} ${action}`, file: path.join(w.dir, `sql-${number}`) });
    this.ids = [1, 2, 3].map((n) => `${name}-${action}-${n}`);
  }

  async open() {
    const database = `${this.w.template}_${this.label.replaceAll(' ', '_')}`.slice(0, 63);
    await this.w.admin(`CREATE DATABASE ${database} TEMPLATE ${this.w.template}`);
    this.db = this.w.cluster.pool(database);
    this.env = { ...this.w.env, OUTBOXD_DATABASE: this.w.cluster.dsn(database) };
    await this.db.query(tables);
    await this.db.query(`INSERT INTO outbox.operation (operation_id, tool, arguments)
      SELECT id, 'grant_credit', jsonb_build_object('account', CASE n WHEN 3 THEN 'nobody' ELSE 'a' || n END, 'amount', 5) FROM unnest($1::text[]) WITH ORDINALITY AS t (id, n)`, [this.ids]);
  }

  daemon(failpoints = '') { return this.w.launch({ failpoints, ...times, tools: { grant_credit: grantCredit }, env: this.env }); }

  async run(specification) {
    await this.open();
    const first = await this.daemon(`${this.name}=${specification}`);
    if (this.action === 'crash') {
      await eventually(`${this.label}: it crashes`, () => first.ended, 30_000);
      assert.deepEqual([first.ended.code, first.ended.signal], [86, null], this.label);
      await this.daemon();
    } else if (this.action === 'beyond') {
      await eventually(`${this.label}: it is reached`, () => existsSync(`${this.file}.reached`) || first.ended, 30_000);
      assert.equal(first.ended, null, this.label);
      await this.daemon();
      await sleep(2500);  // the lease (1.3 s) has passed
      writeFileSync(this.file, 'go');
    }
    await eventually(`${this.label}: all are final`, async () => (await this.db.query('SELECT FROM outbox.queue')).rowCount === 0, 60_000);
    if (this.action === 'beyond') await sleep(1000);
    await this.check();
    for (const daemon of this.w.daemons.filter((d) => d.env === this.env && !d.ended)) await daemon.kill();
    await this.db.end();
  }

  async check() {
    const { rows } = await this.db.query(`SELECT o.operation_id, o.status, o.result, o.attention, (SELECT count(*)::int FROM entry e WHERE e.ref = o.operation_id) AS effects
      FROM outbox.operations o ORDER BY 1`);
    assert.equal(rows.length, 3, this.label);
    for (const [n, row] of rows.entries()) {
      const context = `${this.label}: ${JSON.stringify(row)}`;
      assert.equal(row.attention, null, context);
      if (n === 2) {
        assert.deepEqual([row.status, row.effects], ['failed', 0], context);
        continue;
      }
      assert.deepEqual([row.status, row.effects], ['succeeded', 1], context);
      assert.deepEqual(row.result, { id: `a${n + 1}`, credit: 5 }, context);
    }
    const { rows: sums } = await this.db.query('SELECT id FROM account WHERE credit <> (SELECT coalesce(sum(amount), 0) FROM entry WHERE account = id)');
    assert.deepEqual(sums, [], this.label);
    // Nothing was in doubt, nobody was asked, nothing came late: the transaction alone tells.
    const { rows: events } = await this.db.query(`SELECT operation_id, kind, detail FROM outbox.event
      WHERE kind IN ('attention', 'result_lost', 'unknown', 'probe')`);
    assert.deepEqual(events, [], this.label);
  }
}

story('own database: every failpoint × crash, throw, beyond the lease: exactly one effect', async (w) => {
  await w.migrate();
  w.template = `${(await w.one('SELECT current_database() AS name')).name}`;
  await w.db.end();
  w.db = w.cluster.pool('postgres');
  w.admin = (sql) => eventually('the database is copied', () => w.db.query(sql));
  const listed = await run(binary, ['list-failpoints'], { env: w.env });
  const only = process.env.FAILPOINTS_ONLY?.split(',');
  const names = listed.out.split('\n').map((line) => line.trim()).filter((name) => name && !elsewhere.has(name) && (!only || only.includes(name)));
  assert.ok(only || names.filter((name) => name.includes('sql')).length === 5, `${names}`);
  const cases = names.flatMap((name, i) => Object.keys(actions).map((action, j) => new Case(w, name, action, `${i}-${j}`)));
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
}, { timeout: 900_000 });

story('own database: refusals, retries and hostile values', async (w) => {
  await w.migrate();
  await w.db.query(tables);
  const flaky = {
    effect: 'write',
    execute: {
      type: 'sql',
      statement: 'UPDATE account SET credit = credit + 1 WHERE id = :id RETURNING credit',
      parameters: { id: '{{ arguments.id }}' },
      outcomes: [{ when: { rows: 1, body: { '/0/credit': 2 } }, then: 'succeeded' }, { when: { rows: 1 }, then: 'retry', retry_after: '200ms' }],
    },
  };
  await w.start({ tools: { grant_credit: grantCredit, flaky } });
  const grant = (id, account, amount) => w.enqueue(id, { tool: 'grant_credit', args: { account, amount } });
  const evil = `a1'; DELETE FROM account; --`;
  await w.db.query('INSERT INTO account VALUES ($1)', [evil]);
  await grant('evil', evil, '1.5');
  await grant('text', 'a2', 'not a number');
  await grant('null', 'a2', null);
  await w.enqueue('again', { tool: 'flaky', args: { id: 'a3' } });
  assert.deepEqual((await w.settled('evil')).result, { id: evil, credit: 1.5 });
  assert.equal((await w.settled('text')).error.code, 'sql_22P02');
  assert.equal((await w.settled('null')).error.code, 'sql_23502');
  // Rolled back each time: the credit never gets from 0 to 2, until somebody helps.
  await eventually('it is tried again', async () => (await w.get('again')).attempts >= 2);
  assert.equal((await w.one(`SELECT credit FROM account WHERE id = 'a3'`)).credit, '0');
  await w.db.query(`UPDATE account SET credit = 1 WHERE id = 'a3'`);
  assert.equal((await w.settled('again')).status, 'succeeded');
  assert.equal((await w.one('SELECT count(*)::int AS n FROM account')).n, 5);
});

story('another database: a lost acknowledgement is looked up there', async (w) => {
  const other = await w.cluster.createDatabase();
  const db = w.cluster.pool(other);
  await db.query('CREATE TABLE payment (ref text, amount numeric)');
  const dsn = w.cluster.dsn(other);
  const pay = {
    effect: 'write',
    execute: {
      type: 'sql', dsn, statement: 'INSERT INTO payment VALUES (:ref, (:amount)::numeric)',
      parameters: { ref: '{{ operation.key }}', amount: '{{ arguments.amount }}' },
      outcomes: [{ when: { rows: 1 }, then: 'succeeded' }],
    },
    reconcile: {
      type: 'sql', dsn, statement: 'SELECT amount FROM payment WHERE ref = :ref', parameters: { ref: '{{ operation.key }}' },
      verdicts: [{ when: { rows: 1 }, then: 'found', result: { amount: '/0/amount' } }, { when: { rows: 0 }, then: 'absent' }],
    },
  };
  const first = await w.start({ tools: { pay }, failpoints: 'after_sql_commit=crash@1' });
  await w.enqueue('clean', { tool: 'pay', args: { amount: 3 } });
  assert.equal((await w.settled('clean')).status, 'succeeded');
  await w.enqueue('lost', { tool: 'pay', args: { amount: 4 } });
  await eventually('it crashes', () => first.ended, 30_000);
  await w.start({ tools: { pay }, failpoints: 'after_sql_effect=throw*1' });
  const row = await w.settled('lost', 60_000);
  assert.deepEqual([row.status, row.attempts, row.result], ['succeeded', 1, { amount: 4 }]);
  await w.enqueue('before', { tool: 'pay', args: { amount: 5 } });
  assert.deepEqual([(await w.settled('before')).status, (await w.get('before')).attempts], ['succeeded', 2]);
  assert.deepEqual((await db.query('SELECT amount::int AS n FROM payment ORDER BY 1')).rows.map((r) => r.n), [3, 4, 5]);
  await db.end();
});
