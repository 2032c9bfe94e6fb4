// What every client's tests need: a daemon that opens tickets, a role that is a planner and nothing
// more, and a pooler. The environment it returns is all that a client is told.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { closableTool } from '../e2e/config.mjs';
import pg from '../e2e/pg.mjs';
import { Program, eventually, freePort } from '../e2e/util.mjs';

export const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '../..');
export const text = (file) => readFileSync(path.join(root, file), 'utf8');
// The blocks of one language in a document, in order.
export const blocks = (file, language) => [...text(file).matchAll(new RegExp('```' + language + '\\n([^]*?)```', 'g'))].map((m) => m[1]);

export async function planner(w, tools = {}) {
  await w.start({ tools: { create_ticket: closableTool(w.desk.url), ...tools } });
  await w.db.query(`DO $$ BEGIN CREATE ROLE agent LOGIN IN ROLE outbox_planner; EXCEPTION WHEN duplicate_object THEN END $$`);
  const { database } = await w.one('SELECT current_database() AS database');
  await w.db.query('GRANT CREATE ON SCHEMA public TO agent');
  return { ...w.env, PGHOST: '127.0.0.1', PGPORT: String(w.cluster.port), PGUSER: 'agent', PGDATABASE: database };
}

// PgBouncer in transaction mode before the same database; it ends with `stop`.
export async function pooler(w, env) {
  const port = await freePort();
  const ini = w.write('pgbouncer.ini', `[databases]
${env.PGDATABASE} = host=127.0.0.1 port=${env.PGPORT} user=${env.PGUSER}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 2
`);
  let as = {};  // it refuses to run as root
  if (process.getuid() === 0) {
    const [uid, gid] = ['-u', '-g'].map((flag) => Number(execFileSync('id', [flag, 'postgres'])));
    chmodSync(w.dir, 0o755);
    chownSync(ini, uid, gid);
    as = { uid, gid };
  }
  const program = new Program('pgbouncer', [ini], { ...as, env: { PATH: `${process.env.PATH}:/usr/sbin` } });
  const stop = () => program.stop('SIGTERM');
  const accepts = eventually('pgbouncer accepts', async () => {
    assert.equal(program.ended, null, program.output);
    const client = new pg.Client({ host: '127.0.0.1', port, user: env.PGUSER, database: env.PGDATABASE });
    client.on('error', () => {});
    await client.connect();
    await client.end();
    return true;
  });
  await accepts.catch(async (error) => { await stop(); throw error; });
  return { port: String(port), stop };
}
