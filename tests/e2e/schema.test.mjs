// config/outboxd.schema.json as an editor uses it: what loads is accepted, and mistakes are marked.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import Ajv from 'ajv';
import { parse } from 'yaml';

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '../..');
const read = (...name) => readFileSync(path.join(root, ...name), 'utf8');
const schema = JSON.parse(read('config', 'outboxd.schema.json'));
// x-range is for the reference; $defs is a word of later drafts that editors know too.
const validate = new Ajv({ allErrors: true, strict: true, strictTypes: false, strictRequired: false, keywords: ['x-range'], allowUnionTypes: true }).compile(schema);
const options = { uniqueKeys: true, merge: false };
const errors = (text) => {
  const value = parse(text, options);
  return validate(value) ? [] : validate.errors.map((e) => `${e.instancePath} ${e.message}`);
};
const yamls = (...folder) => readdirSync(path.join(root, ...folder)).filter((name) => name.endsWith('.yaml'));
const blocks = (file) => [...read(file).matchAll(/```yaml\n([^]*?)```/g)].map((m) => m[1]).filter((text) => /^version: 1$/m.test(text));

// The example with what is commented out switched on, as the loader's test does.
const everything = () => {
  let tools = false;
  return read('config', 'example.yaml').split('\n').map((line) => {
    if (line === 'credentials: {}') { tools = true; return 'credentials:'; }
    return tools && line.startsWith('#  ') ? line.slice(1) : line;
  }).join('\n');
};

test('the schema accepts what loads: example, cookbook, every kind, the docs', () => {
  const files = [['config', 'example.yaml'], ['tests', 'unit', 'config', 'schema', 'kinds.yaml'], ...yamls('config', 'cookbook').map((name) => ['config', 'cookbook', name])];
  assert.ok(files.length >= 14);
  for (const file of files) assert.deepEqual(errors(read(...file)), [], file.join('/'));
  assert.deepEqual(errors(everything()), [], 'config/example.yaml, everything switched on');
  let shown = 0;
  for (const file of ['README.md', 'docs/planners.md', 'docs/operators.md', 'docs/configuration.md']) {
    for (const text of blocks(file)) {
      assert.deepEqual(errors(text), [], `${file}:\n${text}`);
      shown += 1;
    }
  }
  assert.ok(shown >= 1);
});

// Mistakes of shape. What needs more than a shape (two keys that exclude each other, files, templates)
// is left to check-config.
const marked = [
  'boolean', 'choice', 'compensation', 'concurrency_zero', 'credential_kind', 'duration_negative', 'duration_without_unit', 'effect', 'execute_missing',
  'integer', 'jitter', 'list_instead_of_scalar', 'manual_reason', 'method', 'not_a_mapping', 'rate', 'rules', 'rules_no_list', 'scalar_instead_of_mapping',
  'size_without_unit', 'tests_answers', 'tests_shape', 'tool_name', 'type_missing', 'type_unknown', 'unknown_key_far', 'unknown_section', 'version_missing', 'version_two',
];
test('the schema marks mistakes of shape', () => {
  const missed = [];
  for (const name of yamls('tests', 'unit', 'config', 'bad')) {
    const text = read('tests', 'unit', 'config', 'bad', name);
    let found = [];
    try { found = errors(text); } catch { continue; }
    if (found.length === 0 && marked.includes(name.replace('.yaml', ''))) missed.push(name);
  }
  assert.deepEqual(missed, []);
  for (const name of marked) assert.ok(yamls('tests', 'unit', 'config', 'bad').includes(`${name}.yaml`), name);
});

test('every default and example of the schema is valid where it stands', () => {
  let seen = 0;
  const ajv = new Ajv({ strict: false });
  ajv.addSchema({ $id: 'all', $defs: schema.$defs });
  const walk = (node) => {
    if (node === null || typeof node !== 'object') return;
    if ('default' in node) {
      const { default: value, ...rest } = node;
      const local = JSON.parse(JSON.stringify(rest).replaceAll('"#/$defs/', '"all#/$defs/'));
      assert.ok(ajv.validate(local, value), `${JSON.stringify(value)} in ${JSON.stringify(rest)}`);
      seen += 1;
    }
    for (const child of Object.values(node)) walk(child);
  };
  walk(schema);
  assert.ok(seen >= 45, String(seen));
});

test('the reference in docs/configuration.md is what the schema says', () => {
  const { status, stderr } = spawnSync(process.execPath, [path.join(root, 'config', 'reference.mjs'), '--check'], { encoding: 'utf8' });
  assert.equal(status, 0, stderr);
});
