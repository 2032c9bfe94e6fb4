// A planner as a process of its own: `node planner.mjs SEED NAME PORT DATABASE JOURNAL`. Every step
// is a transaction of its own state (planner.intent) and an intent; it retries what failed with the
// same id, replays earlier steps, cancels some and rolls some back, until its standard input ends.
// The journal: one line per answer the outbox gave, and per step that was rolled back.
import { appendFileSync } from 'node:fs';
import pg from '../e2e/pg.mjs';
import { Random, weighted } from './random.mjs';

const [seed, name, port, database, journal] = process.argv.slice(2);
const random = new Random(seed, 'planner', name);
const pool = new pg.Pool({ host: '127.0.0.1', port: Number(port), user: 'postgres', database, max: 1, connectionTimeoutMillis: 3000, query_timeout: 10_000 });
pool.on('error', () => {});
pool.on('connect', (client) => client.on('error', () => {}));  // cut while in use: the query says so
const known = [];
let ending = false;
let steps = 0;

const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
const note = (line) => appendFileSync(journal, `${JSON.stringify({ at: Date.now(), ...line })}\n`);
const args = (id) => JSON.stringify({ title: `ticket ${id}` });

// Until it commits: an end that nobody saw is tried again, with the same id.
async function transaction(body) {
  for (let tries = 0; ; tries++) {
    let client;
    try {
      client = await pool.connect();
      await client.query('BEGIN');
      const answer = await body(client);
      await client.query('COMMIT');
      client.release();
      return answer;
    } catch (error) {
      client?.release(true);
      if (error.code?.startsWith('OB') || error.code?.startsWith('42')) throw error;
      if (tries > 300) throw error;
      await sleep(100);
    }
  }
}

const state = (client, id) => client.query('INSERT INTO planner.intent (id) VALUES ($1) ON CONFLICT DO NOTHING', [id]);

async function enqueue(client, id, { retry = false, runAt = null } = {}) {
  const { rows } = await client.query(
    `SELECT * FROM outbox.enqueue('create_ticket', $1::jsonb, $2, retry_failed => $3, run_at => $4)`, [args(id), id, retry, runAt]);
  return rows[0];
}

const answered = (id, kind, row) => note({ id, kind, status: row.status, replayed: row.replayed, result: row.result, error: row.error });

const actions = {
  async step(id) {
    const row = await transaction(async (client) => { await state(client, id); return enqueue(client, id); });
    known.push(id);
    answered(id, 'enqueue', row);
  },
  async plain(id) {
    const ids = ['', '-b', '-c', '-d'].map((tail) => `${id}${tail}`);
    await transaction(async (client) => {
      for (const one of ids) {
        await state(client, one);
        await client.query(`INSERT INTO outbox.operation (operation_id, tool, arguments) VALUES ($1, 'create_ticket', $2) ON CONFLICT DO NOTHING`, [one, args(one)]);
      }
    });
    known.push(...ids);
  },
  async rollback(id) {
    note({ id, kind: 'rolled_back' });  // before: whatever cuts it, it must not have run
    const client = await pool.connect();
    try {
      await client.query('BEGIN');
      await state(client, id);
      await enqueue(client, id);
      await sleep(random.whole(150));
      await client.query('ROLLBACK');
      client.release();
    } catch (error) {
      client.release(true);
      throw error;
    }
  },
  async replay() {
    if (!known.length) return;
    const id = known[Math.max(0, known.length - 1 - random.whole(60))];
    const retry = random.next() < 0.3;
    answered(id, retry ? 'retry' : 'replay', await transaction((client) => enqueue(client, id, { retry })));
  },
  async cancel(id) {
    const later = new Date(Date.now() + random.between(0, 1500));
    await transaction(async (client) => { await state(client, id); return enqueue(client, id, { runAt: later }); });
    await sleep(random.between(0, 400));
    const said = await transaction(async (client) => (await client.query(`SELECT outbox.cancel($1, 'soak') AS said`, [id])).rows[0].said);
    note({ id, kind: 'cancel', said });
  },
};
const weights = { step: 55, plain: 12, rollback: 10, replay: 18, cancel: 5 };

process.stdin.on('end', () => { ending = true; }).resume();
while (!ending) {
  const id = `${name}-${++steps}`;
  const action = weighted(weights, random.next());
  try {
    await actions[action](id);
  } catch (error) {
    if (action !== 'rollback') note({ id, kind: 'error', action, error: error.message, code: error.code });
  }
  await sleep(random.between(10, 110));
}
await pool.end();
process.exit(0);
