// What was measured, as tables for docs/benchmarks.md: medians over the rounds.
import { contestants, titleOf } from './contestants.mjs';

const table = (head, rows) => [
  `| ${head.join(' | ')} |`, `|${head.map(() => '---').join('|')}|`, ...rows.map((row) => `| ${row.map((x) => x ?? '').join(' | ')} |`), '',
].join('\n');
const grouped = (value) => value === undefined ? undefined : value.toLocaleString('en-US');

export function report(bench, { size, rounds, version, machine, took }) {
  const names = (experiment) => {
    const found = new Set(bench.records.filter((r) => r.experiment === experiment).map((r) => r.contestant));
    return [...contestants.map((c) => c.name).filter((n) => found.delete(n)), ...found];
  };
  const of = (experiment, name, key) => bench.of(experiment, name, key);
  const range = (experiment, name) => {
    const rates = bench.records.filter((r) => r.experiment === experiment && r.contestant === name).map((r) => r.rate);
    return `${grouped(Math.min(...rates))} to ${grouped(Math.max(...rates))}`;
  };
  const share = (experiment, name, base) => {
    const [a, b] = [of(experiment, name, 'rate'), of(experiment, base, 'rate')];
    return a && b ? (a / b).toFixed(2) : undefined;
  };
  const out = [`${version}; ${machine}; ${size}, ${rounds} rounds; load ${Math.min(...bench.loads)} to ${Math.max(...bench.loads)}; ${Object.entries(took).map(([n, s]) => `${n} ${s} s`).join(', ')}\n`];
  const section = (title, experiment, head, row) => {
    const found = names(experiment);
    if (found.length > 0) out.push(`**${title}**\n`, table(['', ...head], found.map((name) => [titleOf(name), ...row(name)])));
  };

  section('Drain of queued no-ops', 'drain',
    ['operations/s', 'range', '÷ outboxd', 'database µs', 'worker µs', 'WAL bytes', 'commits'],
    (n) => [grouped(of('drain', n, 'rate')), range('drain', n), share('drain', n, 'outboxd'), of('drain', n, 'database_us'), of('drain', n, 'worker_us'), of('drain', n, 'wal'), of('drain', n, 'commits')]);
  section('The same with many more queued', 'backlog',
    ['operations/s', '÷ own rate above', 'database µs', 'worker µs'],
    (n) => [grouped(of('backlog', n, 'rate')), of('drain', n, 'rate') && (of('backlog', n, 'rate') / of('drain', n, 'rate')).toFixed(2), of('backlog', n, 'database_us'), of('backlog', n, 'worker_us')]);
  for (const delay of [0, 20]) {
    const experiment = `http ${delay} ms`;
    section(`HTTP tool, server delay ${delay} ms, concurrency ${delay ? 256 : 64}`, experiment,
      ['operations/s', 'range', '÷ outboxd', 'database µs', 'worker µs'],
      (n) => [grouped(of(experiment, n, 'rate')), range(experiment, n), share(experiment, n, 'outboxd'), of(experiment, n, 'database_us'), of(experiment, n, 'worker_us')]);
  }
  for (const perSecond of [5, 20, 500]) {
    const experiment = `pickup ${perSecond}`;
    section(`Pickup at ${perSecond} per second, ms`, experiment, ['p50', 'p99', 'max', 'database, % of a core'],
      (n) => [of(experiment, n, 'p50'), of(experiment, n, 'p99'), of(experiment, n, 'max'), of(experiment, n, 'database_cpu_percent')]);
  }
  section('A pinned snapshot, 500 per second: pickup, ms', 'pinned',
    ['seconds', 'p50 first', 'p99 first', 'p50 last', 'p99 last', 'lease ms first', 'last', 'dead rows', 'database, % of a core', 'never picked up'],
    (n) => ['seconds', 'first_p50', 'first_p99', 'last_p50', 'last_p99', 'lease_ms_first', 'lease_ms_last', 'dead', 'database_cpu_percent', 'missing'].map((key) => of('pinned', n, key)));
  section('Memory, MiB', 'memory', ['1,000 in flight', 'first tenth of a drain', 'last tenth', 'most', 'operations'],
    (n) => ['mib_1000_in_flight', 'mib_first_tenth', 'mib_last_tenth', 'mib_most', 'rows'].map((key) => of('memory', n, key)));
  section('Idle', 'idle', ['statements/s', 'database, % of a core', 'worker, % of a core'],
    (n) => ['statements_per_second', 'database_cpu_percent', 'worker_cpu_percent'].map((key) => of('idle', n, key)));
  section('With so many finished operations behind it', 'growth',
    ['inserts/s', 'insert, database µs', 'drained/s', 'drain, database µs', 'index of ids, MiB', 'operation, MiB', 'outcome, MiB'],
    (n) => ['insert_tps', 'insert_us', 'drain_rate', 'database_us', 'id_index_mib', 'operation_mib', 'outcome_mib'].map((key) => grouped(of('growth', n, key))));
  for (const experiment of new Set(bench.records.map((r) => r.experiment).filter((e) => e.startsWith('planner')))) {
    section(`Planner's transaction${experiment.slice('planner'.length)}`, experiment, ['transactions/s', 'of bare', 'database µs', 'WAL bytes'],
      (n) => [grouped(Math.round(of(experiment, n, 'tps'))), of(experiment, n, 'ratio')?.toFixed(2), Math.round(of(experiment, n, 'cpu')), Math.round(of(experiment, n, 'wal'))]);
  }
  return out.join('\n');
}
