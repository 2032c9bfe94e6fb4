// A primary and its standby in a temporary folder, reached by unix sockets; the standby streams
// through a gate that can be shut, so that what the primary commits then is lost with it.
import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import pg from '../e2e/node_modules/pg/lib/index.js';
import { eventually, freePort } from '../e2e/util.mjs';

const home = '/usr/lib/postgresql';
const bin = path.join(home, readdirSync(home).sort((a, b) => Number(b) - Number(a))[0], 'bin');
const owner = process.getuid() === 0 ? ['-u', '-g'].map((flag) => Number(execFileSync('id', [flag, 'postgres']))) : null;

function asOwner(program, ...args) {
  const file = path.join(bin, program);
  const [command, argv] = owner ? ['runuser', ['-u', 'postgres', '--', file, ...args]] : [file, args];
  execFileSync(command, argv, { stdio: 'ignore', cwd: '/', timeout: 90_000 });
}

class Server {
  constructor(dir, port) {
    Object.assign(this, { dir, port, data: path.join(dir, 'data'), log: path.join(dir, 'server.log') });
    mkdirSync(dir);
    if (owner) chownSync(dir, ...owner);
  }

  configure(settings) {
    const all = { listen_addresses: '127.0.0.1', port: this.port, unix_socket_directories: this.dir, fsync: 'on', max_connections: 100, ...settings };
    const text = Object.entries(all).map(([key, value]) => `${key} = '${value}'\n`).join('');
    writeFileSync(path.join(this.data, 'postgresql.auto.conf'), text);
    if (owner) chownSync(path.join(this.data, 'postgresql.auto.conf'), ...owner);
  }

  control(...args) { asOwner('pg_ctl', '-D', this.data, '-w', '-t', '60', '-l', this.log, ...args); }
  client(database = 'outbox') {
    const pool = new pg.Pool({ host: '127.0.0.1', port: this.port, user: 'postgres', database, max: 4, connectionTimeoutMillis: 2000, query_timeout: 5000 });
    pool.on('error', () => {});
    return pool;
  }

  // As if the machine were gone: the postmaster and each of its children, by their pids.
  kill() {
    const pid = Number(readFileSync(path.join(this.data, 'postmaster.pid'), 'utf8').split('\n')[0]);
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number);
    for (const one of [pid, ...children]) {
      try { process.kill(one, 'SIGKILL'); } catch { /* it was gone */ }
    }
  }

  stop() { if (existsSync(path.join(this.data, 'postmaster.pid'))) try { this.control('stop', '-m', 'immediate'); } catch { /* killed */ } }
}

class Gate {
  #sockets = new Set();
  async open(target) {
    this.server = net.createServer((client) => {
      const upstream = net.connect(target, '127.0.0.1');
      for (const socket of [client, upstream]) {
        this.#sockets.add(socket);
        socket.on('error', () => {}).on('close', () => { client.destroy(); upstream.destroy(); this.#sockets.delete(socket); });
      }
      client.pipe(upstream).pipe(client);
    });
    await new Promise((resolve) => this.server.listen(0, '127.0.0.1', resolve));
    this.port = this.server.address().port;
  }
  shut() {
    this.server.close();
    for (const socket of this.#sockets) socket.destroy();
  }
}

export class Pair {
  dir = mkdtempSync(path.join(os.tmpdir(), 'outboxd-ha-'));
  gate = new Gate();

  static async start({ synchronous }) {
    const pair = new Pair();
    chmodSync(pair.dir, 0o755);
    process.on('exit', () => pair.stop());
    const primary = pair.primary = new Server(path.join(pair.dir, 'a'), await freePort());
    asOwner('initdb', '-D', primary.data, '-A', 'trust', '-U', 'postgres', '-E', 'UTF8', '--no-locale', '-N');
    primary.configure({});
    primary.control('start');
    await pair.gate.open(primary.port);

    const standby = pair.standby = new Server(path.join(pair.dir, 'b'), await freePort());
    asOwner('pg_basebackup', '-D', standby.data, '-h', primary.dir, '-p', String(primary.port), '-U', 'postgres', '-X', 'stream', '-c', 'fast');
    standby.configure({ primary_conninfo: `host=127.0.0.1 port=${pair.gate.port} user=postgres application_name=standby` });
    writeFileSync(path.join(standby.data, 'standby.signal'), '');
    if (owner) chownSync(path.join(standby.data, 'standby.signal'), ...owner);
    standby.control('start');
    if (synchronous) {
      primary.configure({ synchronous_standby_names: 'standby' });
      primary.control('reload');
    }
    const db = primary.client('postgres');
    await eventually('the standby streams', async () => (await db.query('SELECT sync_state FROM pg_stat_replication')).rows[0]?.sync_state === (synchronous ? 'sync' : 'async'));
    await db.query('CREATE DATABASE outbox');
    await db.end();
    return pair;
  }

  // libpq tries the hosts in turn and takes the one that accepts writes.
  get dsn() {
    const { primary: a, standby: b } = this;
    return `host=${a.dir},${b.dir} port=${a.port},${b.port} user=postgres dbname=outbox target_session_attrs=read-write`;
  }

  // Until the standby has applied what the primary has committed so far.
  async caughtUp() {
    const [a, b] = [this.primary.client(), this.standby.client()];
    const { lsn } = (await a.query('SELECT pg_current_wal_lsn() AS lsn')).rows[0];
    await eventually('the standby caught up', async () => (await b.query('SELECT pg_last_wal_replay_lsn() >= $1 AS yes', [lsn])).rows[0].yes);
    await Promise.all([a.end(), b.end()]);
  }

  promote() { this.standby.control('promote'); }

  stop() {
    this.gate.shut();
    this.primary?.stop();
    this.standby?.stop();
    rmSync(this.dir, { recursive: true, force: true });
  }
}
