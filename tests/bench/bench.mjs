// What the experiments share: one private Postgres with fsync on, filled databases to copy from, the
// clocks and counters of a slice, and one JSON line per figure.
import os from 'node:os';
import path from 'node:path';
import { mkdtempSync, rmSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { Cluster } from '../e2e/cluster.mjs';
import pg from '../e2e/pg.mjs';
import { Program, freePort } from '../e2e/util.mjs';
import { clusterCpu } from './cpu.mjs';

export const median = (values) => {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted.length === 0 ? undefined : sorted[Math.floor(sorted.length / 2)];
};

export class Bench {
  binary = path.resolve(process.env.OUTBOXD ?? 'build/release/outboxd');
  dir = mkdtempSync(path.join(os.tmpdir(), 'outboxd-bench-'));
  records = [];
  loads = [];
  #filled = new Map();

  static async start(emit) {
    const bench = new Bench();
    bench.emit = emit;
    bench.cluster = await Cluster.start();
    const admin = bench.cluster.pool('postgres');
    // A small server as somebody would set it up: everything else is the default.
    for (const setting of ["shared_buffers = '1GB'", "max_wal_size = '4GB'", "checkpoint_timeout = '15min'", "shared_preload_libraries = 'pg_stat_statements'"]) {
      await admin.query(`ALTER SYSTEM SET ${setting}`);
    }
    await admin.end();
    await bench.cluster.restart();
    return bench;
  }

  stop() {
    this.cluster.stop();
    rmSync(this.dir, { recursive: true, force: true });
  }

  record(experiment, contestant, round, figures) {
    const record = { experiment, contestant, round, ...figures, load: Number(os.loadavg()[0].toFixed(1)) };
    this.records.push(record);
    this.loads.push(record.load);
    this.emit(record);
    return record;
  }

  of(experiment, contestant, key) {
    return median(this.records.filter((r) => r.experiment === experiment && r.contestant === contestant && r[key] !== undefined)
      .map((r) => r[key]));
  }

  client(database) {
    const client = new pg.Client({ host: '127.0.0.1', port: this.cluster.port, user: 'postgres', database });
    client.on('error', () => {});
    return client.connect().then(() => client);
  }

  url(database) { return `postgres://postgres@127.0.0.1:${this.cluster.port}/${database}`; }

  // A database as `contestant` has it with `rows` queued jobs; made once, then copied file by file.
  async database(contestant, rows) {
    const key = `${contestant.name}/${rows}`;
    if (!this.#filled.has(key)) {
      const name = await this.cluster.createDatabase();
      const db = await this.client(name);
      await db.query('CREATE EXTENSION pg_stat_statements');
      await contestant.setup(this, name, db);
      await contestant.fill(this, name, db, rows);
      // Nobody analyses an empty database; a plan made for "empty for certain" would be kept for the first minute.
      if (rows > 0) await db.query('VACUUM (ANALYZE)');
      await db.end();
      this.#filled.set(key, name);
    }
    const copy = `copy_${this.#filled.size}_${process.hrtime.bigint()}`;
    const admin = await this.client('postgres');
    await admin.query(`CREATE DATABASE ${copy} TEMPLATE ${this.#filled.get(key)} STRATEGY file_copy`);
    await admin.query('CHECKPOINT');
    await admin.end();
    return copy;
  }

  async drop(database, everything = false) {
    const admin = await this.client('postgres');
    await admin.query(`DROP DATABASE IF EXISTS ${database} WITH (FORCE)`);
    if (everything) {
      for (const name of this.#filled.values()) await admin.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
      this.#filled.clear();
    }
    await admin.end();
  }

  // What the server has done since: CPU of all its processes, WAL, commits of this database.
  async meter(database) {
    const read = async () => {
      const admin = await this.client('postgres');
      const { rows: [row] } = await admin.query(
        `SELECT pg_current_wal_insert_lsn() AS lsn, (SELECT xact_commit::float8 FROM pg_stat_database WHERE datname = $1) AS commits`, [database]);
      await admin.end();
      return { cpu: clusterCpu(this.cluster.pid), ...row };
    };
    const before = await read();
    return async () => {
      const after = await read();
      const admin = await this.client('postgres');
      const { rows: [{ wal }] } = await admin.query('SELECT pg_wal_lsn_diff($1, $2)::float8 AS wal', [after.lsn, before.lsn]);
      await admin.end();
      return { cpu: after.cpu - before.cpu, wal, commits: after.commits - before.commits };
    };
  }

  // The stub server, compiled where it is needed.
  async stub(delay) {
    const file = path.join(this.dir, 'stub');
    execFileSync('cc', ['-O2', '-o', file, new URL('stub.c', import.meta.url).pathname]);
    const port = await freePort();
    const stub = new Program(file, [String(port), String(delay)]);
    stub.url = `http://127.0.0.1:${port}`;
    await new Promise((resolve, reject) => {
      stub.child.stdout.once('data', resolve);
      stub.end.then(() => reject(new Error(`the stub ended: ${stub.output}`)));
    });
    return stub;
  }
}
