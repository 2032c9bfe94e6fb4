// A scripted agent, as agents are: it does not wait for long, it calls again when an answer does not
// come, and the second time its JSON looks different. Whether a repeated call repeats the action is
// up to what is below it: `act(task, args)` returns {done, id, said} or throws.
import { sleep } from '../e2e/util.mjs';

const patience = 80;  // calls for one task

// The same thing said again: other order of members, other blanks.
function reworded(args, turn) {
  const members = Object.entries(args);
  const shifted = members.map((_, n) => members[(n + turn) % members.length]);
  return Object.fromEntries(shifted.map(([name, value]) => [name, typeof value === 'string' && turn % 2 === 1 ? ` ${value} ` : value]));
}

// What the agent believes in the end: 'done', or 'gave up'. `calls` counts how often it asked.
export async function work(task, args, act) {
  let calls = 0;
  for (; calls < patience; ++calls) {
    try {
      const answer = await act(task, reworded(args, calls));
      if (answer.done) return { belief: 'done', id: answer.id, calls: calls + 1 };
    } catch { /* a time-out, a reset, a 500: it calls again */ }
    await sleep(Math.min(50 * (calls + 1), 500));
  }
  return { belief: 'gave up', calls };
}

// All tasks, some at a time, in the order of their numbers.
export async function workAll(tasks, atOnce, act) {
  const ends = new Array(tasks.length);
  let next = 0;
  await Promise.all(Array.from({ length: atOnce }, async () => {
    while (next < tasks.length) {
      const n = next++;
      ends[n] = await work(n, tasks[n], act);
    }
  }));
  return ends;
}
