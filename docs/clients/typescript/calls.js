// The calls that are one statement in the caller's transaction.
import { AsyncLocalStorage } from 'node:async_hooks';
import { refused } from './errors.js';
import { encode, encodeObject } from './json.js';

// One JSON text per row: the same whatever type parsers the caller has set.
const ENQUEUE = `SELECT to_json(r)::text AS row FROM outbox.enqueue(tool => $1::text, arguments => $2::jsonb,
  operation_id => $3::text, run_id => $4::text, occurrence => $5::integer, priority => $6::smallint,
  run_at => $7::timestamptz, expires_at => $8::timestamptz, max_attempts => $9::integer,
  traceparent => $10::text, labels => $11::jsonb, retry_failed => $12::boolean) r`;
const ENQUEUE_MANY = 'SELECT to_json(r)::text AS row FROM outbox.enqueue_many($1::jsonb) r';
const GET = 'SELECT to_json(r)::text AS row FROM outbox.get($1::text) r';
const CANCEL = 'SELECT to_json(outbox.cancel($1::text, $2::text))::text AS row';
const COMPENSATE = 'SELECT to_json(r)::text AS row FROM outbox.compensate($1::text, $2::text, $3::jsonb, $4::text) r';

const finals = ['succeeded', 'failed', 'cancelled'];
const runs = new AsyncLocalStorage();

async function ask(client, sql, values) {
  try {
    const { rows } = await client.query(sql, values);
    return rows.map(({ row }) => JSON.parse(row));
  } catch (error) {
    throw refused(error);
  }
}

// A pool would run it on some connection of its own: outside the caller's transaction.
function member(client, what) {
  if (typeof client?.query !== 'function') throw new TypeError(`${what} needs a pg client`);
  if (typeof client.connect === 'function' && typeof client.idleCount === 'number') {
    throw new TypeError(`${what} got a pool: pass the client that holds your transaction (await pool.connect())`);
  }
  return client;
}

const time = (value) => (value === undefined || value === null ? null : new Date(value).toISOString());
const date = (value) => (value === null || value === undefined ? null : new Date(value));

function receipt(row) {
  return {
    operationId: row.operation_id, status: row.status, final: finals.includes(row.status), replayed: row.replayed,
    result: row.result, error: row.error, message: row.message, createdAt: date(row.created_at),
    compensatedBy: row.compensated_by, resultExpired: row.result_expired,
  };
}

const operation = (row) => ({
  ...receipt(row), tool: row.tool, runId: row.run_id, attempts: row.attempts, attemptEpoch: row.attempt_epoch,
  startedAt: date(row.started_at), finishedAt: date(row.finished_at), compensates: row.compensates, attention: row.attention,
});

const known = new Set(['operationId', 'runId', 'occurrence', 'priority', 'runAt', 'expiresAt', 'maxAttempts', 'traceparent', 'labels', 'retryFailed']);

// A misspelt option would silently be another intent: {run_id: …} has no run.
function request(tool, args, options = {}) {
  if (typeof tool !== 'string') throw new TypeError('tool must be the name of a tool');
  for (const name of Object.keys(options)) if (!known.has(name)) throw new TypeError(`there is no option ${name}; options: ${[...known].join(', ')}`);
  return {
    tool, arguments: args, operation_id: options.operationId ?? null, run_id: options.runId ?? currentRun() ?? null,
    occurrence: options.occurrence ?? 1, priority: options.priority ?? 0, run_at: time(options.runAt),
    expires_at: time(options.expiresAt), max_attempts: options.maxAttempts ?? null, traceparent: options.traceparent ?? null,
    labels: options.labels ?? null, retry_failed: options.retryFailed ?? false,
  };
}

export async function enqueue(client, tool, args = {}, options = {}) {
  const r = { ...request(tool, args, options), arguments: encodeObject(args, 'arguments') };
  r.labels = r.labels && encodeObject(r.labels, 'labels');
  return receipt((await ask(member(client, 'enqueue'), ENQUEUE, Object.values(r)))[0]);
}

export async function enqueueMany(client, requests) {
  const items = Array.from(requests, ({ tool, arguments: args, ...options }, i) => {
    encodeObject(args, `requests[${i}].arguments`);
    return encode(request(tool, args ?? {}, options), `requests[${i}]`);
  });
  return (await ask(member(client, 'enqueueMany'), ENQUEUE_MANY, [`[${items.join(',')}]`])).map(receipt);
}

export async function get(client, operationId) {
  const [row] = await ask(client, GET, [operationId]);
  return row ? operation(row) : null;
}

export async function cancel(client, operationId, reason = null) {
  return (await ask(member(client, 'cancel'), CANCEL, [operationId, reason]))[0];
}

export async function compensate(client, operationId, { name = null, arguments: args, reason = null } = {}) {
  const values = [operationId, name, encodeObject(args, 'arguments'), reason];
  return receipt((await ask(member(client, 'compensate'), COMPENSATE, values))[0]);
}

// Enqueues inside belong to this run. Its id must be the same when the run is resumed after a crash.
export function withRun(runId, work) {
  if (typeof runId !== 'string' || runId === '') throw new TypeError('runId must be a text that names this run, the same whenever it is resumed');
  return runs.run(runId, work);
}

export const currentRun = () => runs.getStore();

// A tool as a typed function: action('create_ticket')(client, { title }).
export const action = (tool, options = {}) => (client, args, more = {}) => enqueue(client, tool, args, { ...options, ...more });

// What a tool call should return to the model: the truth, and the sentence that explains it.
export const forModel = ({ status, message, result, error }) =>
  ({ status, message, ...(result === null ? {} : { result }), ...(error === null ? {} : { error }) });
