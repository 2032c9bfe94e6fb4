// The evaluation's short form: ./dev eval is the same with 200 tasks.
import assert from 'node:assert/strict';
import test from 'node:test';
import { evaluate, faults, table } from '../eval/eval.mjs';

test('an agent that retries: every task is done twice without the outbox, none with it', { timeout: 180_000 }, async () => {
  const rows = await evaluate({ tasks: 36, atOnce: 12 });
  console.log(table(rows));
  assert.deepEqual(faults(rows), []);
  assert.deepEqual(rows.map((row) => row.duplicated), [36, 36, 0]);
  assert.equal(rows[2].effects, 36);
});
