// What the README shows is run: the tool, the inserts from psql, Python and Node.
import assert from 'node:assert/strict';
import { readFileSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { story } from './world.mjs';
import { run } from './util.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const readme = readFileSync(path.join(here, '../../README.md'), 'utf8');
const blocks = (language) => [...readme.matchAll(new RegExp('```' + language + '\\n([^]*?)```', 'g'))].map((m) => m[1]);

story('the README\'s tool loads and its inserts work', async (w) => {
  const [yaml] = blocks('yaml');
  const [transaction, insert] = blocks('sql');
  const [python] = blocks('python');
  const [node] = blocks('js');

  const checked = await w.cli('check-config', w.write('outboxd.yaml', yaml));
  assert.equal(checked.code, 0, checked.text);
  await w.migrate();

  const { host, database } = await w.one(`SELECT current_setting('unix_socket_directories') AS host, current_database() AS database`);
  const env = { ...w.env, PGHOST: host, PGPORT: String(w.cluster.port), PGUSER: 'postgres', PGDATABASE: database };
  const psql = await run('psql', ['-X', '-q', '-v', 'ON_ERROR_STOP=1'], { env, input: transaction + insert + insert });
  assert.equal(psql.code, 0, psql.text);

  symlinkSync(path.join(here, 'node_modules'), path.join(w.dir, 'node_modules'));
  const js = await run(process.execPath, [w.write('first.mjs', node)], { env });
  assert.equal(js.code, 0, js.text);
  // The same call in the same run: whichever language says it, it is one operation.
  const py = await run('/usr/bin/python3', [w.write('first.py', `${python.replace('dbname=planner', `dbname=${database}`)}print(*row[1:3])\n`)], { env });
  assert.equal(py.code, 0, py.text);
  assert.equal(py.out.trim(), 'pending True');

  const { rows } = await w.db.query('SELECT tool, count(*)::int AS n FROM outbox.operation GROUP BY 1');
  assert.deepEqual(rows, [{ tool: 'create_ticket', n: 3 }]);
});
