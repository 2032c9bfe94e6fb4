// Compiled, not run: what the declarations must allow, and what they must refuse.
import pg from 'pg';
import * as outbox from 'outboxd-client';

interface Ticket { title: string; priority?: number }

const createTicket = outbox.action<Ticket>('create_ticket');

export async function plan(client: pg.PoolClient, pool: pg.Pool): Promise<string> {
  const receipt = await outbox.enqueue(client, 'create_ticket', { title: 'x', money: 12n, more: [null, { a: undefined }] }, { runId: 'run-7' });
  const status: outbox.Status = receipt.status;
  await createTicket(client, { title: 'x' }, { occurrence: 2 });
  // @ts-expect-error the arguments are those of the tool
  await createTicket(client, { tittle: 'x' });
  // @ts-expect-error a pool is outside the caller's transaction
  await outbox.enqueue(pool, 'create_ticket', {}, {});
  // @ts-expect-error no such option
  await outbox.enqueue(client, 'create_ticket', {}, { run_id: 'run-7' });
  // @ts-expect-error a Date is no JSON
  await outbox.enqueue(client, 'create_ticket', { at: new Date() });
  const done = await outbox.wait<{ id: string }>(pool, receipt.operationId, { timeoutMs: 1000 });
  const answer: string = await outbox.withRun('run-7', async () => outbox.cancel(client, receipt.operationId));
  const moved = await outbox.retryTransaction(client, async (c) => (await c.query('SELECT 1')).rowCount ?? 0, { isolation: 'serializable' });
  try {
    await outbox.compensate(client, receipt.operationId, { name: 'close', reason: 'mistake' });
  } catch (error) {
    if (error instanceof outbox.ResultExpired) return error.hint ?? error.code;
  }
  return `${status} ${done?.result?.id} ${answer} ${moved} ${outbox.forModel(receipt).message}`;
}
