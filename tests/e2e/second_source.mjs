// A second database beside a story's own, and a daemon that serves both as orders and support.
import assert from 'node:assert/strict';
import { binary } from './world.mjs';
import { run } from './util.mjs';

export async function twoDatabases(w) {
  await w.migrate();
  const name = await w.cluster.createDatabase();
  const support = { dsn: w.cluster.dsn(name), db: w.cluster.pool(name) };
  const { code, text } = await run(binary, ['migrate', '--database', support.dsn], { env: w.env });
  assert.equal(code, 0, text);
  support.one = async (sql, values = []) => (await support.db.query(sql, values)).rows[0];
  support.database = { sources: [{ name: 'orders', dsn: w.dsn }, { name: 'support', dsn: support.dsn }] };
  return support;
}
