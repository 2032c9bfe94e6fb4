// The daemons of a soak. Each reaches Postgres through a gate of its own and all reach the service
// through one (it has one address: under another, an operation's request would be another). They are
// killed, frozen and started again by their pid.
import { mkdirSync, writeFileSync, createWriteStream } from 'node:fs';
import path from 'node:path';
import { configuration, ticketTool } from '../e2e/config.mjs';
import { Program } from '../e2e/util.mjs';
import { Gate } from './gate.mjs';

export const times = { timeout: 1000, margin: 500, settle: 3000, lag: 2000 };

function tool(url) {
  const ticket = ticketTool(url);
  ticket.execute.json.attempt = '{{ operation.attempt }}';
  return ticket;
}

class Daemon {
  frozen = null;       // since when
  freezes = [];        // {from, to}
  strange = [];        // ends that nobody asked for

  constructor(name, dir, binary) { Object.assign(this, { name, dir, binary }); }

  async prepare(cluster, database, service) {
    this.database = await Gate.open(cluster.port);
    this.service = service;
    const document = configuration({
      tools: { create_ticket: tool(`http://127.0.0.1:${this.service.port}`) },
      worker: { name: this.name, lease_margin: `${times.margin}ms`, drain_timeout: '2s' },
      defaults: {
        timeout: `${times.timeout}ms`, connect_timeout: '500ms',
        retry: { max_attempts: 20, initial: '100ms', max: '1s', multiplier: 2, jitter: 0.2, give_up_after: '1h' },
        reconcile: { settle: `${times.settle}ms`, confirmations: 1, interval: '300ms', max_interval: '1s', give_up_after: '1h', after_absent: 'retry' },
      },
    });
    this.file = path.join(this.dir, `${this.name}.yaml`);
    writeFileSync(this.file, JSON.stringify(document, null, 2));
    this.log = createWriteStream(path.join(this.dir, `${this.name}.log`));
    this.env = {
      PATH: process.env.PATH, HOME: this.dir, LANG: 'C.UTF-8',
      OUTBOXD_DATABASE: `host=127.0.0.1 port=${this.database.port} user=postgres dbname=${database}`,
    };
  }

  start() {
    const program = new Program(this.binary, ['run', '-c', this.file], { env: this.env, stdio: ['ignore', 'pipe', 'pipe'] });
    this.program = program;
    for (const stream of [program.child.stdout, program.child.stderr]) stream.on('data', (data) => this.log.write(data));
    program.end.then((end) => {
      program.output = program.stdout = '';
      if (!program.expected || end.code > 1) this.strange.push(end);
    });
  }

  get up() { return !this.program.ended && !this.frozen; }

  async kill() {
    this.program.expected = true;
    await this.program.stop('SIGKILL');
  }

  async stop() {
    this.program.expected = true;
    return this.program.stop('SIGTERM', 25_000);
  }

  freeze() {
    process.kill(this.program.pid, 'SIGSTOP');
    this.frozen = Date.now();
  }

  thaw() {
    if (!this.frozen) return;
    process.kill(this.program.pid, 'SIGCONT');
    this.freezes.push({ from: this.frozen, to: Date.now() });
    this.frozen = null;
  }
}

export async function fleet(count, dir, binary, cluster, database, servicePort) {
  mkdirSync(dir, { recursive: true });
  const daemons = [];
  const service = await Gate.open(servicePort);
  for (let i = 1; i <= count; i++) {
    const daemon = new Daemon(`d${i}`, dir, binary);
    await daemon.prepare(cluster, database, service);
    daemon.start();
    daemons.push(daemon);
  }
  return daemons;
}
