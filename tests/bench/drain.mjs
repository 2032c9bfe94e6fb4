// (a) drain of queued no-ops, (e) the same with many more queued, (g) what one operation costs.
// Rate: operations between the first handler's start and the moment when nothing is left in the
// database; where more is queued than `expect`, when the last of `expect` handlers ended.
import { eventually, sleep } from '../e2e/util.mjs';
import { contestants, prototype } from './contestants.mjs';
import { now } from './time.mjs';

const us = (value, count) => Number((value / count).toFixed(1));

export async function drainOnce(bench, contestant, rows, expect, task = { mode: 'noop', concurrency: 512 }) {
  const database = await bench.database(contestant, rows);
  const meter = await bench.meter(database);
  const worker = await contestant.start(bench, database, { ...task, expect });
  try {
    let end = await worker.handled();
    let looks = 0;
    if (rows === expect) {
      const db = await bench.client(database);
      for (; (await db.query(contestant.left)).rows[0].left; looks++) {
        if (now() - end > 120_000) throw new Error(`${contestant.name}: not all was recorded`);
        await sleep(3);
      }
      end = now();
      await db.end();
    }
    const first = await worker.first();
    const cpu = worker.cpu();
    await worker.stop();
    await sleep(1200);  // what the sessions counted reaches the statistics when they end
    const server = await meter();
    return {
      rate: Math.round(expect / ((end - first) / 1000)), seconds: Number(((end - first) / 1000).toFixed(2)),
      database_us: us(server.cpu, expect), worker_us: us(cpu, expect), wal: Math.round(server.wal / expect),
      commits: Number((Math.max(0, server.commits - looks - 2) / expect).toFixed(4)),
    };
  } finally {
    await worker.stop();
    await bench.drop(database);
  }
}

// With `sessions` of the prototype, each on a lane of its own.
async function prototypeOnce(bench, rows, sessions) {
  const database = await bench.database(prototype, rows);
  const clients = await Promise.all(Array.from({ length: sessions }, () => bench.client(database)));
  try {
    const meter = await bench.meter(database);
    const began = now();
    await Promise.all(clients.map(async (client, i) => {
      for (const lane of sessions === 1 ? ['tool0', 'tool1'] : [`tool${i}`]) await client.query('CALL floor.drain($1, 500)', [lane]);
    }));
    const seconds = (now() - began) / 1000;
    const server = await meter();
    return { rate: Math.round(rows / seconds), database_us: us(server.cpu, rows), wal: Math.round(server.wal / rows) };
  } finally {
    for (const client of clients) await client.end();
    await bench.drop(database);
  }
}

export async function drain(bench, { rounds, rows, who }) {
  for (let round = 1; round <= rounds; round++) {
    const turns = contestants.filter((c) => who(c.name));
    if (round % 2 === 0) turns.reverse();
    for (const contestant of turns) bench.record('drain', contestant.name, round, await drainOnce(bench, contestant, rows, rows));
    if (who('prototype')) {
      for (const sessions of [1, 2]) bench.record('drain', `prototype, ${sessions} session${sessions > 1 ? 's' : ''}`, round, await prototypeOnce(bench, rows, sessions));
    }
  }
}

export async function backlog(bench, { rounds, rows, expect, who }) {
  for (let round = 1; round <= rounds; round++) {
    for (const contestant of contestants.filter((c) => who(c.name))) {
      bench.record('backlog', contestant.name, round, await drainOnce(bench, contestant, rows, expect));
    }
  }
}

// (d) the same through HTTP, against a server that can wait.
export async function http(bench, { rounds, rows, who, clientAlone }) {
  for (const [delay, concurrency] of [[0, 64], [20, 256]]) {
    const stub = await bench.stub(delay);
    try {
      const task = { mode: 'http', concurrency, url: stub.url };
      for (let round = 1; round <= rounds; round++) {
        const turns = contestants.filter((c) => who(c.name));
        if (round % 2 === 0) turns.reverse();
        for (const contestant of turns) bench.record(`http ${delay} ms`, contestant.name, round, await drainOnce(bench, contestant, rows, rows, task));
        if (who('client')) {
          const worker = clientAlone.start(bench, 'postgres', { ...task, expect: rows });
          const [end, first] = [await worker.handled(), await worker.first()];
          bench.record(`http ${delay} ms`, 'client alone', round, { rate: Math.round(rows / ((end - first) / 1000)), worker_us: us(worker.cpu(), rows) });
          await worker.stop();
        }
      }
    } finally {
      await stub.stop();
    }
  }
}

// (h) the daemon's memory: with 1,000 attempts in flight, and over many operations.
export async function memory(bench, { rows, outboxd, rss }) {
  const stub = await bench.stub(2000);
  const flying = await bench.database(outboxd, 5000);
  const worker = await outboxd.start(bench, flying, { mode: 'http', concurrency: 1000, url: stub.url, expect: 5000 });
  await eventually('1,000 are in flight', async () => (await worker.metrics())('outboxd_in_flight') >= 990, 60_000);
  await sleep(3000);
  bench.record('memory', 'outboxd', 1, { in_flight: (await worker.metrics())('outboxd_in_flight'), mib_1000_in_flight: rss(worker.program.pid) });
  await worker.stop();
  await stub.stop();
  await bench.drop(flying);

  const many = await bench.database(outboxd, rows);
  const draining = await outboxd.start(bench, many, { mode: 'noop', concurrency: 512, expect: rows });
  const samples = [];
  let done = false;
  const handled = draining.handled().then(() => { done = true; });
  while (!done) {
    samples.push(rss(draining.program.pid));
    await Promise.race([handled, sleep(250)]);
  }
  await handled;
  const part = (from, to) => Math.max(...samples.slice(Math.floor(from * samples.length), Math.max(Math.ceil(to * samples.length), 1)));
  bench.record('memory', 'outboxd', 1, { rows, mib_first_tenth: part(0, 0.1), mib_last_tenth: part(0.9, 1), mib_most: Math.max(...samples) });
  await draining.stop();
  await bench.drop(many);
}
