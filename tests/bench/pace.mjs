// (c) pickup latency at a steady pace, (f) the same while somebody's snapshot is pinned, (i) idle.
// Pickup: from the acknowledgement of the planner's commit until the handler starts. Ours is seen in
// the line that its tool writes, so a pipe and this process's event loop are part of it.
import { sleep } from '../e2e/util.mjs';
import { contestants } from './contestants.mjs';
import { clusterCpu, processCpu } from './cpu.mjs';
import { now } from './time.mjs';

const part = (sorted, p) => sorted.length === 0 ? undefined : Number(sorted[Math.min(sorted.length - 1, Math.floor(p * sorted.length))].toFixed(2));
const spread = (values) => {
  const sorted = values.toSorted((a, b) => a - b);
  return { n: sorted.length, p50: part(sorted, 0.5), p99: part(sorted, 0.99), max: part(sorted, 1) };
};

async function paceOnce(bench, contestant, perSecond, seconds, { pinned = false, window = seconds } = {}) {
  const database = await bench.database(contestant, 0);
  const seen = new Map();
  const worker = await contestant.start(bench, database, { mode: 'pace', concurrency: 256, expect: -1 },
    (pickups) => { for (const [i, at] of pickups) seen.set(i, at); });
  const feed = await contestant.feed(bench, database);
  const reader = await bench.client(database);
  try {
    await worker.ready();
    await sleep(1500);  // asleep, if it sleeps
    if (pinned) await reader.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class');
    // Ours alone: how many leases there were up to now, and how long they took.
    const leases = async () => {
      const value = await worker.metrics?.();
      return value && ['count', 'sum'].map((what) => value(`outboxd_database_statement_seconds_${what}`, 'lease_operations'));
    };
    const marks = !pinned ? [] : [leases(), ...[window, seconds - window, seconds].map((at) => sleep(at * 1000).then(leases).catch(() => undefined))];
    const [began, before] = [now(), clusterCpu(bench.cluster.pid)];
    const acknowledged = [];
    const sends = [];
    let late = 0;
    for (let i = 0; i < perSecond * seconds; i++) {
      const due = began + (1000 * i) / perSecond;
      await sleep(Math.max(0, due - now()));
      late = Math.max(late, now() - due);
      sends.push(feed.send(i).then(() => { acknowledged[i] = now(); }));
    }
    await Promise.all(sends);
    const cpu = (clusterCpu(bench.cluster.pid) - before) / (now() - began) / 10;
    for (let waited = 0; seen.size < acknowledged.length && waited < 200; waited++) await sleep(100);
    const between = (from, to) => spread(acknowledged.map((at, i) => [at, seen.get(i)])
      .filter(([at, start]) => start !== undefined && at >= began + from * 1000 && at < began + to * 1000)
      .map(([at, start]) => Math.max(0, start - at)));
    const figures = { database_cpu_percent: Number(cpu.toFixed(1)), late_ms: Math.round(late), missing: acknowledged.length - seen.size };
    if (!pinned) return { ...between(0, seconds + 60), ...figures };
    const [first, last] = [between(0, window), between(seconds - window, seconds + 60)];
    const other = await bench.client(database);
    const { rows: [{ dead }] } = await other.query('SELECT sum(n_dead_tup)::int AS dead FROM pg_stat_user_tables');
    await other.end();
    const [a, b, c, d] = await Promise.all(marks);
    const mean = (from, to) => Number((1000 * (to[1] - from[1]) / (to[0] - from[0])).toFixed(2));
    return {
      first_p50: first.p50, first_p99: first.p99, last_p50: last.p50, last_p99: last.p99, dead, ...figures,
      ...(a && b && c && d && { lease_ms_first: mean(a, b), lease_ms_last: mean(c, d) }),
    };
  } finally {
    await reader.end();
    await worker.stop();
    await feed.stop();
    await bench.drop(database);
  }
}

export async function pickup(bench, { rounds, seconds, who, paces }) {
  for (let round = 1; round <= rounds; round++) {
    const turns = contestants.filter((c) => who(c.name));
    if (round % 2 === 0) turns.reverse();
    for (const contestant of turns) {
      for (const perSecond of paces) {
        bench.record(`pickup ${perSecond}`, contestant.name, round, await paceOnce(bench, contestant, perSecond, perSecond < 20 ? 2 * seconds : seconds));
      }
    }
  }
}

export async function pinned(bench, { seconds, others, window, who }) {
  for (const contestant of contestants.filter((c) => who(c.name))) {
    const long = contestant.name === 'outboxd' ? seconds : seconds * others;
    bench.record('pinned', contestant.name, 1, { seconds: long, ...await paceOnce(bench, contestant, 500, long, { pinned: true, window: Math.min(window, long / 2) }) });
  }
}

export async function idle(bench, { seconds, who }) {
  for (const contestant of contestants.filter((c) => who(c.name))) {
    const database = await bench.database(contestant, 0);
    const worker = await contestant.start(bench, database, { mode: 'pace', concurrency: 256, expect: -1 });
    try {
      await worker.ready();
      await sleep(seconds < 5 ? 500 : 4000);
      const db = await bench.client('postgres');
      await db.query('CREATE EXTENSION IF NOT EXISTS pg_stat_statements');
      const statements = async () => Number((await db.query(`SELECT coalesce(sum(s.calls), 0) AS n FROM pg_stat_statements s
        JOIN pg_database d ON d.oid = s.dbid WHERE d.datname = $1`, [database])).rows[0].n);
      const pid = worker.program.pid;
      const [from, calls, server, own] = [now(), await statements(), clusterCpu(bench.cluster.pid), processCpu(pid)];
      await sleep(seconds * 1000);
      const took = (now() - from) / 1000;
      const percent = (us) => Number((us / took / 1e4).toFixed(2));
      bench.record('idle', contestant.name, 1, {
        database_cpu_percent: percent(clusterCpu(bench.cluster.pid) - server), worker_cpu_percent: percent(processCpu(pid) - own),
        statements_per_second: Number(((await statements() - calls) / took).toFixed(2)),
      });
      await db.end();
    } finally {
      await worker.stop();
      await bench.drop(database);
    }
  }
}
