// One story's world: a database of its own, a ticket service, daemons, and what must hold at the
// end. `story(name, body)` is a test that prints the daemons' logs when it fails.
import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import test from 'node:test';
import { fileURLToPath } from 'node:url';
import { Cluster } from './cluster.mjs';
import { configuration, ticketTool } from './config.mjs';
import { Program, eventually, freePort, providerKey, run } from './util.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
export const binary = path.resolve(process.env.OUTBOXD ?? path.join(here, '../../build/release/outboxd'));
const finals = ['succeeded', 'failed', 'cancelled'];
let cluster;  // one per file, started by its first story

export class Desk {
  static async start(journal, { port = 0, tls = [] } = {}) {
    const desk = new Desk();
    desk.journal = journal;
    desk.program = new Program(process.execPath, [path.join(here, 'desk.mjs'), journal, String(port), ...tls]);
    const line = await eventually('the desk listens', () => desk.program.stdout.split('\n')[1] !== undefined && desk.program.stdout.split('\n')[0]);
    Object.assign(desk, JSON.parse(line));
    desk.url = `http${tls.length ? 's' : ''}://${tls.length ? 'localhost' : '127.0.0.1'}:${desk.port}`;
    return desk;
  }

  async #ask(name, body) {
    const options = body ? { method: 'POST', body: JSON.stringify(body) } : {};
    return (await fetch(`http://127.0.0.1:${this.control}/${name}`, { ...options, signal: AbortSignal.timeout(10_000) })).json();
  }

  plan(id, plan) { return this.#ask('plan', { operation_id: id, ...plan }); }
  release(id) { return this.#ask('release', { operation_id: id }); }
  state() { return this.#ask('state'); }
  async tickets(id) { return (await this.state()).tickets.filter((t) => t.operation_id === id); }
  async closes(id) { return (await this.state()).closes.filter((c) => c.operation_id === id); }
  async posts(id) { return (await this.state()).requests.filter((r) => r.method === 'POST' && r.body.operation_id === id); }
  async looks(id) { return (await this.state()).requests.filter((r) => r.method === 'GET' && r.key === providerKey(id)); }
  stop(signal = 'SIGKILL') { return this.program.stop(signal); }
}

class Daemon {
  constructor(file, port, env) {
    this.port = port;
    this.program = new Program(binary, ['run', '-c', file], { env });
  }

  get pid() { return this.program.pid; }
  get ended() { return this.program.ended; }
  get log() { return this.program.output; }

  async ask(path) {
    const answer = await fetch(`http://127.0.0.1:${this.port}${path}`, { signal: AbortSignal.timeout(5000) });
    return { status: answer.status, text: await answer.text() };
  }

  async ready() {
    await eventually('the daemon is ready', async () => this.ended || (await this.ask('/readyz')).status === 200, 15_000);
    assert.equal(this.ended, null, 'the daemon ended at its start');
    return this;
  }

  async metric(name, labels = '') {
    const { text } = await this.ask('/metrics');
    return text.split('\n').filter((line) => line.startsWith(name) && line.includes(labels) && !line.startsWith('#'))
      .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' '))), 0);
  }

  kill() { return this.program.stop('SIGKILL'); }
  stop(ms) { return this.program.stop('SIGTERM', ms); }
}

class World {
  daemons = [];
  desks = [];

  async open() {
    cluster ??= await Cluster.start();
    this.cluster = cluster;
    this.dir = mkdtempSync(path.join(os.tmpdir(), 'outboxd-e2e-'));
    this.desk = await this.startDesk();
    const database = await cluster.createDatabase();
    this.dsn = cluster.dsn(database);
    this.db = cluster.pool(database);
    this.env = { PATH: process.env.PATH, HOME: this.dir, LANG: 'C.UTF-8', OUTBOXD_DATABASE: this.dsn };
  }

  async startDesk(options) {
    const desk = await Desk.start(path.join(this.dir, `desk-${options?.journal ?? this.desks.length}.jsonl`), options);
    this.desks.push(desk);
    return desk;
  }

  write(name, text, mode = 0o644) {
    mkdirSync(this.dir, { recursive: true });
    const file = path.join(this.dir, name);
    writeFileSync(file, text, { mode });
    return file;
  }

  cli(...args) { return run(binary, args, { env: this.env }); }

  async migrate() {
    const { code, text } = await this.cli('migrate');
    assert.equal(code, 0, `outboxd migrate: ${text}`);
  }

  configure({ tools, ...more } = {}, port = 0) {
    const document = configuration({ port, tools: tools ?? { create_ticket: ticketTool(this.desk.url) }, ...more });
    return this.write(`outboxd-${this.daemons.length}.yaml`, JSON.stringify(document, null, 2));
  }

  // A daemon that may not come up; start() waits until it is ready.
  async launch({ failpoints = '', env = this.env, ...more } = {}) {
    const port = await freePort();
    const daemon = new Daemon(this.configure(more, port), port, { ...env, OUTBOXD_FAILPOINTS: failpoints });
    daemon.env = env;
    this.daemons.push(daemon);
    return daemon;
  }

  async start(options) {
    if (!this.migrated) await this.migrate();
    this.migrated = true;
    return (await this.launch(options)).ready();
  }

  async one(sql, values = []) { return (await this.db.query(sql, values)).rows[0]; }

  enqueue(id, { tool = 'create_ticket', args = { title: `ticket ${id}` }, retryFailed = false } = {}) {
    return this.one('SELECT * FROM outbox.enqueue($1, $2::jsonb, $3, retry_failed => $4)', [tool, JSON.stringify(args), id, retryFailed]);
  }

  compensate(id, name = null, args = {}, reason = null) {
    return this.one('SELECT * FROM outbox.compensate($1, $2, $3::jsonb, $4)', [id, name, JSON.stringify(args), reason]);
  }

  get(id) { return this.one('SELECT * FROM outbox.get($1)', [id]); }

  async events(id, kind) {
    const { rows } = await this.db.query('SELECT kind, detail FROM outbox.event WHERE operation_id = $1 ORDER BY id', [id]);
    return kind ? rows.filter((row) => row.kind === kind) : rows.map((row) => row.kind);
  }

  async until(id, statuses, ms = 30_000) {
    let row;
    try {
      return await eventually(`${id} is ${statuses}`, async () => {
        row = await this.get(id);
        return statuses.includes(row?.status) && row;
      }, ms);
    } catch (error) {
      throw new Error(`${error.message}; it is ${JSON.stringify(row)}, events ${await this.events(id)}`);
    }
  }

  settled(id, ms) { return this.until(id, finals, ms); }

  async allSettled(count, ms) {
    await eventually(`${count} operations are final`, async () => {
      const { n } = await this.one('SELECT count(*)::int AS n FROM outbox.outcome');
      return n === count;
    }, ms);
  }

  // No operation has two effects, and the outbox says what the desk says.
  async check() {
    const counted = new Map();
    for (const desk of this.desks.filter((d) => !d.program.ended)) {
      const { tickets, closes } = await desk.state();
      for (const { operation_id: id } of [...tickets, ...closes]) counted.set(id, (counted.get(id) ?? 0) + 1);
    }
    const { rows } = await this.db.query(`SELECT operation_id, status FROM outbox.operations WHERE tool IN ('create_ticket', 'create_ticket:close')`);
    for (const { operation_id: id, status } of rows) {
      const effects = counted.get(id) ?? 0;
      if (status === 'succeeded') assert.equal(effects, 1, `${id} is ${status}`);
      else if (status === 'unknown' || status === 'attempting') assert.ok(effects <= 1, `${id} is ${status}: ${effects}`);
      else assert.equal(effects, 0, `${id} is ${status}`);
    }
  }

  report() {
    return [...this.daemons.map((d) => `daemon ${d.pid} ${JSON.stringify(d.ended)}\n${d.log.slice(-20_000)}`),
      ...this.desks.filter((d) => d.program.output.includes('Error')).map((d) => `desk ${d.program.output}`)];
  }

  async close() {
    for (const daemon of this.daemons) if (!daemon.ended) await daemon.kill();
    for (const desk of this.desks) if (!desk.program.ended) await desk.stop();
    await this.db?.end();
    rmSync(this.dir, { recursive: true, force: true });
  }
}

export function story(name, body, { timeout = 120_000 } = {}) {
  test(name, { timeout }, async (t) => {
    const world = new World();
    try {
      await world.open();
      await body(world, t);
      if (world.migrated) await world.check();
    } catch (error) {
      console.error([`--- ${name}: ${error.message}`, ...world.report()].join('\n'));
      throw error;
    } finally {
      await world.close();
    }
  });
}
