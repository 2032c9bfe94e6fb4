// Everything a soak draws comes from its seed: one stream per name, so that streams do not disturb
// each other.
import { createHash } from 'node:crypto';

// A number in [0, 1) that depends on the words alone.
export function draw(...words) {
  return createHash('sha256').update(words.join('\0')).digest().readUInt32BE(0) / 2 ** 32;
}

export class Random {
  #state;

  constructor(...words) { this.#state = createHash('sha256').update(words.join('\0')).digest().readUInt32BE(0); }

  // mulberry32
  next() {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let t = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 2 ** 32;
  }

  between(low, high) { return low + this.next() * (high - low); }
  whole(below) { return Math.floor(this.next() * below); }
  pick(list) { return list[this.whole(list.length)]; }
}

// One of the names of {name: weight, …}, by a number in [0, 1).
export function weighted(weights, at) {
  let left = at * Object.values(weights).reduce((sum, weight) => sum + weight, 0);
  for (const [name, weight] of Object.entries(weights)) {
    left -= weight;
    if (left < 0) return name;
  }
  return Object.keys(weights).at(-1);
}
