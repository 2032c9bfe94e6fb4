// A command and a daemon that is killed or stopped under it: no effect comes after "absent".
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { story } from './world.mjs';
import { eventually, sleep } from './util.mjs';

// The first attempt takes 6 s until its effect, its time-out is 1 s; later ones are quick.
function slowFirst(w) {
  const ledger = path.join(w.dir, 'effects');
  const begun = path.join(w.dir, 'begun');
  const script = `[ $OUTBOX_ATTEMPT = 1 ] && : > ${begun} && sleep 6; echo $OUTBOX_OPERATION_ID $OUTBOX_ATTEMPT >> ${ledger}; echo 1`;
  const tool = {
    effect: 'write', timeout: '1s',
    execute: { type: 'command', argv: ['/bin/sh', '-c', script], exit_codes: { 0: 'succeeded' } },
    reconcile: {
      type: 'command', argv: ['/bin/sh', '-c', `grep -q $OUTBOX_OPERATION_ID ${ledger} || exit 1`],
      exit_codes: { 0: 'found', 1: 'absent' }, settle: '500ms',
    },
  };
  const effects = () => (existsSync(ledger) ? readFileSync(ledger, 'utf8').trim().split('\n') : []);
  return { tools: { slow: tool }, begun, effects };
}

async function oneEffect(w, id, effects) {
  const row = await w.settled(id);
  await sleep(7000);  // in which the first attempt would have had its effect
  assert.deepEqual(effects(), [`${id} 2`]);
  assert.equal(row.status, 'succeeded');
}

story('killed under a running command: the command is ended, the next attempt is the only effect', async (w) => {
  const { tools, begun, effects } = slowFirst(w);
  const first = await w.start({ tools });
  await w.enqueue('killed', { tool: 'slow', args: {} });
  await eventually('the command runs', () => existsSync(begun));
  await first.kill();
  await w.start({ tools });
  await oneEffect(w, 'killed', effects);
});

story('stopped under a running command: it is ended at its deadline', async (w) => {
  const { tools, begun, effects } = slowFirst(w);
  const first = await w.start({ tools });
  await w.enqueue('stopped', { tool: 'slow', args: {} });
  await eventually('the command runs', () => existsSync(begun));
  process.kill(first.pid, 'SIGSTOP');
  await w.start({ tools });
  await oneEffect(w, 'stopped', effects);
  process.kill(first.pid, 'SIGCONT');
  await sleep(1000);
  assert.equal((await w.get('stopped')).status, 'succeeded', 'the late report changes nothing');
});
