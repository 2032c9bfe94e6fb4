// A tool that is a program: its effect is a line in a ledger, and another program looks there.
import assert from 'node:assert/strict';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';
import { story } from './world.mjs';
import { eventually, sleep } from './util.mjs';

function commandTool(w) {
  const ledger = path.join(w.dir, 'ledger');
  const hold = path.join(w.dir, 'hold');
  const create = w.write('create.sh', `
[ "$OUTBOX_OPERATION_ID" = refused ] && { echo '{"code": "no"}'; exit 65; }
[ "$OUTBOX_OPERATION_ID" = later ] && [ ! -e "${w.dir}/now" ] && exit 75
read -r line
echo "$OUTBOX_OPERATION_ID $OUTBOX_KEY $OUTBOX_ATTEMPT $line" >> "${ledger}"
while [ -e "${hold}" ]; do sleep 0.05; done
[ "$OUTBOX_OPERATION_ID" = stuck ] && sleep 60
echo '{"id": "C-1"}'
`);
  const look = w.write('look.sh', `
[ -e "${w.dir}/blind" ] && exit 3
grep -q " $OUTBOX_KEY " "${ledger}" 2>/dev/null && { echo '{"id": "C-1"}'; exit 0; }
exit 1
`);
  const tool = {
    description: 'Write a line into the ledger.',
    effect: 'write',
    execute: {
      type: 'command', argv: ['/bin/sh', create], stdin: '{{ arguments.line | json }}\n',
      exit_codes: { 0: 'succeeded', 75: 'retry', 65: 'rejected', default: 'unknown' }, result: { id: '/id' },
    },
    reconcile: {
      type: 'command', argv: ['/bin/sh', look],
      exit_codes: { 0: 'found', 1: 'absent', default: 'inconclusive' }, result: { id: '/id' },
    },
  };
  const lines = (id) => (existsSync(ledger) ? readFileSync(ledger, 'utf8').split('\n') : []).filter((l) => l.startsWith(`${id} `));
  return { tools: { ledger_line: tool }, lines, hold };
}

const file = (w, id) => w.enqueue(id, { tool: 'ledger_line', args: { line: `it's ${id}; $(reboot)` } });

story('a command: exit codes decide, standard input is data', async (w) => {
  const { tools, lines } = commandTool(w);
  await w.start({ tools });
  for (const id of ['plain', 'refused', 'later']) await file(w, id);
  const plain = await w.settled('plain');
  assert.deepEqual([plain.status, plain.attempts, plain.result], ['succeeded', 1, { id: 'C-1' }]);
  assert.match(lines('plain')[0], /^plain [0-9a-f]{64} 1 "it's plain; \$\(reboot\)"$/);
  assert.equal((await w.settled('refused')).status, 'failed');
  await eventually('a retry', async () => (await w.events('later')).includes('retry'));
  w.write('now', '');
  assert.equal((await w.settled('later')).status, 'succeeded');
  assert.deepEqual([lines('plain').length, lines('refused').length, lines('later').length], [1, 0, 1]);
});

story('a command whose daemon is killed between effect and record is found by the other command', async (w) => {
  const { tools, lines, hold } = commandTool(w);
  w.write('hold', '');
  w.write('blind', '');
  const first = await w.start({ tools });
  await file(w, 'killed');
  await eventually('the line exists', () => lines('killed').length === 1);
  await first.kill();
  rmSync(hold);

  await w.start({ tools });
  await eventually('it is asked in vain', async () => (await w.events('killed', 'probe')).length >= 3);
  await sleep(2000);
  assert.equal((await w.get('killed')).status, 'unknown', 'exit code 3 is no answer');
  rmSync(path.join(w.dir, 'blind'));
  const row = await w.settled('killed');
  assert.deepEqual([row.status, row.attempts, row.result], ['succeeded', 1, { id: 'C-1' }]);
  assert.equal(lines('killed').length, 1);
});

story('a command that outlives its time-out is ended, and found', async (w) => {
  const { tools, lines } = commandTool(w);
  await w.start({ tools });
  await file(w, 'stuck');
  const row = await w.settled('stuck');
  assert.deepEqual([row.status, row.attempts], ['succeeded', 1]);
  assert.ok((await w.events('stuck')).includes('unknown'));
  assert.equal(lines('stuck').length, 1);
});
