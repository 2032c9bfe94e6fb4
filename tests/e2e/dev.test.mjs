// `outboxd dev`: a private Postgres, migrated, with a daemon on it; Ctrl-C ends both.
import assert from 'node:assert/strict';
import { chmodSync, existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { binary, story } from './world.mjs';
import { Program, eventually, run } from './util.mjs';

const example = path.join(path.dirname(fileURLToPath(import.meta.url)), '../../config/example.yaml');

story('dev starts a Postgres of its own, runs an operation, and ends with Ctrl-C', async (w) => {
  chmodSync(w.dir, 0o755);  // as root, the server runs as user postgres and must get in
  const env = { PATH: process.env.PATH, HOME: w.dir, LANG: 'C.UTF-8' };
  const dev = new Program(binary, ['dev', '-c', example], { cwd: w.dir, env });
  try {
    const [, dsn] = await eventually('it prints the database', () => {
      if (dev.ended) throw new Error(dev.output);
      return dev.output.match(/^ *database +(\S.*)$/m);
    }, 30_000);
    assert.match(dev.output, /psql .*outbox\.enqueue/);
    const done = await run(binary, ['enqueue', 'note', '--arguments', '{"text": "hello"}', '--operation-id', 'first', '--wait', '20s', '--database', dsn, '--json'], { env });
    assert.equal(done.code, 0, done.text);
    assert.equal(JSON.parse(done.out).status, 'succeeded');
    const seen = await run('psql', [dsn, '-XAtc', `SELECT status FROM outbox.operations WHERE operation_id = 'first'`], { env });
    assert.equal(seen.out.trim(), 'succeeded', seen.text);

    // Its server is a child of its own: nothing of it may stay.
    const pidfile = path.join(w.dir, '.outboxd/postgres/postmaster.pid');
    const postmaster = Number(readFileSync(pidfile, 'utf8').split('\n')[0]);
    const { code } = await dev.stop('SIGINT');
    assert.equal(code, 0);
    assert.ok(!existsSync(`/proc/${postmaster}`), 'the Postgres has ended');
    assert.ok(!existsSync(pidfile));
  } catch (error) {
    console.error(dev.output);
    throw error;
  } finally {
    if (!dev.ended) await dev.stop('SIGKILL');
  }
});
