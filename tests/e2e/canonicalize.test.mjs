// A third opinion on the key: the npm package canonicalize (RFC 8785) and JavaScript's own JSON.parse
// and trim(), over random documents that the C++ side has written and keyed. The SQL side is compared
// with the C++ side in tests/pg/sql_keys_property_pg_test.cpp.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import path from 'node:path';
import test from 'node:test';
import canonicalize from 'canonicalize';
import { binary } from './world.mjs';

const program = path.join(path.dirname(binary), 'tests/unit/core/key_documents');
const count = Number(process.env.OUTBOXD_KEY_DOCUMENTS ?? 20_000);
const seed = Number(process.env.OUTBOXD_KEY_SEED ?? Date.now() % 1_000_000_000);

function trimmed(value) {
  if (typeof value === 'string') return value.trim();
  if (Array.isArray(value)) return value.map(trimmed);
  // Without a prototype: a key "__proto__" is a member like any other.
  if (value !== null && typeof value === 'object') {
    return Object.assign(Object.create(null), Object.fromEntries(Object.entries(value).map(([k, v]) => [k, trimmed(v)])));
  }
  return value;
}

function keyOf({ tool, run_id, occurrence, arguments_text: text }) {
  const named = { tool, run_id, arguments: trimmed(JSON.parse(text)), ...(occurrence > 1 && { occurrence }) };
  return createHash('sha256').update(canonicalize(named)).digest('hex');
}

test(`canonicalize makes the same ${count} keys`, (t) => {
  t.diagnostic(`OUTBOXD_KEY_SEED=${seed} repeats it`);
  const text = execFileSync(program, [String(seed), String(count)], { maxBuffer: 2 ** 30, encoding: 'utf8' });
  const lines = text.split('\n').slice(0, -1);
  assert.equal(lines.length, count);
  const spellings = new Map();
  for (const line of lines) {
    const document = JSON.parse(line);
    assert.equal(document.key, keyOf(document), `seed ${seed}: ${line}`);
    spellings.set(document.key, (spellings.get(document.key) ?? 0) + 1);
  }
  // Written twice each, differently: about half as many keys as documents.
  assert.ok(spellings.size < count * 0.9, `${spellings.size} keys of ${count} documents`);
  assert.ok(spellings.size > count * 0.4);
});
