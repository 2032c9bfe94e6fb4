// A table of what was checked, and a last line that ./dev can count.
import { strict as assert } from 'node:assert';

const lines = [];
let failed = 0;

export async function check(name, body) {
  try {
    lines.push(['ok', name, String((await body()) ?? '')]);
  } catch (error) {
    failed++;
    lines.push(['FAIL', name, error.message.split('\n')[0]]);
  }
  console.log(`${lines.at(-1)[0].padEnd(4)} ${name}: ${lines.at(-1)[2]}`);
}

export const equal = (actual, expected, what) => assert.equal(actual, expected, what ?? `${actual}, not ${expected}`);

export function close() {
  console.log(`${lines.length - failed} passed, ${failed} failed`);
  process.exitCode = failed ? 1 : 0;
}

// Effects per operation, as the ticket service counts them.
export async function effects(desk) {
  const counts = new Map();
  for (const ticket of (await desk.state()).tickets) counts.set(ticket.operation_id, (counts.get(ticket.operation_id) ?? 0) + 1);
  return { done: counts.size, twice: [...counts.values()].filter((n) => n > 1).length };
}
