// The whole comparison in one run: the same machine, the same private Postgres with fsync on, the
// contestants in turn within each round.
//
//   node run.mjs [--quick | --smoke] [--only drain,planner,…] [--who outboxd,graphile,…] [--rounds N] [--out FILE]
// experiments: drain planner pickup http backlog pinned memory idle, and, where it is named, growth
// [--rows N]. --smoke: does it still work?
// writes a JSON line per figure and, at the end, tables for docs/benchmarks.md. Node 22 or newer; ./dev
// bench brings one.
import { createWriteStream, mkdirSync, readFileSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import os from 'node:os';
import path from 'node:path';
import { Program } from '../e2e/util.mjs';
import { Bench } from './bench.mjs';
import { clientAlone, outboxd } from './contestants.mjs';
import { backlog, drain, http, memory } from './drain.mjs';
import { growth } from './growth.mjs';
import { idle, pickup, pinned } from './pace.mjs';
import { report } from './report.mjs';

const option = (name) => {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? undefined : process.argv[at + 1];
};
const size = process.argv.includes('--smoke') ? 'smoke' : process.argv.includes('--quick') ? 'quick' : 'full';
const at = (smoke, quick, full) => ({ smoke, quick, full })[size];
const listed = (name) => option(name)?.split(',');
const [only, people] = [listed('only'), listed('who')];
const who = (name) => !people || people.includes(name);
const rounds = Number(option('rounds') ?? at(1, 2, 3));
const out = option('out') ?? `build/bench/${new Date().toISOString().slice(0, 16).replace(':', '')}-${size}`;
mkdirSync(path.dirname(out), { recursive: true });
const lines = createWriteStream(`${out}.jsonl`);
const emit = (record) => {
  const line = JSON.stringify(record);
  lines.write(`${line}\n`);
  console.log(line);
};
const rss = (pid) => Number((Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1]) / 1024).toFixed(1));

// planner.mjs has a cluster of its own; its lines become ours.
async function planner(bench) {
  const program = new Program(process.execPath, [new URL('planner.mjs', import.meta.url).pathname, '--rounds', String(rounds),
    '--seconds', String(at(1, 1, 2)), '--peers', ...(size === 'full' ? [] : ['--short'])]);
  const { code } = await program.end;
  if (code !== 0) throw new Error(program.output.slice(-3000));
  for (const line of program.stdout.split('\n').filter((l) => l.startsWith('{'))) {
    const { context, kind, name, round, ...figures } = JSON.parse(line);
    bench.record(`planner, ${context}, ${kind} ids`, name, round, figures);
  }
}

// Sizes: about 20 minutes in full, 6 in quick form, where some take part in the longest ones only.
const some = (name) => who(name) && (size === 'full' || only || ['outboxd', 'graphile'].includes(name));
const experiments = {
  drain: (bench) => drain(bench, { rounds, rows: at(2000, 50_000, 50_000), who }),
  planner: (bench) => size === 'smoke' && !only ? undefined : planner(bench),
  pickup: (bench) => pickup(bench, { rounds: at(1, 1, rounds), seconds: at(1, 3, 4), who, paces: only ? [5, 20, 500] : [5, 500] }),
  http: (bench) => http(bench, { rounds: at(1, 1, rounds), rows: at(1000, 10_000, 20_000), who, clientAlone }),
  backlog: (bench) => backlog(bench, { rounds: at(1, 1, rounds), rows: at(5000, 300_000, 1_000_000), expect: at(1000, 50_000, 50_000), who }),
  // The peers for half as long, which can only be in their favour; alone, as long as ours.
  pinned: (bench) => pinned(bench, { seconds: at(2, 20, 120), others: only ? 1 : 0.5, window: at(1, 5, 15), who: some }),
  memory: (bench) => memory(bench, { rows: at(5000, 50_000, 1_000_000), outboxd, rss }),
  idle: (bench) => idle(bench, { seconds: at(1, 5, 15), who: some }),
  growth: (bench) => only ? growth(bench, { rows: Number(option('rows') ?? at(20_000, 200_000, 10_000_000)), seconds: at(1, 5, 10) }) : undefined,
};
for (const name of only ?? []) {
  if (!experiments[name]) throw new Error(`no experiment '${name}'; there are ${Object.keys(experiments).join(', ')}`);
}

const bench = await Bench.start(emit);
const took = {};
let failed = false;
try {
  for (const [name, experiment] of Object.entries(experiments)) {
    if (only && !only.includes(name)) continue;
    const began = Date.now();
    try {
      await experiment(bench);
    } catch (error) {
      failed = true;  // the others' figures are worth having
      console.error(`${name}: ${error.stack}`);
    }
    took[name] = Math.round((Date.now() - began) / 1000);
    await bench.drop('none', name !== 'drain' || (only && !only.includes('http')));
  }
} finally {
  bench.stop();
}
const version = execFileSync(bench.binary, ['--version']).toString().trim();
const text = report(bench, {
  size, rounds, version,
  machine: `${os.cpus().length} cores, ${os.cpus()[0].model.trim()}, ${Math.round(os.totalmem() / 2 ** 30)} GiB`,
  took,
});
console.log(text);
const table = createWriteStream(`${out}.md`);
table.end(text);
lines.end();
console.log(`\n${out}.jsonl and ${out}.md`);
process.exitCode = failed ? 1 : 0;
