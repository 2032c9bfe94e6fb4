// Waiting with a bound, free ports, and programs that are ended by their pid only.
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import net from 'node:net';

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

// What the other side sees as idempotency key, for the default encoding.
export const providerKey = (id, namespace = 'default') =>
  createHash('sha256').update(`${namespace}\0${id}`).digest('hex');

// Asks `probe` until it answers with something true; its last error is part of the complaint.
export async function eventually(what, probe, ms = 20_000) {
  const end = Date.now() + ms;
  for (;;) {
    let trouble = '';
    try {
      const answer = await probe();
      if (answer) return answer;
    } catch (error) {
      trouble = `: ${error.message}`;
    }
    if (Date.now() >= end) throw new Error(`${what}: not within ${ms} ms${trouble}`);
    await sleep(40);
  }
}

export async function freePort() {
  const server = net.createServer();
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

// A program of ours: its output is kept, its end is a promise, and nothing else is ever signalled.
export class Program {
  constructor(file, args, options = {}) {
    this.output = '';
    this.stdout = '';
    this.ended = null;
    this.child = spawn(file, args, { stdio: ['pipe', 'pipe', 'pipe'], ...options });
    this.child.stdin?.on('error', () => {});
    this.child.stdout?.on('data', (data) => { this.stdout += data; this.output += data; });
    this.child.stderr?.on('data', (data) => { this.output += data; });
    this.end = new Promise((resolve) => {
      this.child.on('error', (error) => resolve((this.ended = { code: -1, signal: null, error })));
      this.child.on('close', (code, signal) => resolve((this.ended = { code, signal })));
    });
  }

  get pid() { return this.child.pid; }

  // Sends the signal and waits; what does not end in time is killed and reported.
  async stop(signal = 'SIGTERM', ms = 20_000) {
    if (!this.ended) this.child.kill(signal);
    const late = setTimeout(() => { this.late = true; this.child.kill('SIGKILL'); }, ms);
    await this.end;
    clearTimeout(late);
    if (this.late) throw new Error(`pid ${this.pid} did not end within ${ms} ms after ${signal}`);
    return this.ended;
  }
}

// Runs a program to its end; never throws for its exit code.
export async function run(file, args, { input = '', timeout = 30_000, ...options } = {}) {
  const program = new Program(file, args, options);
  program.child.stdin.end(input);
  const timer = setTimeout(() => program.child.kill('SIGKILL'), timeout);
  const { code, signal, error } = await program.end;
  clearTimeout(timer);
  if (error) throw error;
  return { code, signal, out: program.stdout, text: program.output };
}
