import { refuseOpenTransaction } from './wait.js';

const retryable = new Set(['40001', '40P01']);

// Runs work(client) in a transaction, and again after 40001 and 40P01, as Postgres wants it. work
// must read anew what it decides on; the ids stay the same, so nothing happens twice.
export async function retryTransaction(client, work, { attempts = 10, isolation } = {}) {
  if (isolation !== undefined && !['read committed', 'repeatable read', 'serializable'].includes(isolation)) {
    throw new TypeError('isolation is "read committed", "repeatable read" or "serializable"');
  }
  await refuseOpenTransaction(client, 'retryTransaction');
  for (let attempt = 1; ; attempt += 1) {
    try {
      await client.query(`BEGIN${isolation ? ` ISOLATION LEVEL ${isolation}` : ''}`);
      const answer = await work(client);
      await client.query('COMMIT');
      return answer;
    } catch (error) {
      await client.query('ROLLBACK').catch(() => {});  // the first error tells more
      if (!retryable.has(error?.code) || attempt >= attempts) throw error;
      await new Promise((resolve) => { setTimeout(resolve, Math.random() * Math.min(1000, 10 * 2 ** attempt)); });
    }
  }
}
