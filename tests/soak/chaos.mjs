// What happens to the daemons, drawn from the seed. Nothing here outlasts stop().
import { sleep } from '../e2e/util.mjs';
import { Random, weighted } from './random.mjs';
import { times } from './fleet.mjs';

const weights = {
  kill: 30, freeze: 11, restart_postgres: 5, cut_postgres: 14, cut_service: 12, cut_answer: 10,
  hold_postgres: 6, hold_service: 7, refuse_service: 4, refuse_postgres: 3, terminate: 4,
};
// The service must learn of a request soon: settle covers only so much of a slow network.
const kLongestHold = 250;

export class Chaos {
  counts = Object.fromEntries(Object.keys(weights).map((name) => [name, 0]));
  #running = new Set();
  #restarting = false;

  constructor(seed, daemons, cluster) {
    this.random = new Random(seed, 'chaos');
    Object.assign(this, { daemons, cluster });
  }

  async run(until) {
    while (Date.now() < until) {
      const action = weighted(weights, this.random.next());
      const daemon = this.random.pick(this.daemons);
      if (this[action](daemon, this.random.next()) !== false) ++this.counts[action];
      await sleep(this.random.between(200, 900));
    }
    await Promise.all(this.#running);
    for (const daemon of this.daemons) {
      daemon.database.calm();
      daemon.service.calm();
    }
  }

  // In the background; part of what stop waits for.
  #go(work) {
    const running = work().finally(() => this.#running.delete(running));
    this.#running.add(running);
  }

  #again(daemon, end, part) {
    if (!daemon.up || daemon.busy) return false;
    daemon.busy = true;
    this.#go(async () => {
      await end();
      await sleep(part * 700);
      daemon.start();
      daemon.busy = false;
    });
    return true;
  }

  kill(daemon, part) { return this.#again(daemon, () => daemon.kill(), part); }
  terminate(daemon, part) { return this.#again(daemon, () => daemon.stop(), part); }

  // Beyond the lease, most of the time.
  freeze(daemon, part) {
    if (!daemon.up || daemon.busy) return false;
    daemon.busy = true;
    this.#go(async () => {
      daemon.freeze();
      await sleep(times.timeout + part * (times.margin + times.settle));
      daemon.thaw();
      daemon.busy = false;
    });
    return true;
  }

  restart_postgres() {
    if (this.#restarting) return false;
    this.#restarting = true;
    this.#go(async () => {
      await this.cluster.restart();
      this.#restarting = false;
    });
    return true;
  }

  cut_postgres(daemon) { daemon.database.cut(); }
  cut_service(daemon) { daemon.service.cut(); }
  cut_answer(daemon, part) { (part < 0.5 ? daemon.service : daemon.database).cutAfter(Math.floor(part * 1200)); }
  hold_postgres(daemon, part) { daemon.database.hold(part * 2500); }
  hold_service(daemon, part) { daemon.service.hold(part * kLongestHold); }
  refuse_service(daemon, part) { daemon.service.refuse(part * 2000); }
  refuse_postgres(daemon, part) { daemon.database.refuse(part * 2000); }
}
