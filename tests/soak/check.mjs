// What must hold once all is quiet. Each check returns the cases that break it.
import { times } from './fleet.mjs';

const legal = {
  queue: {
    null: ['pending', 'scheduled'],
    scheduled: ['pending', 'unknown'],
    pending: ['attempting', 'unknown'],
    attempting: ['pending', 'scheduled', 'unknown', 'attempting'],
    unknown: ['unknown', 'scheduled'],
  },
  end: {
    pending: ['cancelled', 'failed', 'succeeded'],
    scheduled: ['cancelled', 'failed', 'succeeded'],
    attempting: ['succeeded', 'failed'],
    unknown: ['succeeded', 'failed'],
  },
  outcome: { failed: ['succeeded', 'failed'], cancelled: ['succeeded', 'cancelled'], succeeded: ['succeeded'] },
};
const group = (rows, key) => {
  const groups = new Map();
  for (const row of rows) groups.set(row[key], [...(groups.get(row[key]) ?? []), row]);
  return groups;
};

// Every write of one operation in order: epochs that only grow, moves the table allows.
function walk(rows) {
  const wrong = [];
  let epoch = -1;
  rows.forEach((row, i) => {
    const say = (what) => wrong.push(`seq ${row.seq} ${row.place} ${row.was} → ${row.status}, epoch ${row.epoch_was} → ${row.epoch}: ${what}`);
    if (row.place === 'queue' && row.status === null) {
      const end = rows.find((r) => r.xid === row.xid && r.place === 'outcome' && r.was === null);
      if (!end) say('gone without an end');
      else if (!legal.end[row.was].includes(end.status)) say(`ended as ${end.status}`);
      return;
    }
    if (row.place === 'outcome' && row.status === null) {
      if (row.was !== 'failed' || !rows.find((r) => r.xid === row.xid && r.place === 'queue' && r.was === null)) say('an end is gone');
      return;
    }
    if (row.place === 'outcome' ? row.was && !legal.outcome[row.was].includes(row.status) : !legal.queue[row.was].includes(row.status)) say('is no move of the table');
    if (row.epoch_was !== null && row.epoch !== row.epoch_was + 1) say('not the next epoch');
    if (row.epoch <= epoch) say(`not above ${epoch}`);
    epoch = row.epoch;
  });
  return wrong;
}

// The request left after its attempt's hard end, from a process that had just been woken: the hole
// that no client can close alone (between the last look at the clock and send). Only where the
// service's clock proves it.
function residual(request, attempts, freezes) {
  const ends = attempts.filter((a) => a.attempts === request.attempt).map((a) => a.deadline_at.getTime());
  const woken = freezes.some(({ to }) => request.at >= to && request.at - to < 300);
  return ends.length > 0 && woken && request.at > Math.max(...ends);
}

export function check({ seconds, chaos, intents, operations, audit, events, state, journals, daemons, planners }) {
  const results = [];
  const must = (name, wrong) => results.push({ name, wrong });
  const tickets = group(state.tickets, 'operation_id');
  const bySeq = group(audit, 'seq');
  const answers = group(journals, 'id');
  const freezes = daemons.flatMap((d) => d.freezes);
  const arrivals = group(state.arrivals, 'operation_id');
  const byId = new Map(operations.map((o) => [o.operation_id, o]));
  const residuals = [];

  // A run in which nothing happened proves nothing.
  const few = { kills: [chaos.kill, seconds / 5], freezes: [chaos.freeze, seconds / 20], restarts: [chaos.restart_postgres, Math.floor(seconds / 40)], operations: [operations.length, seconds * 4] };
  must('enough happened', Object.entries(few).filter(([, [n, least]]) => n < least).map(([what, [n, least]]) => `${n} ${what}, at least ${least}`));
  must('every committed step is an operation, and nothing else is', [
    ...intents.filter((id) => !byId.has(id)).map((id) => `${id} is lost`),
    ...operations.filter((o) => !intents.includes(o.operation_id)).map((o) => `${o.operation_id} was never committed`),
  ]);
  must('no rolled-back intent ran', journals.filter((line) => line.kind === 'rolled_back' && (byId.has(line.id) || arrivals.has(line.id))).map((line) => line.id));
  must('every operation is settled, or unknown and flagged', operations
    .filter((o) => !['succeeded', 'failed', 'cancelled'].includes(o.status) && !(o.status === 'unknown' && o.attention))
    .map((o) => `${o.operation_id} is ${o.status}`));

  const twice = [];
  for (const [id, list] of tickets) {
    if (list.length < 2) continue;
    const attempts = (bySeq.get(byId.get(id)?.seq) ?? []).filter((row) => row.status === 'attempting');
    const late = (arrivals.get(id) ?? []).some((request) => residual(request, attempts, freezes));
    (late ? residuals : twice).push(`${id}: ${list.map((t) => `${t.id} of attempt ${t.attempt}, arrived ${new Date(t.arrived).toISOString()}`).join('; ')}; deadlines ${attempts.map((a) => `${a.attempts}: ${a.deadline_at.toISOString()}`).join(', ')}`);
  }
  must('at most one effect of each operation', twice);
  must('no more than one case of the hole between the clock and send()', residuals.length > 1 ? residuals : []);
  must('the verdict is the service\'s truth', operations.flatMap((o) => {
    const list = tickets.get(o.operation_id) ?? [];
    if (list.length > 1) return [];  // counted above
    if (o.status === 'succeeded' && list.length === 0) return [`${o.operation_id} succeeded without an effect`];
    if (o.status === 'succeeded' && o.result?.id !== list[0].id) return [`${o.operation_id}: ${JSON.stringify(o.result)} for ${list[0].id}`];
    if (['failed', 'cancelled'].includes(o.status) && list.length) return [`${o.operation_id} is ${o.status} and has ${list[0].id}`];
    return [];
  }));
  must('no effect was declared absent', operations.filter((o) => ['late_effect', 'duplicate_effect', 'conflict'].includes(o.attention) && (tickets.get(o.operation_id)?.length ?? 0) < 2).map((o) => `${o.operation_id}: ${o.attention}`));

  must('the answers of the outbox never contradict each other', [...answers].flatMap(([id, lines]) => {
    const done = lines.find((line) => line.status === 'succeeded');
    const wrong = lines.filter((line) => done && line.at > done.at && line.status && (line.status !== 'succeeded' || line.result?.id !== done.result?.id));
    const last = byId.get(id);
    if (done && (last?.status !== 'succeeded' || last.result?.id !== done.result?.id)) wrong.push(last);
    const cancelled = lines.find((line) => line.said === 'cancelled');
    if (cancelled && last?.status !== 'cancelled') wrong.push(last);
    return wrong.map((line) => `${id}: ${JSON.stringify(line)} after ${JSON.stringify(done ?? cancelled)}`);
  }));
  must('the planners met no surprise', journals.filter((line) => line.kind === 'error').map((line) => JSON.stringify(line)));
  must('every write took the next epoch and a move of the table', [...bySeq.values()].flatMap(walk));
  must('no daemon and no planner ended by itself', [
    ...daemons.flatMap((d) => d.strange.map((end) => `${d.name}: ${JSON.stringify(end)}`)),
    ...planners.filter((p) => p.died).map((p) => `${p.name}: ${p.died}`),
  ]);
  must('the service was never starved beyond what settle covers', state.stall > (times.settle - times.lag) / 2 ? [`stalled for ${state.stall} ms: this machine is too slow for the run to prove anything`] : []);

  const kinds = (kind) => events.find((e) => e.kind === kind)?.n ?? 0;
  return {
    results,
    counts: {
      operations: operations.length,
      effects: state.tickets.length,
      attempts: audit.filter((row) => row.place === 'queue' && row.status === 'attempting').length,
      writes: audit.length,
      unknowns: audit.filter((row) => row.status === 'unknown' && row.was !== 'unknown').length,
      late_results: kinds('late_result'), lease_expired: kinds('lease_expired'), released: kinds('released'), probes: kinds('probe'), replays: kinds('replayed'),
      flagged: operations.filter((o) => o.attention).length,
      rolled_back: journals.filter((line) => line.kind === 'rolled_back').length,
      residual: residuals.length,
      ...Object.fromEntries(['succeeded', 'failed', 'cancelled'].map((s) => [s, operations.filter((o) => o.status === s).length])),
    },
  };
}
