// A private Postgres cluster as production has it: fsync on, a unix socket for the daemon and a
// loopback port for the tests. It lives in a temporary folder and dies with this process.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import pg from 'pg';
import { eventually, freePort } from './util.mjs';

function binaries() {
  const home = '/usr/lib/postgresql';
  const versions = existsSync(home) ? readdirSync(home).sort((a, b) => Number(b) - Number(a)) : [];
  const found = versions.map((v) => path.join(home, v, 'bin')).find((dir) => existsSync(path.join(dir, 'initdb')));
  if (!found) throw new Error('no Postgres server here; ./dev test installs one (package postgresql)');
  return found;
}

export class Cluster {
  #bin = binaries();
  #dir = mkdtempSync(path.join(os.tmpdir(), 'outboxd-e2e-pg-'));
  #databases = 0;

  static async start() {
    const cluster = new Cluster();
    await cluster.#start();
    return cluster;
  }

  async #start() {
    if (process.getuid() === 0) {
      const [uid, gid] = ['-u', '-g'].map((flag) => Number(execFileSync('id', [flag, 'postgres'])));
      chownSync(this.#dir, uid, gid);
    }
    chmodSync(this.#dir, 0o755);
    this.port = await freePort();
    this.#server('initdb', '-D', this.#data, '-A', 'trust', '-U', 'postgres', '-E', 'UTF8', '--no-locale', '-N');
    writeFileSync(path.join(this.#data, 'postgresql.auto.conf'), [
      `listen_addresses = '127.0.0.1'`, `port = ${this.port}`, `unix_socket_directories = '${this.#dir}'`,
      'fsync = on', 'synchronous_commit = on', 'full_page_writes = on', 'max_connections = 300', 'max_prepared_transactions = 10', '',
    ].join('\n'));
    this.#control('start');
    process.on('exit', () => this.stop());
    for (const signal of ['SIGTERM', 'SIGINT']) process.once(signal, () => process.exit(1));
  }

  get bin() { return this.#bin; }
  get #data() { return path.join(this.#dir, 'data'); }
  get pid() { return Number(readFileSync(path.join(this.#data, 'postmaster.pid'), 'utf8').split('\n')[0]); }
  get log() { return readFileSync(path.join(this.#dir, 'server.log'), 'utf8'); }

  // What a daemon is told: libpq's keywords, over the socket.
  dsn(database) { return `host=${this.#dir} port=${this.port} user=postgres dbname=${database}`; }

  pool(database) {
    const pool = new pg.Pool({ host: '127.0.0.1', port: this.port, user: 'postgres', database, max: 8 });
    pool.on('error', () => {});  // an idle connection that a restart cut
    return pool;
  }

  async createDatabase() {
    const name = `e2e_${process.pid}_${++this.#databases}`;
    const pool = this.pool('postgres');
    await pool.query(`CREATE DATABASE ${name}`);
    await pool.end();
    return name;
  }

  // No checkpoint, every session cut, recovery from the log: what a crash of the server is.
  async restart() {
    await this.#meanwhile('pg_ctl', '-D', this.#data, '-w', '-t', '60', '-l', path.join(this.#dir, 'server.log'), 'restart', '-m', 'immediate');
    const pool = this.pool('postgres');
    await eventually('Postgres accepts again', () => pool.query('SELECT 1'));
    await pool.end();
  }

  // Gone as a machine is that lost its power; begin() has it again.
  halt() { this.#control('stop', '-m', 'immediate'); }

  async begin() {
    await this.#meanwhile('pg_ctl', '-D', this.#data, '-w', '-t', '60', '-l', path.join(this.#dir, 'server.log'), 'start');
  }

  // Silent as a machine is that hangs: connections stay, nothing answers. By pid: the server and its children.
  freeze() {
    process.kill(this.pid, 'SIGSTOP');
    this.frozen = [this.pid, ...readFileSync(`/proc/${this.pid}/task/${this.pid}/children`, 'utf8').trim().split(' ').map(Number)];
    for (const pid of this.frozen) process.kill(pid, 'SIGSTOP');
  }

  thaw() {
    for (const pid of this.frozen ?? []) process.kill(pid, 'SIGCONT');
    this.frozen = null;
  }

  stop() {
    this.thaw();
    if (!existsSync(this.#dir)) return;
    try { this.#control('stop', '-m', 'immediate'); } catch { /* it is down already */ }
    rmSync(this.#dir, { recursive: true, force: true });
  }

  #control(...args) { this.#server('pg_ctl', '-D', this.#data, '-w', '-t', '60', '-l', path.join(this.#dir, 'server.log'), ...args); }

  #server(program, ...args) { execFileSync(...this.#command(program, args), { stdio: 'ignore', cwd: this.#dir, timeout: 90_000 }); }

  // The same without holding up this process.
  async #meanwhile(program, ...args) {
    const child = spawn(...this.#command(program, args), { stdio: 'ignore', cwd: this.#dir });
    const [code] = await once(child, 'close');
    if (code !== 0) throw new Error(`${program} ${args.at(-3)}: exit code ${code}`);
  }

  #command(program, args) {
    const file = path.join(this.#bin, program);
    return process.getuid() === 0 ? ['runuser', ['-u', 'postgres', '--', file, ...args]] : [file, args];
  }
}
