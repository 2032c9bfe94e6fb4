// The first figure: operations per second and database CPU per operation, through `log` (nothing
// outside) and through `http` against nginx on this machine. Operations are enqueued by plain
// multi-row inserts while no daemon runs, then drained by one daemon. Everything shares the cores.
//
//   node first.mjs [--operations 50000] [--rounds 3]      prints a JSON line per round and a table
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Cluster } from '../e2e/cluster.mjs';
import { ticketTool } from '../e2e/config.mjs';
import { Program, eventually, freePort, run } from '../e2e/util.mjs';
import { clusterCpu, processCpu } from './cpu.mjs';

const flag = (name, fallback) => {
  const at = process.argv.indexOf(`--${name}`);
  return at < 0 ? fallback : Number(process.argv[at + 1]);
};
const operations = flag('operations', 50_000);
const rounds = flag('rounds', 3);
const binary = path.resolve(process.env.OUTBOXD ?? 'build/release/outboxd');
const dir = mkdtempSync(path.join(os.tmpdir(), 'outboxd-bench-'));

async function startNginx() {
  const port = await freePort();
  for (const name of ['logs', 'tmp']) mkdirSync(path.join(dir, name), { recursive: true });
  const file = path.join(dir, 'nginx.conf');
  writeFileSync(file, `worker_processes 1;
daemon off;
pid ${dir}/nginx.pid;
error_log ${dir}/logs/error.log;
events { worker_connections 1024; }
http {
  access_log off;
  keepalive_requests 1000000;
  client_body_temp_path ${dir}/tmp/body;
  proxy_temp_path ${dir}/tmp/proxy;
  fastcgi_temp_path ${dir}/tmp/fastcgi;
  uwsgi_temp_path ${dir}/tmp/uwsgi;
  scgi_temp_path ${dir}/tmp/scgi;
  server {
    listen 127.0.0.1:${port};
    default_type application/json;
    location /tickets { return 201 '{"id": "T-1"}'; }
  }
}
`);
  const nginx = new Program('nginx', ['-p', dir, '-c', file]);
  nginx.url = `http://127.0.0.1:${port}`;
  await eventually('nginx answers', async () => {
    if (nginx.ended) throw new Error(nginx.output);
    return (await fetch(`${nginx.url}/tickets`)).status === 201;
  }, 5000);
  return nginx;
}

async function round(cluster, name, tool, number) {
  const database = await cluster.createDatabase();
  const db = cluster.pool(database);
  const port = await freePort();
  const file = path.join(dir, `${name}.yaml`);
  writeFileSync(file, JSON.stringify({
    version: 1,
    database: { dsn: cluster.dsn(database) },
    admin: { listen: `127.0.0.1:${port}` },
    log: { level: 'warn', format: 'json' },
    worker: { name: 'bench', concurrency: 256 },
    tools: { [name]: tool },
  }));
  const migrated = await run(binary, ['migrate', '--database', cluster.dsn(database)], {});
  if (migrated.code !== 0) throw new Error(migrated.text);

  const filing = performance.now();
  for (let from = 1; from <= operations; from += 1000) {
    await db.query(`INSERT INTO outbox.operation (operation_id, tool, arguments)
      SELECT 'op-' || i, $1, jsonb_build_object('title', 'ticket ' || i) FROM generate_series($2::int, $3::int) AS i`,
      [name, from, Math.min(from + 999, operations)]);
  }
  const filed = performance.now() - filing;

  const before = clusterCpu(cluster.pid);
  const daemon = new Program(binary, ['run', '-c', file]);
  const settled = async () => {
    if (daemon.ended) throw new Error(`the daemon ended: ${daemon.output.slice(-2000)}`);
    return (await db.query('SELECT count(*)::int AS n FROM outbox.queue')).rows[0].n === 0;
  };
  // Asked seldom: counting the queue is work for the same database.
  for (let waited = 0; !(await settled()); waited++) {
    if (waited > 1200) throw new Error(`${name}: not drained within 10 min`);
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  const daemonCpu = processCpu(daemon.pid);
  const database_cpu = clusterCpu(cluster.pid) - before;
  await daemon.stop();
  const { rows: [times] } = await db.query(`SELECT count(*)::int AS done, count(*) FILTER (WHERE outcome <> 'succeeded')::int AS bad,
    extract(epoch FROM max(finished_at) - min(started_at))::float8 AS seconds FROM outbox.outcome`);
  await db.end();
  if (times.done !== operations || times.bad) throw new Error(`${name}: ${JSON.stringify(times)}`);
  const result = {
    tool: name, round: number, operations, seconds: Number(times.seconds.toFixed(2)),
    operations_per_second: Math.round(operations / times.seconds),
    database_cpu_us_per_operation: Number((database_cpu / operations).toFixed(1)),
    daemon_cpu_us_per_operation: Number((daemonCpu / operations).toFixed(1)),
    inserts_per_second: Math.round(operations / (filed / 1000)),
  };
  console.log(JSON.stringify(result));
  return result;
}

const cluster = await Cluster.start();
const nginx = await startNginx();
const results = [];
try {
  const http = ticketTool(nginx.url);
  for (let i = 1; i <= rounds; i++) {
    results.push(await round(cluster, 'log', { description: 'writes a line', effect: 'read', execute: { type: 'log' } }, i));
    results.push(await round(cluster, 'http', http, i));
  }
} finally {
  await nginx.stop();
  cluster.stop();
  rmSync(dir, { recursive: true, force: true });
}
const median = (name, key) => {
  const values = results.filter((r) => r.tool === name).map((r) => r[key]).sort((a, b) => a - b);
  return values[Math.floor(values.length / 2)];
};
console.log(`\n${os.cpus().length} cores, ${os.cpus()[0].model.trim()}; fsync on; http: nginx, 1 worker; median of ${rounds} rounds of ${operations}`);
console.log('tool   operations/s   database CPU µs/op   daemon CPU µs/op');
for (const name of ['log', 'http']) {
  console.log(name.padEnd(6), String(median(name, 'operations_per_second')).padStart(12),
    String(median(name, 'database_cpu_us_per_operation')).padStart(20), String(median(name, 'daemon_cpu_us_per_operation')).padStart(18));
}
