// type: sql on another server than the outbox's own: there is no transaction over both, so the end is
// looked up. The daemon is killed at every step of it, and the other server crashes under load.
import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { Cluster } from '../e2e/cluster.mjs';
import { eventually, sleep } from '../e2e/util.mjs';
import { story } from '../e2e/world.mjs';

const pay = (dsn) => ({
  effect: 'write',
  execute: {
    type: 'sql', dsn, statement: 'INSERT INTO payment (ref, name, amount) VALUES (:ref, :name, (:amount)::numeric) RETURNING amount',
    parameters: { ref: '{{ operation.key }}', name: '{{ operation.id }}', amount: '{{ arguments.amount }}' },
    outcomes: [{ when: { rows: 1 }, then: 'succeeded', result: { amount: '/0/amount' } }],
  },
  reconcile: {
    type: 'sql', dsn, statement: 'SELECT amount FROM payment WHERE ref = :ref', parameters: { ref: '{{ operation.key }}' },
    verdicts: [{ when: { rows: 1 }, then: 'found', result: { amount: '/0/amount' } }, { when: { rows: 0 }, then: 'absent' }],
  },
});

// No unique key on purpose: the second payment would be there to be seen.
const table = 'CREATE TABLE payment (ref text NOT NULL, name text NOT NULL, amount numeric NOT NULL)';

const kills = {  // failpoint → has it been paid by then
  after_lease_before_dispatch: false, before_sql_effect: false, after_sql_effect: false,
  after_sql_commit: true, after_effect_before_complete: true, before_complete: true,
};

let billing;

story('another server: killed at every step, one payment each', async (w) => {
  billing = await Cluster.start();
  await w.migrate();
  const template = (await w.one('SELECT current_database() AS name')).name;
  await w.db.end();
  w.db = w.cluster.pool('postgres');
  const rows = await Promise.all(Object.entries(kills).map(async ([name, paid], i) => {
    const own = `${template}_${i}`;
    const other = await billing.createDatabase();
    await eventually('the database is copied', () => w.db.query(`CREATE DATABASE ${own} TEMPLATE ${template}`));
    const [db, bills] = [w.cluster.pool(own), billing.pool(other)];
    await bills.query(table);
    const start = (failpoints) => w.launch({ failpoints, admin: { listen: '127.0.0.1:0' }, tools: { pay: pay(billing.dsn(other)) }, env: { ...w.env, OUTBOXD_DATABASE: w.cluster.dsn(own) } });
    const file = path.join(w.dir, `at-${name}`);
    const first = await start(`${name}=pause:${file}`);
    await db.query(`INSERT INTO outbox.operation (operation_id, tool, arguments) VALUES ('bill', 'pay', '{"amount": 12.5}')`);
    await eventually(`${name} is reached`, () => existsSync(`${file}.reached`) || first.ended, 30_000);
    assert.equal(first.ended, null, name);
    await first.kill();
    assert.equal((await bills.query('SELECT FROM payment')).rowCount, paid ? 1 : 0, `${name}: when it was killed`);
    await start('');
    await eventually(`${name}: it is final`, async () => (await db.query('SELECT FROM outbox.outcome')).rowCount === 1, 60_000);
    const { rows: [row] } = await db.query('SELECT status, attempts, result FROM outbox.operations');
    const effects = (await bills.query('SELECT FROM payment')).rowCount;
    const { rows: probes } = await db.query(`SELECT detail->>'verdict' AS verdict FROM outbox.event WHERE kind = 'probe' ORDER BY id`);
    await Promise.all([db.end(), bills.end()]);
    assert.deepEqual([row.status, row.attempts, row.result, effects], ['succeeded', paid ? 1 : 2, { amount: 12.5 }, 1], name);
    assert.equal(probes.at(-1).verdict, paid ? 'found' : 'absent', name);
    return `${name.padEnd(28)} 1 kill, ${effects} payment, ${probes.at(-1).verdict}`;
  }));
  console.log(rows.join('\n'));
});

story('another server crashes under load: every payment is made once', async (w) => {
  billing ??= await Cluster.start();
  const other = await billing.createDatabase();
  let bills = billing.pool(other);
  await bills.query(table);
  await w.start({ tools: { pay: pay(billing.dsn(other)) } });
  const count = 200;
  let filed = 0;
  const filing = (async () => {
    for (; filed < count; filed += 5) {
      await w.db.query(`INSERT INTO outbox.operation (operation_id, tool, arguments) SELECT 'bill-' || i, 'pay', jsonb_build_object('amount', i)
        FROM generate_series($1::int, $2::int) i`, [filed, filed + 4]);
      await sleep(40);
    }
  })();
  for (let i = 0; i < 2; i++) {
    await sleep(400);
    await billing.restart();
  }
  await filing;
  await w.allSettled(count, 90_000);
  await bills.end();
  bills = billing.pool(other);
  const { rows } = await bills.query('SELECT name, count(*)::int AS n, min(amount)::int AS amount FROM payment GROUP BY 1');
  await bills.end();
  assert.equal(rows.length, count);
  for (const { name, n, amount } of rows) assert.deepEqual([n, `bill-${amount}`], [1, name]);
  const { n } = await w.one(`SELECT count(*)::int AS n FROM outbox.operations o JOIN outbox.operation USING (operation_id)
    WHERE o.status = 'succeeded' AND o.result->>'amount' = arguments->>'amount'`);
  assert.equal(n, count);
  const { n: troubled } = await w.one('SELECT count(DISTINCT operation_id)::int AS n FROM outbox.event');
  assert.ok(troubled > 0, 'the crashes were noticed');
});
