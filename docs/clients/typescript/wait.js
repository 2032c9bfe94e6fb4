import { InTransaction } from './errors.js';
import { get } from './calls.js';

// Asked without parameters: then it is one statement for itself unless a transaction is open, whose
// start is earlier. Behind a pooler the server's process is another one than the protocol named.
const SESSION = `SELECT now() <> statement_timestamp() OR pg_current_xact_id_if_assigned() IS NOT NULL AS open,
  pg_backend_pid()::text AS pid, 'outbox_done' IN (SELECT pg_listening_channels()) AS listening`;

const isPool = (client) => typeof client.connect === 'function' && typeof client.idleCount === 'number';
const subscriptions = new WeakMap();  // client → waits under way, by a LISTEN of ours

export async function refuseOpenTransaction(client, what) {
  const session = (await client.query(SESSION)).rows[0];
  if (session.open) throw new InTransaction(what);
  return session;
}

// The operation when it is final, or as it is when the time has passed, which raises nothing. null
// when the id is unknown to the end. A pool is polled; a client of its own is also woken by LISTEN.
export async function wait(client, operationId, { timeoutMs = 30_000, pollMs = 1000 } = {}) {
  const end = performance.now() + timeoutMs;
  const hint = isPool(client) ? null : await listen(client, operationId, timeoutMs > 0);
  try {
    for (let pause = Math.min(20, pollMs); ; pause = Math.min(pause * 1.5, pollMs)) {
      const woken = hint?.next();
      const seen = await get(client, operationId);
      const left = end - performance.now();
      if (seen?.final || left <= 0) return seen;
      await nap(Math.min(pause, left), woken);
    }
  } finally {
    await hint?.stop();
  }
}

// Over after ms, or when woken; no timer stays behind to keep the process alive.
const nap = (ms, woken) => new Promise((resolve) => {
  const timer = setTimeout(resolve, ms);
  woken?.then(() => { clearTimeout(timer); resolve(); });
});

async function listen(client, operationId, wanted) {
  const session = await refuseOpenTransaction(client, 'wait');
  if (!wanted || String(client.processID ?? '') !== session.pid) return null;
  const ours = subscriptions.has(client) || !session.listening;
  let wake = () => {};
  const heard = ({ channel, payload }) => {
    if (channel === 'outbox_done' && payload.includes(JSON.stringify(operationId))) wake();
  };
  if (ours) subscriptions.set(client, (subscriptions.get(client) ?? 0) + 1);
  client.on('notification', heard);
  const stop = async () => {
    client.off('notification', heard);
    if (!ours) return;
    const others = subscriptions.get(client) - 1;
    subscriptions.set(client, others);
    if (others > 0) return;
    subscriptions.delete(client);
    await client.query('UNLISTEN outbox_done').catch(() => {});  // a lost connection listens no more
  };
  if (ours) {
    try {
      await client.query('LISTEN outbox_done');
    } catch {
      await stop();  // a standby, say: the poll is the truth
      return null;
    }
  }
  return { next: () => new Promise((resolve) => { wake = resolve; }), stop };
}
