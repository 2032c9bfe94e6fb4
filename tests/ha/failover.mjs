// The primary is killed under load and the standby promoted; the daemons find it by themselves.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { configuration, ticketTool } from '../e2e/config.mjs';
import { Program, eventually, freePort, providerKey, run, sleep } from '../e2e/util.mjs';
import { Desk, binary } from '../e2e/world.mjs';
import { check, close, effects, equal } from './report.mjs';
import { Pair } from './servers.mjs';

const total = 400;
const modes = { 7: ['cut'], 13: ['drop'], 17: ['slow'], 19: ['error'] };

class World {
  static async start(options) {
    const world = new World();
    world.dir = mkdtempSync(path.join(os.tmpdir(), 'outboxd-ha-'));
    world.pair = await Pair.start(options);
    world.desk = await Desk.start(path.join(world.dir, 'desk.jsonl'));
    for (let i = 1; i <= total; i++) {
      const posts = Object.entries(modes).find(([n]) => i % n === 0)?.[1];
      if (posts) await world.desk.plan(`op-${i}`, { posts });
    }
    world.env = { PATH: process.env.PATH, HOME: world.dir, LANG: 'C.UTF-8', OUTBOXD_DATABASE: world.pair.dsn };
    equal((await run(binary, ['migrate'], { env: world.env })).code, 0, 'outboxd migrate');
    world.daemons = [];
    return world;
  }

  async daemon() {
    const port = await freePort();
    const tool = ticketTool(this.desk.url, { rate: '35/s' });
    const file = path.join(this.dir, `outboxd-${port}.yaml`);
    writeFileSync(file, JSON.stringify(configuration({ port, tools: { create_ticket: tool }, log: { level: 'warn', format: 'text' } })));
    const daemon = new Program(binary, ['run', '-c', file], { env: this.env });
    this.daemons.push(daemon);
    await eventually('the daemon is ready', async () => (await fetch(`http://127.0.0.1:${port}/readyz`)).status === 200);
  }

  insert(db, first, last) {
    return db.query(
      `INSERT INTO outbox.operation (operation_id, tool, arguments)
       SELECT 'op-' || i, 'create_ticket', jsonb_build_object('title', 'ticket ' || i) FROM generate_series($1::int, $2::int) i
       ON CONFLICT DO NOTHING`, [first, last]);
  }

  async promote() {
    this.pair.primary.kill();
    this.killed = Date.now();
    this.pair.promote();
    this.db = this.pair.standby.client();
  }

  async settled() {
    const count = () => this.db.query('SELECT count(*)::int AS n FROM outbox.outcome');
    await eventually(`${total} operations are final`, async () => (await count()).rows[0].n === total, 60_000);
    this.took = Date.now() - this.killed;
  }

  async checks(kind) {
    const { db, desk } = this;
    const one = async (sql) => (await db.query(sql)).rows[0].n;
    await check(`${kind}: every operation ended, and as succeeded`, async () => {
      equal(await one(`SELECT count(*)::int AS n FROM outbox.operations WHERE status = 'succeeded'`), total);
      return `${total}, ${this.took} ms after the kill`;
    });
    await check(`${kind}: every effect once`, async () => {
      const { done, twice } = await effects(desk);
      equal(done, total, `${done} of ${total} had an effect`);
      equal(twice, 0, `${twice} had two`);
      return `${done}, none twice`;
    });
    await check(`${kind}: what was open at the change was looked up before it was attempted again`, async () => {
      const { rows } = await db.query(`SELECT operation_id AS id, min(at) AS at FROM outbox.event WHERE kind = 'timeline' GROUP BY 1`);
      const { requests } = await desk.state();
      const { rows: reports } = await db.query(`SELECT DISTINCT operation_id AS id FROM outbox.event WHERE kind = 'late_result'`);
      const told = new Set(reports.map((r) => r.id));
      let found = 0;
      let reported = 0;
      for (const { id, at } of rows) {
        const after = requests.filter((r) => r.key === providerKey(id) && r.at > at.getTime());
        // Whose worker reported to the new primary what it had done needs no look-up.
        if (after.length === 0 && told.has(id)) {
          reported++;
          continue;
        }
        equal(after[0]?.method, 'GET', `${id}: ${after[0]?.method} first`);
        if (!after.some((r) => r.method === 'POST')) found++;
      }
      if (rows.length === 0) throw new Error('nothing was open at the change');
      const posts = new Set(requests.filter((r) => r.method === 'POST' && r.at > this.killed).map((r) => r.key));
      return `${rows.length - reported} of ${rows.length} looked up (${reported} reported by their worker), ${found} were done already, ${posts.size} sent afterwards`;
    });
    await check(`${kind}: each became unknown once, none needs a person`, async () => {
      const list = async (sql) => (await db.query(sql)).rows.map((r) => r.what).join('; ');
      equal(await list(`SELECT operation_id || ': ' || count(*) AS what FROM outbox.event WHERE kind = 'timeline' GROUP BY operation_id HAVING count(*) > 1`), '');
      equal(await list(`SELECT o.operation_id || ' ' || o.attention || ': ' || (SELECT string_agg(e.kind || ' ' || e.detail, ', ' ORDER BY e.id) FROM outbox.event e WHERE e.operation_id = o.operation_id) AS what
        FROM outbox.operations o WHERE o.attention IS NOT NULL`), '');
    });
    await check(`${kind}: the same daemons all along`, () => {
      for (const daemon of this.daemons) equal(daemon.ended, null, 'a daemon ended');
    });
  }

  async close(failed) {
    await this.db?.end();
    for (const daemon of this.daemons) {
      if (!daemon.ended) await daemon.stop('SIGKILL');
      if (failed) console.error(daemon.output.slice(-5000));
    }
    await this.desk.stop();
    this.pair.stop();
    rmSync(this.dir, { recursive: true, force: true });
  }
}

async function story(kind, options, body) {
  const world = await World.start(options);
  let failed = true;
  await check(`${kind}: failed over under load`, async () => {
    await world.daemon();
    await world.daemon();
    await body(world);
    await world.settled();
    failed = false;
  });
  if (!failed) await world.checks(kind);
  await world.close(failed || process.exitCode);
}

// What a commit acknowledged is on the standby: planners go on with what they were told.
await story('synchronous', { synchronous: true }, async (w) => {
  let database = w.pair.primary.client();
  const told = new Set();
  const planner = (async () => {
    for (let i = 1; i <= total; i += 4) {
      await eventually(`op-${i} is filed`, async () => {
        await w.insert(database, i, i + 3);
        return true;
      }, 60_000);
      for (let k = 0; k < 4; k++) told.add(`op-${i + k}`);
      await sleep(35);
    }
  })();
  await sleep(1800);
  // More than the daemons' rates get done at once, so that much is open when the primary dies.
  await w.insert(database, total - 119, total);
  await sleep(400);
  const before = new Set(told);
  const old = database;
  await w.promote();
  database = w.pair.standby.client();
  await check('synchronous: no intent that was acknowledged is lost', async () => {
    const { rows } = await w.db.query('SELECT operation_id FROM outbox.operation');
    const there = new Set(rows.map((r) => r.operation_id));
    equal([...before].filter((id) => !there.has(id)).length, 0);
    return `${before.size} acknowledged`;
  });
  await planner;
  await Promise.all([old.end(), database.end()]);
});

// The standby has all intents and then hears nothing more: leases and outcomes of a second are lost.
await story('asynchronous', { synchronous: false }, async (w) => {
  const db = w.pair.primary.client();
  await w.insert(db, 1, total);
  await sleep(1500);
  await w.pair.caughtUp();
  w.pair.gate.shut();
  await sleep(1200);
  const ended = async (from) => (await from.query('SELECT count(*)::int AS n FROM outbox.outcome')).rows[0].n;
  const before = await ended(db);
  await db.end();
  await w.promote();
  await check('asynchronous: the end of the old timeline is lost, as such a standby may', async () => {
    const after = await ended(w.db);
    if (after >= before) throw new Error('nothing was lost, so nothing was tried');
    return `${before} had ended, ${after} are recorded`;
  });
});
close();
