// docs/security.md says who may do what: the catalogue must say the same, no more and no less.
import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { story } from './world.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
const text = readFileSync(path.join(root, 'docs/security.md'), 'utf8');
const roles = ['outbox_planner', 'outbox_reader', 'outbox_operator', 'outbox_worker'];

// { name: { role: cell } } of the table of roles; functions have () behind their name.
function table() {
  const start = text.indexOf('| schema `outbox`');
  const [head, , ...rows] = text.slice(start, text.indexOf('\n\n', start)).split('\n').map((line) => line.split('|').slice(1, -1).map((cell) => cell.trim()));
  assert.deepEqual(head.slice(1), roles.map((role) => `\`${role}\``));
  const all = {};
  for (const [names, ...cells] of rows) {
    for (const [, name] of names.matchAll(/`([^`]+)`/g)) {
      assert.ok(!(name in all), `${name} is there twice`);
      all[name] = Object.fromEntries(roles.map((role, i) => [role, cells[i]]));
    }
  }
  return all;
}

story('the table of roles is what the database grants', async (w) => {
  await w.migrate();
  const said = table();
  const { rows: functions } = await w.db.query(`SELECT p.proname || '()' AS name, r.rolname AS role, bool_or(has_function_privilege(r.oid, p.oid, 'EXECUTE')) AS may
    FROM pg_proc p CROSS JOIN pg_roles r WHERE p.pronamespace = 'outbox'::regnamespace AND r.rolname = ANY ($1) GROUP BY 1, 2`, [roles]);
  const { rows: tables } = await w.db.query(`SELECT c.relname AS name, r.rolname AS role,
      CASE WHEN has_table_privilege(r.oid, c.oid, 'INSERT') OR has_table_privilege(r.oid, c.oid, 'UPDATE') OR has_table_privilege(r.oid, c.oid, 'DELETE')
             OR has_any_column_privilege(r.oid, c.oid, 'UPDATE') THEN 'write'
           WHEN has_table_privilege(r.oid, c.oid, 'SELECT') THEN 'read'
           WHEN has_any_column_privilege(r.oid, c.oid, 'INSERT') THEN 'intent'
           WHEN has_any_column_privilege(r.oid, c.oid, 'SELECT') THEN 'some columns' ELSE '–' END AS may
    FROM pg_class c CROSS JOIN pg_roles r WHERE c.relnamespace = 'outbox'::regnamespace AND c.relkind IN ('r', 'v', 'm') AND r.rolname = ANY ($1)`, [roles]);
  const real = {};
  for (const { name, role, may } of functions) (real[name] ??= {})[role] = may ? 'yes' : '–';
  for (const { name, role, may } of tables) (real[name] ??= {})[role] = may;
  const nobody = Object.fromEntries(roles.map((role) => [role, '–']));
  for (const [name, cells] of Object.entries(real)) assert.deepEqual(said[name] ?? nobody, cells, `${name}: docs/security.md (expected) and the grants differ`);
  for (const name of Object.keys(said)) assert.ok(real[name], `${name} does not exist`);

  // An intent's columns and no others, and nothing for everybody.
  const { rows: columns } = await w.db.query(`SELECT privilege_type, string_agg(column_name, ' ' ORDER BY column_name) AS columns
    FROM information_schema.column_privileges WHERE table_schema = 'outbox' AND table_name = 'operation' AND grantee = 'outbox_planner' GROUP BY 1 ORDER BY 1`);
  assert.deepEqual(columns, [
    { privilege_type: 'INSERT', columns: 'arguments expires_at labels max_attempts operation_id priority run_at run_id tool traceparent' },
    { privilege_type: 'REFERENCES', columns: 'operation_id' }, { privilege_type: 'SELECT', columns: 'operation_id' }]);
  const everybody = await w.one(`SELECT (SELECT count(*)::int FROM pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a WHERE p.pronamespace = 'outbox'::regnamespace AND a.grantee = 0) AS functions,
    (SELECT count(*)::int FROM pg_class c, aclexplode(c.relacl) a WHERE c.relnamespace = 'outbox'::regnamespace AND a.grantee = 0) AS tables`);
  assert.deepEqual(everybody, { functions: 0, tables: 0 });
});

// Every anchor of every guide leads somewhere: runbooks are opened at night.
const slug = (heading) => heading.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, '').trim().replaceAll(' ', '-');
test('links within the guides and from the README lead to what exists', () => {
  const files = ['README.md', ...readdirSync(path.join(root, 'docs')).filter((f) => f.endsWith('.md')).map((f) => `docs/${f}`)];
  const read = (file) => readFileSync(path.join(root, file), 'utf8');
  const anchors = (file) => new Set([...read(file).replace(/```[^]*?```/g, '').matchAll(/^#+ (.*)$/gm)].map((m) => slug(m[1])));
  let links = 0;
  for (const file of files) {
    for (const [, target] of read(file).replace(/```[^]*?```/g, '').matchAll(/\]\(([^)\s]+)\)/g)) {
      if (/^https?:/.test(target)) continue;
      const [name, anchor] = target.split('#');
      const at = name ? path.join(path.dirname(file), name) : file;
      assert.doesNotThrow(() => readdirSync(path.dirname(path.join(root, at))), `${file}: ${target}`);
      assert.ok(readdirSync(path.dirname(path.join(root, at))).includes(path.basename(at)), `${file}: ${target}`);
      if (anchor) assert.ok(anchors(at).has(anchor), `${file}: ${target}`);
      links++;
    }
  }
  assert.ok(links > 20, `${links} links`);
});
