// A TCP gate between two programs: what passes may be held, cut in the middle, or refused.
import net from 'node:net';

export class Gate {
  #pairs = new Set();
  #cutAfter = null;   // bytes of answers that still pass, then everything is cut
  #refuseUntil = 0;
  #holdUntil = 0;
  cuts = 0;

  static async open(targetPort) {
    const gate = new Gate();
    gate.server = net.createServer((client) => gate.#accept(client, targetPort));
    await new Promise((resolve) => gate.server.listen(0, '127.0.0.1', resolve));
    gate.port = gate.server.address().port;
    return gate;
  }

  #accept(client, targetPort) {
    if (Date.now() < this.#refuseUntil) { client.resetAndDestroy(); return; }
    const target = net.connect(targetPort, '127.0.0.1');
    const pair = { client, target };
    this.#pairs.add(pair);
    const end = () => {
      if (!this.#pairs.delete(pair)) return;
      client.destroy();
      target.destroy();
    };
    for (const socket of [client, target]) socket.setNoDelay(true).on('error', end).on('close', end);
    client.on('data', (data) => this.#pass(data, client, target));
    target.on('data', (data) => {
      if (this.#cutAfter !== null) {
        this.#cutAfter -= data.length;
        if (this.#cutAfter < 0) {
          client.write(data.subarray(0, Math.max(0, data.length + this.#cutAfter)));
          this.#cutAfter = null;
          this.cut();
          return;
        }
      }
      this.#pass(data, target, client);
    });
  }

  #pass(data, from, to) {
    const wait = this.#holdUntil - Date.now();
    if (wait <= 0) { to.write(data); return; }
    from.pause();
    setTimeout(() => { if (!to.destroyed) to.write(data); if (!from.destroyed) from.resume(); }, wait);
  }

  cut() {
    this.cuts += this.#pairs.size;
    for (const { client, target } of [...this.#pairs]) { client.resetAndDestroy(); target.resetAndDestroy(); }
  }

  cutAfter(bytes) { this.#cutAfter = bytes; }
  refuse(ms) { this.#refuseUntil = Date.now() + ms; this.cut(); }
  hold(ms) { this.#holdUntil = Date.now() + ms; }
  calm() { this.#cutAfter = null; this.#refuseUntil = 0; this.#holdUntil = 0; }

  close() {
    this.server.close();
    for (const { client, target } of this.#pairs) { client.destroy(); target.destroy(); }
  }
}
