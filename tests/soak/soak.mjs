// Everything at once, from one seed: `node soak.mjs [--seconds N] [--seed S] [--keep]`. Three daemons
// and four planners on a Postgres that crashes, with a hostile ticket service, gates that cut and
// hold on both sides, SIGKILL and SIGSTOP. Then quiet, then the check.
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { Cluster } from '../e2e/cluster.mjs';
import { Program, eventually, run, sleep } from '../e2e/util.mjs';
import { Chaos } from './chaos.mjs';
import { check } from './check.mjs';
import { fleet, times } from './fleet.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const { values } = parseArgs({
  options: { seconds: { type: 'string', default: '300' }, seed: { type: 'string', default: '1' }, keep: { type: 'boolean', default: false } },
});
const seconds = Number(values.seconds);
if (!(seconds > 0)) throw new Error('--seconds takes a number');
const seed = values.seed;
const binary = path.resolve(process.env.OUTBOXD ?? path.join(here, '../../build/release/outboxd'));
const dir = mkdtempSync(path.join(os.tmpdir(), 'outboxd-soak-'));
const quietPatience = 120_000;
console.log(`soak: ${seconds} s, seed ${seed}, logs in ${dir}`);

const cluster = await Cluster.start();
const database = await cluster.createDatabase();
const db = cluster.pool(database);
const own = [];
let daemons = [];

const all = async (sql) => eventually('the database answers', async () => (await db.query(sql)).rows, 30_000);
const service = {
  async start() {
    this.program = new Program(process.execPath, [path.join(here, 'service.mjs'), seed, path.join(dir, 'effects.jsonl'), String(times.lag)]);
    own.push(this.program);
    Object.assign(this, JSON.parse(await eventually('the service listens', () => this.program.stdout.includes('\n') && this.program.stdout)));
  },
  ask: async (name) => (await fetch(`http://127.0.0.1:${service.control}/${name}`, { signal: AbortSignal.timeout(20_000) })).json(),
};

const journalOf = (name) => path.join(dir, `${name}.jsonl`);
function planner(name) {
  const program = new Program(process.execPath, [path.join(here, 'planner.mjs'), seed, name, String(cluster.port), database, journalOf(name)]);
  own.push(program);
  return { name, program };
}

async function prepare() {
  const migrated = await run(binary, ['migrate'], { env: { PATH: process.env.PATH, OUTBOXD_DATABASE: cluster.dsn(database) } });
  if (migrated.code !== 0) throw new Error(`outboxd migrate: ${migrated.text}`);
  await db.query(readFileSync(path.join(here, 'audit.sql'), 'utf8'));
  await service.start();
  mkdirSync(path.join(dir, 'daemons'));
  daemons = await fleet(3, path.join(dir, 'daemons'), binary, cluster, database, service.port);
  await eventually('the tools are published', async () => (await db.query('SELECT 1 FROM outbox.tool')).rowCount === 1);
}

async function quiet(planners) {
  for (const planner of planners) planner.died = planner.program.ended && planner.program.output.slice(-2000);
  for (const { program } of planners) program.child.stdin.end();
  await service.ask('calm');
  await Promise.all(planners.map(({ name, program }) => Promise.race([
    program.end, sleep(40_000).then(() => { throw new Error(`planner ${name} does not end`); })])));
  let open;
  await eventually('all is settled', async () => {
    open = (await db.query(`SELECT status, count(*)::int AS n, max(error->>'message') AS error FROM outbox.queue WHERE attention IS NULL GROUP BY 1`)).rows;
    return open.length === 0;
  }, quietPatience).catch((error) => console.log(`${error.message}: ${JSON.stringify(open)}`));  // the check says it
}

async function evidence(planners, chaos) {
  const lines = (file) => { try { return readFileSync(file, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line)); } catch { return []; } };
  return {
    seconds, chaos: chaos.counts,
    intents: (await all('SELECT id FROM planner.intent')).map((row) => row.id),
    operations: await all('SELECT operation_id, seq, status, attempts, attention, result FROM outbox.operations'),
    audit: await all('SELECT * FROM planner.audit ORDER BY seq, id'),
    events: await all('SELECT kind, count(*)::int AS n FROM outbox.event GROUP BY 1'),
    state: await service.ask('state'),
    journals: planners.flatMap(({ name }) => lines(journalOf(name))),
    daemons, planners,
  };
}

function report({ results, counts }, chaos, state) {
  const cuts = daemons.reduce((sum, d) => sum + d.database.cuts, daemons[0].service.cuts);
  console.log(`did      ${JSON.stringify({ ...chaos.counts, connections_cut: cuts })}`);
  console.log(`service  ${JSON.stringify({ ...state.counts, longest_stall_ms: state.stall })}`);
  console.log(`saw      ${JSON.stringify(counts)}`);
  for (const { name, wrong } of results) {
    if (wrong.length === 0) { console.log(`ok   ${name}`); continue; }
    console.log(`FAIL ${name}: ${wrong.length}`);
    for (const one of wrong.slice(0, 10)) console.log(`     ${one}`);
  }
  const failed = results.filter((r) => r.wrong.length > 0).length;
  console.log(`${results.length - failed} passed, ${failed} failed`);
  return failed;
}

async function end() {
  for (const daemon of daemons) {
    daemon.thaw();
    await daemon.kill();
    daemon.database.close();
    daemon.service.close();
  }
  for (const program of own) if (!program.ended) await program.stop('SIGKILL');
  await db.end();
  cluster.stop();
}

let failed = 1;
try {
  await prepare();
  const planners = [1, 2, 3, 4].map((i) => planner(`p${i}`));
  const chaos = new Chaos(seed, daemons, cluster);
  await chaos.run(Date.now() + seconds * 1000);
  await quiet(planners);
  const found = await evidence(planners, chaos);
  failed = report(check(found), chaos, found.state);
} catch (error) {
  console.log(`FAIL soak: ${error.stack}`);
} finally {
  await end();
  if (failed === 0 && !values.keep) rmSync(dir, { recursive: true, force: true });
  else console.log(`seed ${seed}; logs, journals and effects stay in ${dir}`);
}
process.exit(failed ? 1 : 0);
