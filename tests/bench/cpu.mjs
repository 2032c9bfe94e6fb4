// CPU time from /proc, in microseconds.
import { execFileSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';

const tick = 1e6 / Number(execFileSync('getconf', ['CLK_TCK']));
const fieldsOf = (stat) => stat.slice(stat.lastIndexOf(')') + 2).split(' ');

// Of the postmaster, its living children, and the children it has reaped.
export function clusterCpu(postmaster) {
  let total = 0;
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    let stat;
    try { stat = readFileSync(`/proc/${pid}/stat`, 'utf8'); } catch { continue; }  // it ended just now
    const fields = fieldsOf(stat);
    const [parent, user, system, reapedUser, reapedSystem] = [1, 11, 12, 13, 14].map((i) => Number(fields[i]));
    if (Number(pid) === postmaster) total += user + system + reapedUser + reapedSystem;
    else if (parent === postmaster) total += user + system;
  }
  return total * tick;
}

export function processCpu(pid) {
  const fields = fieldsOf(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  return (Number(fields[11]) + Number(fields[12])) * tick;
}
